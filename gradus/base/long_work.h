/// Long work: computing, compiling, and waiting for other threads that compute. A program whose language lets one
/// thread run at a time, as Python's does, lets others run meanwhile.
#pragma once

namespace gradus {

/// Functions to be called around long work, on the thread that does it.
struct LongWorkHooks {
  void* (*begin)() = nullptr;  // what it gives is passed to end; null: end is not called
  void (*end)(void* began) = nullptr;
};

/// Sets them for the whole process, once, before threads work.
void set_long_work_hooks(const LongWorkHooks& hooks);

/// Long work in its lifetime. It begins before locks are taken, and ends after they are given back.
class LongWork {
 public:
  [[nodiscard]] LongWork();
  ~LongWork();
  LongWork(const LongWork&) = delete;

 private:
  void* const began_;
};

}  // namespace gradus
