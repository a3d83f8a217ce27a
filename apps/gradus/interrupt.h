/// The meaning of Ctrl-C while a training runs.
#pragma once

namespace gradus::command {

/// While it lives, the first interrupt (SIGINT) only asks for the end, and the second one ends the process at once with
/// status 130. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  /// True if the end was asked for since this was made.
  bool asked() const;

 private:
  void (*before_)(int);
};

}  // namespace gradus::command
