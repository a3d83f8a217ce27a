/// What a late kernel stores anew for the product behind it, instead of its being kept.
#include "gradus/compiler/remake.h"
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/compiler/passes.h"
#include "gradus/compiler/rederive.h"

namespace gradus::remake_test {
namespace {

const std::string product = " = matmul{transpose_a=false; transpose_b=false} ";
const std::string large = "f32[1024,1024]", small = "f32[128,128]";  // 4 MiB, 64 KiB

/// The formula %3 of the product %1, which a product reads at once; then other products, so that it leaves the caches.
std::string network(const std::string& type, const std::string& end) {
  return "%0 = input : " + type + "\n%1" + product + "%0 %0 : " + type + "\n%2 = square %1 : " + type +
         "\n%3 = multiply %2 %1 : " + type + "\n%4" + product + "%3 %0 : " + type + "\n%5" + product +
         "%4 %0 : " + type + "\n%6" + product + "%5 %0 : " + type + "\n" + end;
}

struct Row {
  const char* name;
  std::string before;
  std::string after;  // empty: as rederive leaves it
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
class Remake : public testing::TestWithParam<Row> {};

TEST_P(Remake, AsWritten) {
  Graph rederived = parse_graph(GetParam().before);
  PerValue<int> copies;
  const std::vector<Step> fused = fuse(rederived, true), before = rederive(rederived, fused, &copies);
  Graph graph = rederived;
  const std::vector<Step> steps = remake(graph, before, copies);
  verify(graph);
  EXPECT_EQ(to_text(graph), GetParam().after.empty() ? to_text(rederived) : to_text(parse_graph(GetParam().after)));
  EXPECT_EQ(steps.size(), before.size());
}

const Row rows[] = {
    {"ForAProductBehindAKernelThatHasIt",
     network(large, "%7 = multiply %6 %2 : " + large + "\n%8" + product + "%3 %7 : " + large + "\nreturn %8\n"),
     network(large, "%7 = square %1 : " + large + "\n%8 = multiply %6 %7 : " + large + "\n%9 = multiply %7 %1 : " +
                        large + "\n%10" + product + "%9 %8 : " + large + "\nreturn %10\n")},
    {"ThroughAnAlias",
     network(large, "%7 = multiply %6 %2 : " + large + "\n%8 = reshape{shape=[1,1024,1024]} %3 : f32[1,1024,1024]\n%9" +
                        " = reshape{shape=[1024,1024]} %8 : " + large + "\n%10" + product + "%9 %7 : " + large +
                        "\nreturn %10\n"),
     network(large, "%7 = square %1 : " + large + "\n%8 = multiply %6 %7 : " + large + "\n%9 = multiply %7 %1 : " +
                        large + "\n%10 = reshape{shape=[1,1024,1024]} %9 : f32[1,1024,1024]\n%11 = " +
                        "reshape{shape=[1024,1024]} %10 : " + large + "\n%12" + product + "%11 %8 : " + large +
                        "\nreturn %12\n")},
    {"NotWhatStaysInTheCaches",
     network(small, "%7 = multiply %6 %2 : " + small + "\n%8" + product + "%3 %7 : " + small + "\nreturn %8\n"), ""},
    {"NotWhatIsYieldedAnyway",
     network(large, "%7 = multiply %6 %2 : " + large + "\n%8" + product + "%3 %7 : " + large + "\nreturn %8 %3\n"), ""},
    {"NotIfTheKernelNeedsTheProduct",
     network(large, "%7" + product + "%3 %6 : " + large + "\n%8 = multiply %7 %2 : " + large + "\nreturn %8\n"), ""},
    {"NotIfNoKernelHasAnyOfIt",
     network(large, "%7 = multiply %6 %0 : " + large + "\n%8" + product + "%3 %7 : " + large + "\nreturn %8\n"), ""},
    {"NotIfAFormulaReadsItLate",
     network(large, "%7 = multiply %6 %2 : " + large + "\n%8" + product + "%3 %7 : " + large +
                        "\n%9 = transpose{order=[0,1]} %3 : " + large + "\n%10 = add %8 %9 : " + large +
                        "\nreturn %10\n"),
     ""},
};
INSTANTIATE_TEST_SUITE_P(Graphs, Remake, testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Remake, NothingIsDoneWithoutCopies) {
  Graph graph = parse_graph(rows[0].before);
  const std::vector<Step> before = fuse(graph, true);
  EXPECT_EQ(remake(graph, before, {}).size(), before.size());
  EXPECT_EQ(to_text(graph), to_text(parse_graph(rows[0].before)));
}

}  // namespace
}  // namespace gradus::remake_test
