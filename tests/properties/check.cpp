/// Going through many programs, and what the properties have in common.
#include "tests/properties/check.h"
#include <gtest/gtest.h>
#include <cstdlib>
#include <exception>
#include <random>
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus::properties {
namespace {

/// An exception is a finding too.
Outcome judged(const Property& property, const Program& program) {
  try {
    return property(program);
  } catch (const std::exception& error) { return fails(text("it throws: ", error.what())); }
}

}  // namespace

int wanted_programs(int usual, int cost) {
  const char* said = std::getenv("GRADUS_PROGRAMS");
  return said ? std::atoi(said) / cost : usual;
}

Census survey(const Property& property, const Taste& taste, int programs, std::uint64_t first,
              const std::vector<rows::Row>& rows) {
  Census census;
  for (int k = 0; k < programs && census.findings.size() < 3; ++k) {
    const Program program = generate(first + static_cast<std::uint64_t>(k), taste, rows);
    const Outcome outcome = judged(property, program);
    ++census.programs;
    census.steps += program.length();
    census.unclear += outcome.verdict == Outcome::Verdict::unclear;
    if (outcome.verdict != Outcome::Verdict::fails) continue;
    const Program least = shrunk(program, [&](const Program& candidate) {
      return judged(property, candidate).verdict == Outcome::Verdict::fails;
    });
    census.findings.push_back(
        text(outcome.reason, "\n", program, "shrunk: ", judged(property, least).reason, "\n", least));
  }
  return census;
}

void expect_clean(const Census& census) {
  for (const std::string& finding : census.findings) ADD_FAILURE() << finding;
  EXPECT_LE(census.unclear * 10, census.programs) << "programs that tell nothing";
  std::cout << census.programs << " programs of " << census.steps << " ops, " << census.unclear << " unclear\n";
}

Tensors noise(In like, std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x9E3779B97F4A7C15);
  std::uniform_real_distribution<double> any(-1, 1);
  Tensors result;
  for (const Tensor& each : like) {
    result.emplace_back();
    if (!is_floating(each.dtype())) continue;
    Array array{each.shape(), {}};
    for (std::int64_t i = 0; i < each.shape().size(); ++i) array.values.push_back(any(random));
    result.back() = rows::to_tensor(array, each.dtype());
  }
  return result;
}

Weighted::Weighted(const Program& program) {
  Tensors like;
  for (int i : program.outputs) like.push_back(rows::to_tensor(program.step(i).value, program.step(i).dtype));
  weights_ = noise(like, program.seed);
}

Tensor Weighted::operator()(In outputs) const {
  Tensor sum;
  for (std::size_t k = 0; k < weights_.size(); ++k) {
    if (!weights_[k].defined()) continue;
    const Tensor term = cast(reduce_sum(outputs[k] * weights_[k]), f64);
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

}  // namespace gradus::properties
