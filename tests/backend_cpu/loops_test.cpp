/// Generated loops against the interpreter, bit for bit.
#include "tests/backend_cpu/compiled.h"
#include "tests/backend_cpu/random_graphs.h"

namespace gradus {
namespace {

using namespace testing_loops;

TEST(Loops, AChainOfFormulas) {
  for (const char* n : {"0", "1", "7", "16", "17", "64", "1000", "40000"})
    for (const char* t : {"f32", "f64", "i32", "i64", "u8"}) {
      const std::string spec = text(" : ", t, "[", n, "]\n");
      expect_all_ways_agree(parse_graph(text("%0 = input", spec, "%1 = input", spec, "%2 = add %0 %1", spec,
                                             "%3 = multiply %2 %0", spec, "%4 = divide %3 %1", spec, "return %4 %2")));
    }
}

TEST(Loops, SoftmaxOfShortRows) {
  expect_all_ways_agree(parse_graph(R"(
%0 = input : f32[64,10]
%1 = max{axis=-1} %0 : f32[64,1]
%2 = broadcast{shape=[64,10]} %1 : f32[64,10]
%3 = subtract %0 %2 : f32[64,10]
%4 = exp %3 : f32[64,10]
%5 = sum{axis=-1} %4 : f32[64,1]
%6 = broadcast{shape=[64,10]} %5 : f32[64,10]
%7 = divide %4 %6 : f32[64,10]
%8 = log %5 : f32[64,1]
%9 = sum{axis=-2} %7 : f32[1,10]
return %7 %8 %9
)"));
}

/// How many random graphs of each kind; more in a long run.
unsigned random_graphs() {
  const char* asked = std::getenv("GRADUS_RANDOM_GRAPHS");
  return asked ? static_cast<unsigned>(std::atoi(asked)) : 4;
}
unsigned first_seed() {
  const char* asked = std::getenv("GRADUS_SEED");
  return asked ? static_cast<unsigned>(std::atoi(asked)) : 1;
}

void expect_random_graphs_agree(const Shape& base, const std::vector<std::vector<std::int64_t>>& symbols = {{}}) {
  for (unsigned seed = first_seed(); seed < first_seed() + random_graphs(); ++seed) {
    SCOPED_TRACE(text("seed ", seed, " over ", brackets(base)));
    const Graph graph = RandomGraph(seed, base).make(12);
    verify(graph);
    try {
      expect_all_ways_agree(graph, symbols, seed);
    } catch (const std::exception& problem) { FAIL() << problem.what() << "\n" << to_text(graph); }
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Loops, RandomGraphs) {
  const Shape bases[] = {{64, 10},  {3, 17},    {5, 1000},   {2, 3, 40}, {70, 33}, {40000}, {1, 16},
                         {4, 1, 7}, {2, 40000}, {100, 2, 5}, {3, 0},     {0, 4},   {1},     {}};
  for (const Shape& base : bases) {
    expect_random_graphs_agree(base);
    if (HasFatalFailure()) return;
  }
}

TEST(Loops, RandomGraphsOfUnknownExtents) {
  const std::int64_t s0 = dimension::symbol(0), s1 = dimension::symbol(1);
  const Shape bases[] = {{s0, 10}, {3, s0}, {s0, s1}, {2, s0, 20}, {s0}, {s0, 3, s1}};
  for (const Shape& base : bases) {
    expect_random_graphs_agree(base, {{1, 1}, {64, 10}, {33, 17}, {100, 35}, {0, 3}, {2000, 16}});
    if (HasFatalFailure()) return;
  }
  expect_random_graphs_agree({s0}, {{40000}, {32768}, {70001}});
  if (HasFatalFailure()) return;
  expect_random_graphs_agree({s0, 2, s1}, {{40, 40000}, {1, 70001}});
}

}  // namespace
}  // namespace gradus
