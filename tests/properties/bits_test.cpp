/// Random programs, with their gradients, computed in every way: each gives the same bits.
#include <gtest/gtest.h>
#include <charconv>
#include <cmath>
#include "gradus/backend/cpu/isa.h"
#include "gradus/compiler/pipeline.h"
#include "gradus/graph/context.h"
#include "gradus/ops/elementwise.h"
#include "tests/instruction_sets.h"
#include "tests/properties/computation.h"
#include "tests/threads.h"

namespace gradus::properties::bits_test {
namespace {

/// Computes the same in another way, chosen by `turn`, since compiling takes most of the time.
struct Way {
  std::string name;
  std::function<Tensors()> run;
};
std::vector<Way> ways(const Computation& computation, std::uint64_t turn) {
  std::vector<std::string> passes;
  const bool amx = cpu_backend::uses_amx();  // has other sums of bf16 than AVX2, and others in blocks of attention
  for (std::string_view pass : pass_names())
    if (!amx || pass != "attention") passes.emplace_back(pass);
  const std::string one = passes[turn % passes.size()];
  const int threads = std::array{1, 2, 3, 8}[turn % 4];
  std::vector<Way> others{
      {"lazily again", [&] { return computation.lazily(); }},
      {"called for the first time", [&] { return computation.called_once(); }},
      {"without " + one, [&, one] { return computation.compiled({.disable = {one}}); }},
      {"without any pass", [&, passes] { return computation.compiled({.disable = passes}); }},
      {text("on ", threads, " threads"),
       [&, threads] {
         const Threads scope(threads);
         return computation.compiled({});
       }},
      {"op by op", [&] { return computation.compiled({.run_eagerly = true}); }},
  };
  if (cpu_backend::isa() == cpu_backend::Isa::avx512 && !amx)
    others.push_back({"on AVX2", [&] {
                        const cpu_backend::IsaScope narrow(narrowest_isa());
                        return computation.compiled({});
                      }});
  return {{"compiled", [&] { return computation.compiled({}); }},
          others[turn % others.size()],
          others[(turn / others.size()) % others.size()]};
}

/// Everything that must give the bits of the first lazy run, which is interpreted; the second one is compiled.
Outcome bits_of_every_way(const Program& program) {
  const Computation computation(program, program.seed % 2 ? 2 : 1);
  const Tensors want = computation.lazily();
  for (const Way& way : ways(computation, program.seed))
    if (Outcome outcome = same_bits(way.name, way.run(), want); outcome.verdict == Outcome::Verdict::fails)
      return outcome;
  return holds();
}

TEST(Programs, GiveTheSameBitsInEveryWay) {
  expect_clean(survey(bits_of_every_way, {.smooth = false}, wanted_programs(40), 2'000'000));
}
TEST(Programs, OfLargeArraysGiveTheSameBitsInEveryWay) {
  expect_clean(survey(bits_of_every_way, {.smooth = false, .most_steps = 12, .largest = 40'000}, wanted_programs(10, 5),
                      3'000'000));
}

/// Twice the operand, but one ulp more within a trace.
Tensor unlike_in_a_trace(In in) { return in[0] * (Context::current() ? std::nextafter(2.0, 3.0) : 2.0); }

TEST(Programs, AnOpWhoseTraceComputesSomethingElseIsFound) {
  std::vector<rows::Row> rows = rows::all_rows();
  for (int k = 0; k < 3; ++k) {
    rows.push_back(rows::elementwise("unlike", unlike_in_a_trace, {{-2, 2}}, {}));
    rows.back().dtypes = {f64};
  }
  const Census census = survey(bits_of_every_way, {.smooth = false, .most_steps = 6}, 300, 1, rows);
  ASSERT_EQ(census.findings.size(), 3);
  for (const std::string& finding : census.findings)
    EXPECT_NE(finding.find("= unlike", finding.find("shrunk: ")), std::string::npos) << finding;
}

/// What the error for a budget of one byte says to be enough; 0: a byte was.
std::size_t smallest_budget(const Computation& computation) {
  try {
    computation.compiled({.max_bytes = 1});
  } catch (const ResourceExhausted& error) {
    const std::string message = error.what(), before = "works is ";
    std::size_t bytes = 0;
    const char* at = message.data() + message.find(before) + before.size();
    std::from_chars(at, message.data() + message.size(), bytes);
    return bytes;
  }
  return 0;
}

Outcome recomputed(const Program& program) {
  const Computation computation(program);
  const std::size_t smallest = smallest_budget(computation);
  if (smallest == 0) return holds();
  return same_bits(text("within ", smallest, " bytes"), computation.compiled({.max_bytes = smallest}),
                   computation.lazily());
}

TEST(Programs, RecomputedGiveTheSameBits) {
  expect_clean(survey(recomputed, {.smooth = false, .largest = 4'000}, wanted_programs(20, 5), 6'000'000));
}

/// The oracle computes in double, element by element, without any of what runs programs.
Outcome like_the_oracle(const Program& program) {
  const Tensors outputs = program(program.arguments());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Array got = rows::to_array(outputs[k]), &want = program.step(program.outputs[k]).value;
    if (got.shape != want.shape) return fails(text("output ", k, " has shape ", got.shape, ", not ", want.shape));
    for (std::size_t i = 0; i < want.values.size(); ++i)
      if (!(std::abs(got.values[i] - want.values[i]) <= 1e-7 * (1 + std::abs(want.values[i]))))
        return fails(text("output ", k, " element ", i, " is ", got.values[i], ", the oracle's ", want.values[i]));
  }
  return holds();
}

TEST(Programs, HaveTheValuesOfTheOracle) {
  expect_clean(survey(like_the_oracle, {.smooth = true}, wanted_programs(500), 4'000'000));
}

Outcome traced_twice(const Program& program) {
  const Computation computation(program);
  TracedFunction one({}, nullptr, 0), other({}, nullptr, 0);
  const Tensors first = computation.call(one, computation.arguments());
  const Outcome outcome = same_bits("traced twice", computation.call(other, computation.arguments()), first);
  if (outcome.verdict == Outcome::Verdict::fails) return outcome;
  return one.explain().graph() == other.explain().graph() ? holds() : fails("traced twice, the graphs differ");
}

TEST(Programs, TracedTwiceAreOne) {
  expect_clean(survey(traced_twice, {.smooth = false}, wanted_programs(20, 5), 5'000'000));
}

}  // namespace
}  // namespace gradus::properties::bits_test
