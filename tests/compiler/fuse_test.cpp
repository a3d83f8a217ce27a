/// Which values run together: graph in, steps out.
#include <gtest/gtest.h>
#include "gradus/compiler/passes.h"

namespace gradus {
namespace {

std::string numbers(const std::vector<int>& values) {
  std::string out;
  for (int v : values) out += text(out.empty() ? "" : " ", v);
  return out;
}

/// "[64,10] 1 3 4 -> 4", one line a step.
std::string steps_of(const char* graph, bool merge = true) {
  const Graph g = parse_graph(graph);
  std::string out;
  for (const Step& step : fuse(g, merge))
    out += text(step.kind == Step::Kind::library ? "library" : brackets(step.space), ' ', numbers(step.members), " -> ",
                numbers(step.outputs), '\n');
  return out;
}

constexpr const char* softmax = R"(
%0 = input : f32[64,10]
%1 = max{axis=-1} %0 : f32[64,1]
%2 = broadcast{shape=[64,10]} %1 : f32[64,10]
%3 = subtract %0 %2 : f32[64,10]
%4 = exp %3 : f32[64,10]
%5 = sum{axis=-1} %4 : f32[64,1]
%6 = broadcast{shape=[64,10]} %5 : f32[64,10]
%7 = divide %4 %6 : f32[64,10]
%8 = sum{axis=-2} %7 : f32[1,10]
return %7 %8
)";

TEST(Fuse, SoftmaxAndItsColumnSumAreOneStep) {
  EXPECT_EQ(steps_of(softmax), "[64,10] 1 3 4 5 7 8 -> 7 8\n");
  EXPECT_EQ(steps_of(softmax, false),
            "[64,10] 1 -> 1\n[64,10] 3 -> 3\n[640] 4 -> 4\n[64,10] 5 -> 5\n[64,10] 7 -> 7\n[64,10] 8 -> 8\n");
}

}  // namespace
}  // namespace gradus
