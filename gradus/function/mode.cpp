/// The mode of this thread.
#include "gradus/function/mode.h"

namespace gradus {
namespace {
CallMode& here() {
  thread_local CallMode mode = CallMode::unsaid;
  return mode;
}
}  // namespace

CallMode current_mode() { return here(); }
bool is_training() { return here() == CallMode::training; }
ModeScope::ModeScope(CallMode mode) : outer_(here()) { here() = mode; }
ModeScope::~ModeScope() { here() = outer_; }

}  // namespace gradus
