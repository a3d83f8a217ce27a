/// The handler touches a flag, nothing more.
#include "apps/gradus/interrupt.h"
#include <unistd.h>
#include <atomic>
#include <csignal>
#include "apps/gradus/commands.h"

namespace gradus::command {
namespace {

std::atomic<bool> was_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may use it");

void on_interrupt(int) {
  if (was_asked.exchange(true)) ::_exit(interrupted);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  was_asked = false;
  before_ = std::signal(SIGINT, on_interrupt);
}
InterruptGuard::~InterruptGuard() { std::signal(SIGINT, before_); }
bool InterruptGuard::asked() const { return was_asked; }

}  // namespace gradus::command
