/// Order, sharing and layout of memory.
#include "gradus/compiler/plan_memory.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <random>
#include "gradus/compiler/first_fit.h"
#include "gradus/compiler/passes.h"
#include "gradus/ops/elementwise.h"

namespace gradus::plan_memory_test {
namespace {

std::vector<Interval> random_intervals(std::mt19937& random, int count) {
  std::vector<Interval> intervals;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % 20);
    intervals.push_back({static_cast<std::int64_t>(random() % 5000), first, first + static_cast<int>(random() % 6)});
  }
  return intervals;
}

TEST(LayOut, LivingIntervalsNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto intervals = random_intervals(random, 1 + round % 60);
    const Layout layout = lay_out(intervals);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % 64, 0);
      EXPECT_LE(layout.offsets[i] + intervals[i].bytes, layout.bytes);
      for (std::size_t k = 0; k < i; ++k) {
        const Interval &a = intervals[i], &b = intervals[k];
        if (a.last < b.first || b.last < a.first) continue;
        const bool apart =
            layout.offsets[i] + a.bytes <= layout.offsets[k] || layout.offsets[k] + b.bytes <= layout.offsets[i];
        EXPECT_TRUE(apart) << round;
      }
    }
  }
}

/// First fit in the order in which intervals begin.
std::int64_t bytes_in_order(std::span<const Interval> intervals) {
  std::vector<std::pair<std::int64_t, std::size_t>> placed;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    const std::int64_t size = (intervals[i].bytes + 63) / 64 * 64;
    std::int64_t at = 0;
    std::ranges::sort(placed);
    for (const auto& [offset, k] : placed) {
      if (intervals[k].last < intervals[i].first || intervals[k].first > intervals[i].last) continue;
      if (offset - at >= size) break;
      at = std::max(at, offset + (intervals[k].bytes + 63) / 64 * 64);
    }
    placed.emplace_back(at, i);
    total = std::max(total, at + size);
  }
  return total;
}

TEST(LayOut, IsNoWorseThanInOrder) {
  std::mt19937 random(8);
  std::int64_t better = 0;
  for (int round = 0; round < 100; ++round) {
    auto intervals = random_intervals(random, 40);
    std::ranges::stable_sort(intervals, {}, &Interval::first);
    const std::int64_t bytes = lay_out(intervals).bytes, in_order = bytes_in_order(intervals);
    EXPECT_LE(bytes, in_order);
    better += bytes < in_order;
  }
  EXPECT_GT(better, 50);
}

TEST(LayOut, ReusesMemoryOfTheDead) {
  const Interval intervals[] = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}, {1000, 3, 4}};
  EXPECT_EQ(lay_out(intervals).bytes, 2 * 1024);
}

/// By its definition: past everything that lives at the same time.
std::vector<std::int64_t> offsets_by_definition(std::span<const Interval> intervals,
                                                std::span<const std::size_t> order) {
  std::vector<std::int64_t> offsets(intervals.size());
  std::vector<std::size_t> placed;
  const auto size = [&](std::size_t i) { return (intervals[i].bytes + 63) / 64 * 64; };
  for (const std::size_t i : order) {
    std::int64_t at = 0;
    std::ranges::sort(placed, {}, [&](std::size_t k) { return offsets[k]; });
    for (const std::size_t k : placed) {
      if (intervals[k].last < intervals[i].first || intervals[k].first > intervals[i].last) continue;
      if (offsets[k] - at >= size(i)) break;
      at = std::max(at, offsets[k] + size(k));
    }
    offsets[i] = at;
    placed.push_back(i);
  }
  return offsets;
}

TEST(FirstFit, IsTheLowestPlaceThatIsFree) {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    auto intervals = random_intervals(random, 1 + round % 90);
    for (Interval& each : intervals)
      if (random() % 7 == 0) each.last += static_cast<int>(random() % 40);
      else if (random() % 7 == 0) each.bytes = 0;
    std::vector<std::size_t> order(intervals.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    EXPECT_EQ(first_fit(intervals, order).offsets, offsets_by_definition(intervals, order)) << round;
  }
}

/// Lives as long functions have them.
struct Lives {
  const char* name;
  std::vector<Interval> (*of)(int n);
};
constexpr Lives lives[] = {
    {"one after the other",
     [](int n) {
       std::vector<Interval> all;
       for (int i = 0; i < n; ++i) all.push_back({256, i, i + 1});
       return all;
     }},
    {"kept for the way back",
     [](int n) {
       std::vector<Interval> all;
       for (int i = 0; i < n; ++i) all.push_back({256 + i % 3 * 64, i, 2 * n - i});
       for (int i = 0; i < n; ++i) all.push_back({512, n + i, n + i + 1});
       return all;
     }},
    {"parts side by side, whose gradients are added up in turn",
     [](int n) {
       std::vector<Interval> all;
       for (int i = 0; i < n; ++i)
         for (int k = 0; k < 10; ++k) all.push_back({64 * (1 + k), k, k + 2});
       for (int i = 0; i < n; ++i)
         for (int k = 0; k < 4; ++k) all.push_back({1024 << k, 12, 13 + i});
       return all;
     }},
    {"kept by layers, beside values of the whole run",
     [](int n) {
       std::vector<Interval> all;
       const int end = 4 * n;
       for (int i = n - 1; i >= 0; --i)
         for (const std::int64_t bytes : {512, 4096}) {
           all.insert(all.end(),
                      {{bytes, 2 * i, end - 2 * i}, {bytes, 2 * i, end - 2 * i - 1}, {512, 2 * i, 2 * i + 1}});
           all.insert(all.end(), {{bytes, 3, end + 9}, {bytes, 0, end + 4}, {bytes, 0, end + 5}});
         }
       return all;
     }},
    {"by chance",
     [](int n) {
       std::mt19937 random(3);
       std::vector<Interval> all;
       for (int i = 0; i < n; ++i)
         all.push_back({static_cast<std::int64_t>(random() % 20) * 64, i, i + static_cast<int>(random() % 12)});
       return all;
     }},
};

/// So no function is too long, and no batch has too many parts: the work is counted, not its time.
TEST(LayOut, LooksAtAFewRangesForEachInterval) {
  for (const Lives& each : lives)
    for (const int n : {500, 2000}) {
      const auto intervals = each.of(n);
      const Layout layout = lay_out(intervals);
      EXPECT_LT(layout.looked_at, 80 * std::ssize(intervals)) << each.name << ", " << n;
    }
}

struct Row {
  const char* name;
  std::string graph;
  std::vector<int> may_overwrite;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
class SharingRows : public testing::TestWithParam<Row> {};

TEST(Sharing, GivesEachOutputWhatItIsAFormulaOf) {  // one step reads both inputs and makes both outputs
  const Graph graph = parse_graph(
      "%0 = input : f32[4]\n%1 = input : f32[4]\n%2 = exp %1 : f32[4]\n%3 = add %0 %2 : f32[4]\n"
      "return %2 %3\ndying %0 %1\n");
  EXPECT_EQ(plan_sharing(graph, fuse(graph, true)).may_overwrite, (std::vector<int>{1, 0}));
}

std::vector<std::pair<int, int>> inside_of(const std::string& graph_text) {
  const Graph graph = parse_graph(graph_text);
  std::vector<std::pair<int, int>> pairs;
  for (const Inside& inside : plan_sharing(graph, order_steps(graph, single_steps(graph))).inside)
    pairs.emplace_back(inside.value, inside.output);
  return pairs;
}

TEST(Inside, WhatRowsAreChangedOfLiesInTheOutput) {
  const std::string head =
      "%0 = input : f32[4,2]\n%1 = input : i32[3]\n%2 = input : f32[3,2]\n%3 = exp %0 : f32[4,2]\n"
      "%4 = update_rows %3 %1 %2 : f32[4,2]\n";
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(inside_of(head + "return %4\n"), (Pairs{{3, 4}}));
  EXPECT_EQ(inside_of(head + "return %4 %3\n"), Pairs());
  EXPECT_EQ(inside_of(head + "%5 = update_rows %4 %1 %2 : f32[4,2]\nreturn %5\n"), (Pairs{{4, 5}, {3, 5}}));
  EXPECT_EQ(inside_of(head + "%5 = log %3 : f32[4,2]\nreturn %4 %5\n"), Pairs());  // read after rows have changed
  EXPECT_EQ(inside_of(head + "%5 = log %4 : f32[4,2]\nreturn %5\n"), Pairs());     // no output
}

TEST_P(SharingRows, AsWritten) {
  const Graph graph = parse_graph(GetParam().graph);
  const auto steps = order_steps(graph, single_steps(graph));
  EXPECT_EQ(plan_sharing(graph, steps).may_overwrite, GetParam().may_overwrite);
}

const Row rows[] = {
    {"InPlace", "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\nreturn %1\ndying %0\n", {0}},
    {"NotOfTheLiving", "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\nreturn %1\n", {-1}},
    {"NotOfAnotherSpec", "%0 = input : f32[4]\n%1 = cast{to=i32} %0 : i32[4]\nreturn %1\ndying %0\n", {-1}},
    {"NotWhatIsYielded", "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\nreturn %1 %0\ndying %0\n", {-1, -1}},
    {"NotThroughAView",
     "%0 = input : f32[4,4]\n%1 = transpose{order=[0,1]} %0 : f32[4,4]\n%2 = exp %1 : f32[4,4]\nreturn %2\ndying %0\n",
     {-1}},
    {"NotWhatIsReadLater",
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = multiply %1 %0 : f32[4]\nreturn %1 %2\ndying %0\n",
     {-1, 0}},
    {"EachInputOnce",
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = log %0 : f32[4]\nreturn %1 %2\ndying %0\n",
     {-1, 0}},
    {"WhatIsFreeByThen",
     "%0 = input : f32[4]\n%1 = input : f32[4]\n%2 = add %0 %1 : f32[4]\n%3 = exp %2 : f32[4]\nreturn %3\ndying %1\n",
     {1}},
    {"RepeatedOutputs", "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\nreturn %1 %1\ndying %0\n", {0, -1}},
    {"CheckedFirst",  // the check runs first, whatever the order of the graph
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = input : i32[4]\n"
     "%3 = check_range{limit=4; labels=true} %2 : i32[4]\nreturn %1 %3\ndying %0\n",
     {0, -1}},
    {"RowsInPlace",
     "%0 = input : f32[4,2]\n%1 = input : i32[3]\n%2 = input : f32[3,2]\n"
     "%3 = update_rows %0 %1 %2 : f32[4,2]\nreturn %3\ndying %0\n",
     {0}},
    {"RowsOfItself",  // what is written would be read
     "%0 = input : f32[4,2]\n%1 = input : i32[4]\n%2 = update_rows %0 %1 %0 : f32[4,2]\nreturn %2\ndying %0\n",
     {-1}},
    {"RowsOfWhatIsMadeInPlace",
     "%0 = input : f32[4,2]\n%1 = input : i32[3]\n%2 = input : f32[3,2]\n%3 = exp %0 : f32[4,2]\n"
     "%4 = update_rows %3 %1 %2 : f32[4,2]\nreturn %4\ndying %0\n",
     {0}},
    {"RowsBeforeAFailure",  // the gather, which may fail, reads what was written
     "%0 = input : f32[4,2]\n%1 = input : i32[3]\n%2 = input : f32[3,2]\n%3 = update_rows %0 %1 %2 : f32[4,2]\n"
     "%4 = gather{axis=-2} %3 %1 : f32[3,2]\nreturn %3 %4\ndying %0\n",
     {-1, -1}},
};
INSTANTIATE_TEST_SUITE_P(Rows, SharingRows, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(OrderSteps, ChecksFirstOutputsLast) {
  const Graph graph = parse_graph(
      "%0 = input : f32[4]\n%1 = input : i32[4]\n%2 = exp %0 : f32[4]\n%3 = log %0 : f32[4]\n%4 = negative %1 : "
      "i32[4]\n"
      "%5 = check_range{limit=4; labels=true} %4 : i32[4]\n%6 = add %2 %3 : f32[4]\nreturn %2 %5 %6 %3\n");
  std::vector<int> order;
  for (const Step& step : order_steps(graph, single_steps(graph))) order.push_back(step.members[0]);
  EXPECT_EQ(order, (std::vector<int>{4, 5, 2, 3, 6}));
}

TEST(SingleSteps, WhatNobodyNeedsInMemoryIsNoStep) {
  const Graph graph = parse_graph(
      "%0 = input : f32[4]\n%1 = constant{0x3f800000} : f32[4]\n%2 = constant{0x40000000} : f32[1,4]\n"
      "%3 = broadcast{shape=[4,4]} %0 : f32[4,4]\n%4 = broadcast{shape=[4,4]} %2 : f32[4,4]\n%5 = add %3 %4 : "
      "f32[4,4]\n"
      "%6 = matmul{transpose_a=false; transpose_b=false} %3 %5 : f32[4,4]\nreturn %6 %1\n");
  std::vector<int> members;
  for (const Step& step : single_steps(graph)) members.push_back(step.members[0]);
  EXPECT_EQ(members, (std::vector<int>{1, 3, 5, 6}));
}

}  // namespace
}  // namespace gradus::plan_memory_test
