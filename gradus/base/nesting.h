/// How deep calls of the program's functions by the library lie within one another on this thread, as a traced function
/// calls another. What calls itself without an end is an error while there is still stack to say so.
#pragma once
#include <string_view>

namespace gradus {

class Nesting {
 public:
  static constexpr int most = 1000;

  Nesting() : depth_(++current()), too_deep_(depth_ > most || (depth_ > unasked && is_stack_short())) {}
  ~Nesting() { --current(); }
  Nesting(const Nesting&) = delete;

  /// This one must not go on.
  bool is_too_deep() const { return too_deep_; }
  int depth() const { return depth_; }
  /// InvalidArgument, in the name of `what`, if it must not.
  void check(std::string_view what) const {
    if (too_deep_) [[unlikely]]
      fail(what);
  }

 private:
  static constexpr int unasked = 16;  // so deep the stack is not looked at
  static int& current();
  [[noreturn]] void fail(std::string_view what) const;
  /// Whether less than a quarter of it is left.
  static bool is_stack_short();
  const int depth_;
  const bool too_deep_;
};

}  // namespace gradus
