/// Which values run together: graph in, steps out.
#include <gtest/gtest.h>
#include <string>
#include <vector>
#include "gradus/compiler/fusion_groups.h"
#include "gradus/compiler/passes.h"

namespace gradus::fuse_test {
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

TEST(Fuse, ABiasGradientRunsWithTheMaskThatItSums) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[64,128]
%1 = input : bool[64,128]
%2 = constant{0x0} : f32[64,128]
%3 = where %1 %0 %2 : f32[64,128]
%4 = sum{axis=-2} %3 : f32[1,128]
%5 = reshape{shape=[128]} %4 : f32[128]
%6 = input : f32[128]
%7 = subtract %6 %5 : f32[128]
return %3 %7
)"),
            "[64,128] 3 4 -> 3 4\n[128] 7 -> 7\n");
}

TEST(Fuse, ReshapesDoNotDivide) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[4,6,8]
%1 = exp %0 : f32[4,6,8]
%2 = reshape{shape=[24,8]} %1 : f32[24,8]
%3 = sum{axis=-1} %2 : f32[24,1]
%4 = reshape{shape=[4,6]} %3 : f32[4,6]
%5 = negative %4 : f32[4,6]
return %5
)"),
            "[24,8] 1 3 5 -> 5\n");
}

/// %8 reads %1, which runs with %7, which depends on %5: so %5 and %8 may not run together.
TEST(Fuse, WhatIsReadThroughAViewMayRunLater) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f64[]
%1 = broadcast{shape=[4]} %0 : f64[4]
%2 = reshape{shape=[4,1]} %1 : f64[4,1]
%3 = broadcast{shape=[4,3]} %2 : f64[4,3]
%4 = input : f64[4,3]
%5 = tanh %4 : f64[4,3]
%6 = cumsum{axis=-1; exclusive=false; reverse=false} %5 : f64[4,3]
%7 = multiply %3 %6 : f64[4,3]
%8 = multiply %5 %3 : f64[4,3]
return %7 %8
)"),
            "[12] 5 -> 5\nlibrary 6 -> 6\n[4,3] 1 7 8 -> 7 8\n");
}

/// %10 depends on %2, and so on all that runs with %1: on %7, and by that on %4, with which it may not run.
TEST(Fuse, WhatStandsBeforeMayRunWithSomethingLater) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f64[6]
%1 = exp %0 : f64[6]
%2 = cumsum{axis=-1; exclusive=false; reverse=false} %1 : f64[6]
%3 = input : f64[8]
%4 = tanh %3 : f64[8]
%5 = cumsum{axis=-1; exclusive=false; reverse=false} %4 : f64[8]
%6 = slice{begin=[0]; size=[6]} %5 : f64[6]
%7 = multiply %1 %6 : f64[6]
%8 = slice{begin=[0]; size=[4]} %2 : f64[4]
%9 = concat{axis=-1} %8 %8 : f64[8]
%10 = multiply %4 %9 : f64[8]
return %7 %10
)"),
            "[8] 4 -> 4\nlibrary 5 -> 5\n[6] 1 7 -> 1 7\nlibrary 2 -> 2\n[4] 8 -> 8\nlibrary 9 -> 9\n[8] 10 -> 10\n");
}

TEST(Fuse, WhatReadsAcrossElementsWaits) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[8,8]
%1 = exp %0 : f32[8,8]
%2 = transpose{order=[0,1]} %1 : f32[8,8]
%3 = add %1 %2 : f32[8,8]
return %3
)"),
            "[64] 1 -> 1\n[8,8] 3 -> 3\n");
}

TEST(Fuse, APathThroughALibraryCallDivides) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[8,8]
%1 = exp %0 : f32[8,8]
%2 = matmul{transpose_a=false; transpose_b=false} %1 %1 : f32[8,8]
%3 = add %1 %2 : f32[8,8]
return %3
)"),
            "[64] 1 -> 1\nlibrary 2 -> 2\n[64] 3 -> 3\n");
}

/// %2 and %3 run together; so %4 cannot join %1, though no value between them leads from one to the other.
TEST(Fuse, APathThroughAnotherGroupDivides) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[8,8]
%1 = exp %0 : f32[8,8]
%2 = transpose{order=[0,1]} %1 : f32[8,8]
%3 = input : f32[8,8]
%4 = negative %3 : f32[8,8]
%5 = add %4 %2 : f32[8,8]
%6 = transpose{order=[0,1]} %4 : f32[8,8]
%7 = add %1 %6 : f32[8,8]
return %5 %7
)"),
            "[64] 1 -> 1\n[8,8] 4 5 -> 4 5\n[8,8] 7 -> 7\n");
}

TEST(Fuse, AScalarDoesNotTieALoopToOneRow) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[]
%1 = sqrt %0 : f32[]
%2 = broadcast{shape=[100]} %1 : f32[100]
%3 = input : f32[100]
%4 = multiply %3 %2 : f32[100]
return %4
)"),
            "[1] 1 -> 1\n[100] 4 -> 4\n");
}

TEST(Fuse, ViewsConstantsAndIndexesStandInMemoryOnlyWhereTheyHaveTo) {
  EXPECT_EQ(steps_of(R"(
%0 = input : i32[3]
%1 = iota{shape=[2,3]; dtype=i32} : i32[2,3]
%2 = broadcast{shape=[2,3]} %0 : i32[2,3]
%3 = constant{0x2} : i32[2,3]
%4 = multiply %1 %2 : i32[2,3]
%5 = add %4 %3 : i32[2,3]
%6 = reverse{dimensions=1} %2 : i32[2,3]
return %5 %6 %3
)"),
            "[2,3] 2 -> 2\n[2,3] 3 4 5 -> 3 5\n[2,3] 6 -> 6\n");
}

TEST(Fuse, SymbolicExtentsCompareByValue) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[s0,28,28]
%1 = exp %0 : f32[s0,28,28]
%2 = reshape{shape=[s0,784]} %1 : f32[s0,784]
%3 = input : f32[784]
%4 = broadcast{shape=[s0,784]} %3 : f32[s0,784]
%5 = add %2 %4 : f32[s0,784]
%6 = sum{axis=-1} %5 : f32[s0,1]
return %5 %6
)"),
            "[s0,784] 1 5 6 -> 5 6\n");
}

TEST(Fuse, EmptyValuesStayAlone) {
  EXPECT_EQ(steps_of(R"(
%0 = input : f32[3,0]
%1 = exp %0 : f32[3,0]
%2 = sum{axis=-1} %1 : f32[3,1]
%3 = sum{axis=-2} %1 : f32[1,0]
return %2 %3
)"),
            "[0] 1 -> 1\n[3,0] 2 -> 2\n[3,0] 3 -> 3\n");
}

/// A network of `depth` layers and its gradient, which computes again a formula of each layer, and adds up the squares
/// of what it gives the weights.
Graph deep_network(int depth) {
  std::string graph = "%0 = input : f32[8,16]\n%1 = input : f32[16,16]\n";
  int last = 1;
  const auto value = [&](const std::string& op, const std::string& spec = "f32[8,16]") {
    graph += text("%", ++last, " = ", op, " : ", spec, "\n");
    return text("%", last);
  };
  const auto product = [&](const std::string& a, const std::string& b, bool by_weights = false) {
    return value(text("matmul{transpose_a=", by_weights ? "true" : "false", "; transpose_b=false} ", a, " ", b),
                 by_weights ? "f32[16,16]" : "f32[8,16]");
  };
  std::string x = "%0";
  std::vector<std::string> inputs, sums;
  for (int i = 0; i < depth; ++i) {
    inputs.push_back(x);
    sums.push_back(product(x, "%1"));
    x = value("add " + x + " " + value("tanh " + sums.back()));
  }
  std::string dy = x, norm = value("constant{0x0}", "f32[1,1]");
  for (auto i = static_cast<std::size_t>(depth); i-- > 0;) {
    const std::string slope = value("sigmoid " + sums[i]);
    const std::string dz = value("multiply " + dy + " " + slope);
    const std::string dw = product(inputs[i], dz, true);
    const std::string rows = value("sum{axis=-1} " + value("square " + dw, "f32[16,16]"), "f32[16,1]");
    norm = value("add " + norm + " " + value("sum{axis=-2} " + rows, "f32[1,1]"), "f32[1,1]");
    dy = value("add " + dy + " " + product(dz, "%1"));
  }
  return parse_graph(graph + "return " + dy + " " + norm + "\n");
}

/// So no network is too deep: the work is counted, not its time.
TEST(Fuse, WalksAreShortInDeepNetworks) {
  for (const int depth : {50, 400}) {
    const Graph graph = deep_network(depth);
    EXPECT_LT(values_walked_by_fuse(graph), 4 * graph.size()) << depth;
  }
}

}  // namespace
}  // namespace gradus::fuse_test
