/// KeptOnThread: a scope's hold on a value of its thread.
#pragma once
#include <string_view>

namespace gradus {

namespace detail::inline rooms {

/// The value of a thread as it was when this was made. A scope that sets the value gives it back in the end.
template <class T> class KeptOnThread {
 public:
  /// `value`: the calling thread's.
  explicit KeptOnThread(T& value) : home_(&value), before_(value) {}
  /// `value`: the calling thread's. False, and nothing changes, on another thread than that of the constructor.
  bool give_back(T& value) const {
    if (home_ != &value) [[unlikely]]
      return false;
    value = before_;
    return true;
  }

 private:
  T* const home_;
  const T before_;
};

/// Reports on standard error that a scope, by its name, ended on another thread than it began on, which `goes_on`.
void notice_end_elsewhere(std::string_view scope, std::string_view goes_on);

}  // namespace detail::inline rooms

}  // namespace gradus
