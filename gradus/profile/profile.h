/// profile(): takes a profile of some work. ProfileScope: a part of it that gets a row of its own.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include "gradus/base/ref.h"
#include "gradus/profile/report.h"

namespace gradus {

namespace detail::inline rooms {
class ActivityLog;
class ProfileListener;
}  // namespace detail::inline rooms

/// In its lifetime this thread's work is a row of the report of its profile. Without a profile it does nothing. Scopes
/// nest. It ends on the thread that it began on, before the profile and before the scopes around it; otherwise
/// profile() throws InvalidArgument.
class ProfileScope {
 public:
  /// Rows of one name are one row.
  [[nodiscard]] explicit ProfileScope(std::string_view name);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;

 private:
  detail::ActivityLog* log_;
  detail::Ref<detail::ProfileListener> profile_;  // so that the log lives
  std::uint64_t name_ = 0;
  std::size_t depth_ = 0;
};

namespace detail {
ProfileReport profile_of(const std::function<void()>& work);
}

/// Does the work and reports where its time went. Its errors are rethrown. The report is of this thread and of the
/// threads that work for it: the pool, the threads of its datasets, those of its devices. Other threads that the work
/// starts are left out; they may take profiles of their own. InvalidArgument if this thread is within a profile
/// already, or traces.
template <std::invocable F> ProfileReport profile(F&& work) {
  return detail::profile_of([&] { static_cast<void>(std::forward<F>(work)()); });
}

template <class T>
  requires(!std::invocable<T>)
ProfileReport profile(T&&) = delete;  // give the work, not its result: profile([&] { step(x, y); })

}  // namespace gradus
