/// Choices between two ways of computing the same by sizes.
#pragma once

namespace gradus {

/// Where code of the library chooses by sizes, it asks choose(the way that these sizes suggest) which to take. A
/// function that compares its program for open sizes with that for given ones takes the same way in both; it installs
/// itself here, and the answer is the question otherwise.
struct SizeChoice {
  static bool (*choose)(bool suggested);
  /// Of a choice that the sizes themselves have to make, as where one way is right for some of them alone. What is
  /// traced for open sizes then holds for those at which the choice is the same: a few programs, where there would be
  /// one for each size.
  static bool (*decide)(bool suggested);
};

}  // namespace gradus
