/// PerValue: a list by the numbers of a graph's values, and what values need.
#include "gradus/graph/per_value.h"
#include <gtest/gtest.h>

namespace gradus::per_value_test {
namespace {

// %0 -> %2 -> %3; %1 is read by nobody, %4 by nobody, and no output.
const char* const written = R"(%0 = input : f32[2]
%1 = input : f32[2]
%2 = log %0 : f32[2]
%3 = exp %2 : f32[2]
%4 = exp %0 : f32[2]
return %3
)";

TEST(PerValue, HasOneElementForEachValueAndTakesNumbersAndSizes) {
  const Graph graph = parse_graph(written);
  PerValue<int> list(graph, -1);
  EXPECT_EQ(list, std::vector<int>(5, -1));
  list[std::int64_t{3}] = 7;
  EXPECT_EQ(list[3], 7);
  EXPECT_EQ(list[std::size_t{3}], 7);
  PerValue<bool> flags(graph);
  flags[4] = true;
  EXPECT_TRUE(std::as_const(flags)[4]);
  EXPECT_EQ(list = std::vector<int>{5}, std::vector<int>{5});
}

TEST(PerValue, WhatValuesNeedIsWhatTheyAreMadeOf) {
  const Graph graph = parse_graph(written);
  PerValue<bool> wanted(graph);
  wanted[3] = true;
  EXPECT_EQ(needed_for(graph, wanted), (std::vector<bool>{true, false, true, true, false}));
  EXPECT_EQ(needed_for(graph, PerValue<bool>(graph)), std::vector<bool>(5));
  EXPECT_EQ(needed_with_inputs(graph), (std::vector<bool>{true, true, true, true, false}));
}

}  // namespace
}  // namespace gradus::per_value_test
