#include "gradus/base/long_work.h"
#include <atomic>

namespace gradus {
namespace {

std::atomic<void* (*)()> long_work_begin{nullptr};
std::atomic<void (*)(void*)> long_work_end{nullptr};

}  // namespace

void set_long_work_hooks(const LongWorkHooks& hooks) {
  long_work_end.store(hooks.end, std::memory_order_release);
  long_work_begin.store(hooks.begin, std::memory_order_release);
}

LongWork::LongWork()
    : began_([] {
        const auto begin = long_work_begin.load(std::memory_order_acquire);
        return begin ? begin() : nullptr;
      }()) {}

LongWork::~LongWork() {
  if (began_) long_work_end.load(std::memory_order_acquire)(began_);
}

}  // namespace gradus
