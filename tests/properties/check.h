/// Properties that every program has, as functions from a program to what is wrong with it.
#pragma once
#include <optional>
#include "tests/properties/generator.h"

namespace gradus::properties {

struct Outcome {
  enum class Verdict { holds, fails, unclear } verdict = Verdict::holds;  // unclear: a kink is too near to tell
  std::string reason = {};
};
using Property = std::function<Outcome(const Program&)>;

inline Outcome holds() { return {}; }
inline Outcome fails(std::string reason) { return {Outcome::Verdict::fails, std::move(reason)}; }
inline Outcome unclear() { return {Outcome::Verdict::unclear}; }

struct Census {
  int programs = 0, unclear = 0, steps = 0;
  std::vector<std::string> findings;  // seed, reason, the program and its shrunk form
};

/// How many programs a test looks at: `usual`, or if the environment variable GRADUS_PROGRAMS says a number, that one
/// divided by `cost`.
int wanted_programs(int usual, int cost = 1);
/// Checks programs of the seeds that follow `first`; gives up after three findings.
Census survey(const Property& property, const Taste& taste, int programs, std::uint64_t first,
              const std::vector<rows::Row>& rows = rows::all_rows());
/// Every finding of a survey is a failure of the test, and so are too many programs that tell nothing.
void expect_clean(const Census& census);

/// A program made one number: the sum over its float outputs of each times fixed weights.
class Weighted {
 public:
  explicit Weighted(const Program& program);
  /// Of the outputs; as f64.
  Tensor operator()(In outputs) const;

 private:
  Tensors weights_;  // empty where the output is no float
};
/// Random numbers in [-1, 1] of the shapes of `like`, from `seed`; empty where `like` is no float.
Tensors noise(In like, std::uint64_t seed);

}  // namespace gradus::properties
