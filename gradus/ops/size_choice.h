/// Choices between two ways of computing the same by what they cost, which depends on sizes.
#pragma once

namespace gradus {

/// Where code of the library chooses by sizes, it asks choose(the way that these sizes suggest) which to take. A
/// function that compares its program for open sizes with that for given ones takes the same way in both; it installs
/// itself here, and the answer is the question otherwise.
struct SizeChoice {
  static bool (*choose)(bool suggested);
};

}  // namespace gradus
