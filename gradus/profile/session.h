/// ProfileSession: a profile that begins and ends where a program says, for bindings of languages whose work is no
/// function of C++.
///
///   ProfileSession session;
///   ...
///   const ProfileReport report = session.finish();
#pragma once
#include <memory>
#include "gradus/profile/report.h"

namespace gradus {

/// A profile of the thread that made it, until finish(). One that is destroyed before has no report. Both are on that
/// thread, after all profile scopes within it.
class ProfileSession {
 public:
  /// InvalidArgument if this thread is within a profile already, or traces.
  ProfileSession();
  ~ProfileSession();
  ProfileSession(const ProfileSession&) = delete;
  /// Ends it. InvalidArgument on another thread, within a ProfileScope, and for a second time.
  ProfileReport finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradus
