/// Which values are made again instead of being stored.
#include "gradus/compiler/remake.h"
#include <gtest/gtest.h>
#include "gradus/compiler/passes.h"

namespace gradus {
namespace {

std::string numbers(const std::vector<int>& values) {
  std::string out;
  for (int v : values) out += text(' ', v);
  return out;
}

/// Before and after: "[rows,columns] members -> outputs", a line a step.
std::array<std::string, 2> steps_of(const char* source) {
  const Graph graph = parse_graph(source);
  const auto told = [&](const std::vector<Step>& steps) {
    std::string out;
    for (const Step& step : steps)
      out += text(step.kind == Step::Kind::loops ? text(brackets(step.space)) : std::string("library"),
                  numbers(step.members), " ->", numbers(step.outputs), '\n');
    return out;
  };
  const std::vector<Step> steps = fuse(graph, true);
  return {told(steps), told(remake(graph, steps))};
}

TEST(Remake, CentredElementsAreMadeAgainAroundTheirSum) {
  const auto [before, after] = steps_of(R"(
%0 = input : f32[64,128]
%1 = input : f32[1,128]
%2 = broadcast{shape=[64,128]} %1 : f32[64,128]
%3 = subtract %0 %2 : f32[64,128]
%4 = square %3 : f32[64,128]
%5 = sum{axis=-2} %4 : f32[1,128]
%6 = rsqrt %5 : f32[1,128]
%7 = broadcast{shape=[64,128]} %6 : f32[64,128]
%8 = multiply %3 %7 : f32[64,128]
return %8
)");
  EXPECT_EQ(before, "[64,128] 3 4 5 -> 3 5\n[128] 6 -> 6\n[64,128] 8 -> 8\n");
  EXPECT_EQ(after, "[64,128] 3 4 5 -> 5\n[128] 6 -> 6\n[64,128] 3 8 -> 8\n");
}

/// What is made again may be made of what is.
TEST(Remake, AChainIsMadeAgainAsAWhole) {
  const auto [before, after] = steps_of(R"(
%0 = input : f32[64,128]
%1 = negative %0 : f32[64,128]
%2 = sum{axis=-2} %1 : f32[1,128]
%3 = broadcast{shape=[64,128]} %2 : f32[64,128]
%4 = add %1 %3 : f32[64,128]
%5 = sum{axis=-2} %4 : f32[1,128]
%6 = broadcast{shape=[64,128]} %5 : f32[64,128]
%7 = multiply %4 %6 : f32[64,128]
return %7
)");
  EXPECT_EQ(before, "[64,128] 1 2 -> 1 2\n[64,128] 4 5 -> 4 5\n[64,128] 7 -> 7\n");
  EXPECT_EQ(after, "[64,128] 1 2 -> 2\n[64,128] 1 4 5 -> 5\n[64,128] 1 4 7 -> 7\n");
}

struct Kept {
  const char *name, *made;
};
void PrintTo(const Kept& row, std::ostream* out) { *out << row.name; }
class RemakeKeeps : public testing::TestWithParam<Kept> {};

/// %4 is read again beside its sum.
TEST_P(RemakeKeeps, AsItWas) {
  const std::string source = text(R"(
%0 = input : f32[64,128]
%1 = input : f32[64,128]
%2 = input : f32[64,1]
%3 = broadcast{shape=[64,128]} %2 : f32[64,128]
)",
                                  GetParam().made, R"(
%5 = sum{axis=-2} %4 : f32[1,128]
%6 = broadcast{shape=[64,128]} %5 : f32[64,128]
%7 = multiply %4 %6 : f32[64,128]
return %7
)");
  const auto [before, after] = steps_of(source.c_str());
  EXPECT_EQ(before, after);
  EXPECT_NE(before.find("4 5 -> 4 5"), std::string::npos) << before;
}
const Kept kept[] = {{"ReadingTwoInsteadOfOneSavesNothing", "%4 = add %0 %1 : f32[64,128]"},
                     {"ADearFormula", "%4 = tanh %0 : f32[64,128]"}};
INSTANTIATE_TEST_SUITE_P(Rows, RemakeKeeps, testing::ValuesIn(kept), [](const auto& row) { return row.param.name; });

TEST(Remake, WhatIsYieldedOrReadAcrossElementsIsStored) {
  for (const char* end : {"return %1 %4\n",
                          "%5 = slice{begin=[1,0]; size=[63,128]} %1 : f32[63,128]\n"
                          "%6 = exp %5 : f32[63,128]\nreturn %4 %6\n",
                          "%5 = cumsum{axis=-1; exclusive=false; reverse=false} %1 : f32[64,128]\nreturn %4 %5\n"}) {
    const auto [before, after] = steps_of(text(R"(
%0 = input : f32[64,128]
%1 = negative %0 : f32[64,128]
%2 = sum{axis=-2} %1 : f32[1,128]
%3 = broadcast{shape=[64,128]} %2 : f32[64,128]
%4 = add %1 %3 : f32[64,128]
)",
                                               end)
                                              .c_str());
    EXPECT_EQ(before, after);
  }
}

}  // namespace
}  // namespace gradus
