/// Choices by size between two ways to compute the same result.
#pragma once

namespace gradus {

/// Library code that chooses by sizes asks choose(the way that these sizes suggest) which way to take. A function that
/// compares its program for open sizes with that for given ones takes the same way in both. It installs itself here;
/// otherwise the answer is the question.
struct SizeChoice {
  static bool (*choose)(bool suggested);
  /// For a choice that the sizes themselves have to make, as where one way is right for some of them alone. A trace for
  /// open sizes then holds for those sizes at which the choice is the same. That makes a few programs, instead of one
  /// per size.
  static bool (*decide)(bool suggested);
};

}  // namespace gradus
