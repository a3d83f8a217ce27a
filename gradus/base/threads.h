/// The number of threads that compute.
#pragma once
#include "gradus/base/kept_on_thread.h"

namespace gradus {

/// Sets the number of threads. It changes no result, only the speed. InvalidArgument if n is not 1 to 1024, and from
/// inside a computation. The initial value is that of the environment variable GRADUS_NUM_THREADS. Without it, it is
/// the number of cores that this process may run on, but at most the whole cores in the CPU quota of its control
/// groups, such as a container's. If the variable is anything but 1 to 1024, every use of the number is an
/// InvalidArgument. Short work takes fewer threads while some of them do not get a core.
void set_num_threads(int n);
/// The number of threads; 1 within OneThread.
int num_threads();

/// While it lives, computations of this thread run on this thread alone, and num_threads() is 1 here: for programs
/// whose own threads work side by side. It changes no result. set_num_threads within it is an InvalidArgument. It must
/// be destroyed on the thread that made it; elsewhere that prints a notice and changes nothing.
class OneThread {
 public:
  [[nodiscard]] OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;

 private:
  const detail::KeptOnThread<int> before_;
};

}  // namespace gradus
