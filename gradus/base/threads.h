/// How many threads compute.
#pragma once

namespace gradus {

/// Changes no result, only its speed. InvalidArgument unless 1 to 1024, or from inside a computation. The first value
/// is that of the environment variable GRADUS_NUM_THREADS, else the number of cores of this process: those that it may
/// run on, and no more than whole ones of the time that its control groups, such as a container's, give it. If the
/// variable is anything but 1 to 1024, whatever needs the number is an InvalidArgument. Short work takes fewer threads
/// while some of them do not get a core.
void set_num_threads(int n);
int num_threads();

/// While it lives, what this thread computes is computed by this thread alone, and num_threads() is 1 in it: for work
/// that several threads do side by side. Changes no result. set_num_threads within it is an InvalidArgument.
class OneThread {
 public:
  [[nodiscard]] OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace gradus
