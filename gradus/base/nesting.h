/// Depth of nested calls of the program's functions by the library on this thread, as when a traced function calls
/// another one. Endless recursion is an error while there is still stack to report it.
#pragma once
#include <string_view>

namespace gradus {

namespace detail::inline rooms {

/// One level of nesting.
class Nesting {
 public:
  static constexpr int most = 1000;  // largest depth

  Nesting() : depth_(++current()), too_deep_(depth_ > most || (depth_ > unasked && is_stack_short())) {}
  ~Nesting() { --current(); }
  Nesting(const Nesting&) = delete;

  /// True if this level must not go on.
  bool is_too_deep() const { return too_deep_; }
  /// The number of levels.
  int depth() const { return depth_; }
  /// InvalidArgument, opened by `what`, if this level must not go on.
  void check(std::string_view what) const {
    if (too_deep_) [[unlikely]]
      fail(what);
  }

 private:
  static constexpr int unasked = 16;  // up to this depth the stack is not checked
  static int& current();
  [[noreturn]] void fail(std::string_view what) const;
  /// True if less than a quarter of the stack is left.
  static bool is_stack_short();
  const int depth_;
  const bool too_deep_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
