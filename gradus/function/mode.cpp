/// The mode of this thread.
#include "gradus/function/mode.h"

namespace gradus {
namespace {
Mode& here() {
  thread_local Mode mode = Mode::unsaid;
  return mode;
}
}  // namespace

Mode current_mode() { return here(); }
bool is_training() { return here() == Mode::training; }
ModeScope::ModeScope(Mode mode) : outer_(here()) { here() = mode; }
ModeScope::~ModeScope() { here() = outer_; }

}  // namespace gradus
