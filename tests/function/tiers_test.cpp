/// The tiers of traced functions: which call is interpreted, and what explain() shows.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/function/tiered_program.h"
#include "gradus/graph/graph.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"

namespace gradus::tiers_test {
namespace {

const std::string small_graph =
    "%0 = input : f32[s0,4]\n%1 = tanh %0 : f32[s0,4]\n%2 = add %1 %1 : f32[s0,4]\nreturn %2\n";

/// The processor would have to interpret for another device.
bool compiles_at_once() { return default_device().kind != DeviceKind::cpu; }

TEST(Tiers, TheFirstRunOfASmallProgramIsInterpretedTheSecondCompiled) {
  TieredProgram program(parse_graph(small_graph), {.symbols = {3}});
  if (compiles_at_once()) {
    EXPECT_EQ(program.next(), program.next());
    return;
  }
  const auto first = program.next(), second = program.next(), third = program.next();
  EXPECT_EQ(first->report(std::vector<std::int64_t>{3}).kernels.size(), 2u) << "value by value";
  EXPECT_EQ(second->report(std::vector<std::int64_t>{3}).kernels.size(), 1u) << "fused";
  EXPECT_EQ(second, third);
  EXPECT_GT(program.later_seconds(), 0);
}

TEST(Tiers, PatientOnesAreInterpretedUntilCodePays) {
  const Graph graph = parse_graph(small_graph);
  const auto program = [&] {
    const PatientTiers patience;
    return std::make_unique<TieredProgram>(graph, CompileOptions{.symbols = {3}});
  }();
  if (compiles_at_once()) return;
  const auto first = program->next();
  int runs = 1;
  while (program->next() == first) ++runs;
  EXPECT_GT(runs, 20);
  EXPECT_LT(runs, 10000);
  EXPECT_GT(program->later_seconds(), 0);
  TieredProgram usual(graph, {.symbols = {3}});
  EXPECT_NE(usual.next(), usual.next());
}

TEST(Tiers, ALargeOneIsCompiledAtOnce) {
  TieredProgram program(parse_graph(small_graph), {.symbols = {1 << 20}});
  EXPECT_EQ(program.next(), program.next());
  EXPECT_EQ(program.later_seconds(), 0);
}

TEST(Tiers, AskingForTheCompiledOneKeepsAFirstRunValid) {
  TieredProgram program(parse_graph(small_graph), {.symbols = {3}});
  const auto first = program.next();
  EXPECT_EQ(&program.compiled() == first.get(), compiles_at_once());
  EXPECT_EQ(program.next().get(), &program.compiled());
}

TEST(Tiers, ExplainShowsTheCompiledProgramAfterOneCall) {
  const auto f = function([](Tensor x) { return reduce_sum(exp(x) * 2 + 1); });
  f(ones({4, 5}));
  EXPECT_EQ(f.explain().kernels.size(), 1u);
}

}  // namespace
}  // namespace gradus::tiers_test
