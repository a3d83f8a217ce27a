/// Choices by size between two ways to compute the same result.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/context.h"

namespace gradus {

/// Library code that chooses by sizes asks choose(the way that these sizes suggest) which way to take. A function that
/// compares its program for open sizes with that for given ones takes the same way in both: its trace answers. Without
/// a trace the answer is the question.
struct SizeChoice {
  static bool choose(bool suggested) { return made(suggested, false); }
  /// For a choice that the sizes themselves have to make, as where one way is right for some of them alone. A trace for
  /// open sizes then holds for those sizes at which the choice is the same. That makes a few programs, instead of one
  /// per size.
  static bool decide(bool suggested) { return made(suggested, true); }

 private:
  static bool made(bool suggested, bool is_of_sizes) {
    Context* const context = Context::current();
    return context ? context->choose(suggested, is_of_sizes) : suggested;
  }
};

}  // namespace gradus
