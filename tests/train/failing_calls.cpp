/// Definitions of a program come before those of libraries.
#include "tests/train/failing_calls.h"
#include <dlfcn.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>

namespace gradus {
namespace {

struct State {
  std::atomic<bool> active{false};
  FailingCalls::Plan plan;
  std::array<std::atomic<int>, 4> calls{};
  std::atomic<std::int64_t> free_bytes{0};
};
State& state() {
  static State only;
  return only;
}

/// Counts the call; whether it fails, with errno.
bool fails(FailingCalls::Kind kind) {
  if (!state().active) return false;
  const int number = state().calls[static_cast<std::size_t>(kind)]++;
  if (state().plan.kind != kind || state().plan.number != number) return false;
  errno = state().plan.reason;
  return true;
}

template <class F> F real(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

}  // namespace

FailingCalls::FailingCalls(Plan plan) {
  state().plan = plan;
  state().free_bytes = plan.free_bytes;
  for (auto& count : state().calls) count = 0;
  state().active = true;
}
FailingCalls::~FailingCalls() { state().active = false; }
int FailingCalls::calls(Kind kind) { return state().calls[static_cast<std::size_t>(kind)]; }

}  // namespace gradus

using gradus::FailingCalls;

extern "C" ssize_t write(int descriptor, const void* data, size_t bytes) {
  static const auto system_write = gradus::real<ssize_t (*)(int, const void*, size_t)>("write");
  if (gradus::fails(FailingCalls::Kind::write)) return -1;
  if (gradus::state().active) {
    const auto room = gradus::state().free_bytes.fetch_sub(static_cast<std::int64_t>(bytes));
    if (room <= 0 && bytes > 0) {
      errno = ENOSPC;
      return -1;
    }
    if (room < static_cast<std::int64_t>(bytes)) bytes = static_cast<size_t>(room);  // as a disk does: a part
  }
  return system_write(descriptor, data, bytes);
}

extern "C" int fsync(int descriptor) {
  static const auto system_fsync = gradus::real<int (*)(int)>("fsync");
  return gradus::fails(FailingCalls::Kind::fsync) ? -1 : system_fsync(descriptor);
}

extern "C" int rename(const char* from, const char* to) noexcept {
  static const auto system_rename = gradus::real<int (*)(const char*, const char*)>("rename");
  return gradus::fails(FailingCalls::Kind::rename) ? -1 : system_rename(from, to);
}
