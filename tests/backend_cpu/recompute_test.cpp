/// Byte budgets: which graphs they lead to, that they are kept, and that no bit changes.
#include <gtest/gtest.h>
#include <charconv>
#include "tests/backend_cpu/compiled.h"
#include "tests/backend_cpu/random_graphs.h"

namespace gradus::recompute_test {
namespace {

using testing_loops::RandomGraph;

std::shared_ptr<const CpuProgram> within(const Graph& graph, std::int64_t max_bytes,
                                         std::vector<std::string> disable = {}) {
  return cpu_backend::compile(graph, {.disable = std::move(disable), .max_bytes = max_bytes});
}

/// The smallest budget that works, as the error for one of a byte says; nothing if a byte is enough.
std::optional<std::int64_t> smallest_budget(const Graph& graph, const std::vector<std::string>& disable = {}) {
  try {
    within(graph, 1, disable);
    return {};
  } catch (const ResourceExhausted& error) {
    const std::string message = error.what();
    std::int64_t bytes = 0;
    const auto at = message.find("works is ");
    EXPECT_NE(at, std::string::npos) << message;
    std::from_chars(message.data() + at + 9, message.data() + message.size(), bytes);
    return bytes;
  }
}

struct Row {
  const char* name;
  std::int64_t budget;
  std::string before, after;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
class Recompute : public testing::TestWithParam<Row> {};

TEST_P(Recompute, AsWritten) {
  const auto program = within(parse_graph(GetParam().before), GetParam().budget);
  EXPECT_EQ(to_text(program->graph()), to_text(parse_graph(GetParam().after)));
  EXPECT_LE(program->report().temporary_bytes, GetParam().budget);
}

const std::string chain =  // a value of 4 KiB that is read at the beginning and at the end
    "%0 = input : f32[32,32]\n%1 = exp %0 : f32[32,32]\n"
    "%2 = matmul{transpose_a=false; transpose_b=false} %1 %1 : f32[32,32]\n"
    "%3 = matmul{transpose_a=false; transpose_b=false} %2 %2 : f32[32,32]\n"
    "%4 = matmul{transpose_a=false; transpose_b=false} %3 %3 : f32[32,32]\n";
const std::string product = "matmul{transpose_a=false; transpose_b=false} ";

const Row rows[] = {
    {"NothingIfItFits", 3 * 4096, chain + "%5 = multiply %4 %1 : f32[32,32]\nreturn %5\n",
     chain + "%5 = multiply %4 %1 : f32[32,32]\nreturn %5\n"},
    {"AFormulaWithinItsReader", 2 * 4096, chain + "%5 = multiply %4 %1 : f32[32,32]\nreturn %5\n",
     chain + "%5 = exp %0 : f32[32,32]\n%6 = multiply %4 %5 : f32[32,32]\nreturn %6\n"},
    {"AFormulaBeforeAProduct", 2 * 4096, chain + "%5 = " + product + "%4 %1 : f32[32,32]\nreturn %5\n",
     chain + "%5 = exp %0 : f32[32,32]\n%6 = " + product + "%4 %5 : f32[32,32]\nreturn %6\n"},
    {"ThroughAView", 2 * 4096,
     chain + "%5 = transpose{order=[0,1]} %1 : f32[32,32]\n%6 = multiply %4 %5 : f32[32,32]\nreturn %6\n",
     chain + "%5 = exp %0 : f32[32,32]\n%6 = transpose{order=[0,1]} %5 : f32[32,32]\n"
             "%7 = multiply %4 %6 : f32[32,32]\nreturn %7\n"},
    {"AProductIfNeeded", 2 * 4096,
     "%0 = input : f32[32,32]\n%1 = " + product + "%0 %0 : f32[32,32]\n%2 = " + product +
         "%1 %1 : f32[32,32]\n%3 = " + product + "%2 %2 : f32[32,32]\n%4 = " + product +
         "%3 %3 : f32[32,32]\n%5 = multiply %4 %1 : f32[32,32]\nreturn %5\n",
     "%0 = input : f32[32,32]\n%1 = " + product + "%0 %0 : f32[32,32]\n%2 = " + product +
         "%1 %1 : f32[32,32]\n%3 = " + product + "%2 %2 : f32[32,32]\n%4 = " + product +
         "%3 %3 : f32[32,32]\n%5 = " + product + "%0 %0 : f32[32,32]\n%6 = multiply %4 %5 : f32[32,32]\nreturn %6\n"},
    {"WhatIsNeededLateIsMovedThere", 2 * 4096,  // nobody reads the exponential early
     "%0 = input : f32[32,32]\n%1 = exp %0 : f32[32,32]\n%2 = " + product + "%0 %0 : f32[32,32]\n%3 = " + product +
         "%2 %2 : f32[32,32]\n%4 = " + product + "%3 %3 : f32[32,32]\n%5 = " + product +
         "%1 %4 : f32[32,32]\nreturn %5\n",
     "%0 = input : f32[32,32]\n%1 = " + product + "%0 %0 : f32[32,32]\n%2 = " + product + "%1 %1 : f32[32,32]\n%3 = " +
         product + "%2 %2 : f32[32,32]\n%4 = exp %0 : f32[32,32]\n%5 = " + product + "%4 %3 : f32[32,32]\nreturn %5\n"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Recompute, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(Recompute, TheErrorNamesTheSmallestBudgetThatWorks) {
  const Graph graph = parse_graph(chain + "%5 = multiply %4 %1 : f32[32,32]\nreturn %5\n");
  EXPECT_EQ(smallest_budget(graph), 2 * 4096);
  EXPECT_EQ(within(graph, 2 * 4096)->report().temporary_bytes, 2 * 4096);
  EXPECT_THROW(within(graph, 2 * 4096 - 1), ResourceExhausted);
}

TEST(Recompute, SwitchedOffThereIsNoBudget) {
  const Graph graph = parse_graph(chain + "%5 = multiply %4 %1 : f32[32,32]\nreturn %5\n");
  EXPECT_EQ(within(graph, 1, {"recompute"})->report().temporary_bytes, 3 * 4096);
}

TEST(Recompute, WhatMayFailIsNotDoneTwice) {
  const Graph graph = parse_graph(
      "%0 = input : i32[1024]\n%1 = check_range{limit=4; labels=true} %0 : i32[1024]\n"
      "%2 = reshape{shape=[32,32]} %1 : i32[32,32]\n%3 = " +
      product + "%2 %2 : i32[32,32]\n%4 = " + product + "%3 %3 : i32[32,32]\n%5 = " + product +
      "%4 %4 : i32[32,32]\n%6 = add %5 %2 : i32[32,32]\nreturn %6\n");
  EXPECT_EQ(smallest_budget(graph), 3 * 4096);
}

/// A convolution takes two stages, though the second has nothing to do here: what meets its result lives until then.
TEST(Recompute, ABudgetIsKeptBesideAConvolution) {
  const Graph graph = parse_graph(
      "%0 = input : f32[1,8,8,4]\n%1 = input : f32[3,3,4,4]\n%2 = input : f32[128,128]\n%3 = input : f32[16,16]\n"
      "%4 = input : f32[16,1024]\n%5 = input : f32[1024,4]\n"
      "%6 = convolution{strides=[1,1]; dilations=[1,1]; before=[1,1]; size=[8,8]; groups=1} %0 %1 : f32[1,8,8,4]\n"
      "%7 = reshape{shape=[2,128]} %6 : f32[2,128]\n%8 = " +
      product + "%2 %2 : f32[128,128]\n%9 = " + product + "%7 %8 : f32[2,128]\n%10 = " + product +
      "%3 %3 : f32[16,16]\n%11 = " + product + "%10 %10 : f32[16,16]\n%12 = " + product +
      "%11 %4 : f32[16,1024]\n%13 = " + product + "%12 %5 : f32[16,4]\nreturn %9 %13\n");
  const std::int64_t all = cpu_backend::compile(graph)->report().temporary_bytes,
                     smallest = smallest_budget(graph).value_or(0);
  EXPECT_LT(smallest, all);
  for (std::int64_t budget = all; budget >= smallest; budget -= 1024)
    EXPECT_LE(within(graph, budget)->report().temporary_bytes, budget);
}

/// What is planned for a loop is the body as it is compiled: of the outputs that are asked for, and without epilogues.
TEST(Recompute, ABudgetIsKeptByLoops) {
  const std::string type = "f32[64,64]";
  const std::string body = "%0 = input : " + type + " | %1 = input : " + type + " | %2 = input : " + type +
                           " | %3 = " + product + "%0 %2 : " + type + " | %4 = add %1 %3 : " + type +
                           " | %5 = tanh %4 : " + type + " | return ";
  for (const auto& [results, stacked] : {std::pair("%5", 0), {"%5 %3", 1}})
    for (const int threads : {1, 3}) {
      const Threads scope(threads);
      const Graph graph = parse_graph("%0 = input : " + type + "\n%1 = input : f32[5,64,64]\n%2 = input : " + type +
                                      "\n%3 = scan{body={" + body + results +
                                      "}; last={}; carries=1; singles=1; chunks=0; stacked=" + std::to_string(stacked) +
                                      "; iterations=5; rows=0; last_rows=0; reverse=false; counted=false; output=0} "
                                      "%0 %1 %2 : " +
                                      type + "\nreturn %3\n");
      const std::int64_t smallest = smallest_budget(graph).value_or(0);
      EXPECT_LE(within(graph, smallest)->report().temporary_bytes, smallest)
          << results << ", " << threads << " threads";
    }
}

void expect_same_bits(const Graph& graph, std::int64_t budget, const std::vector<std::string>& disable, unsigned seed) {
  const auto plain = cpu_backend::compile(graph), lean = within(graph, budget, disable);
  EXPECT_LE(lean->report().temporary_bytes, budget);
  verify(lean->graph());
  const auto inputs = testing_loops::random_inputs(graph, {}, seed);
  testing_loops::expect_same(*lean, testing_loops::run(*lean, inputs), testing_loops::run(*plain, inputs), {},
                             text("within ", budget));
}

/// Unfused, so that many values stand in memory.
TEST(Recompute, RandomGraphsKeepTheirBits) {
  int tight = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    const Graph graph = RandomGraph(seed, {24, 35}).make(20);
    const std::vector<std::string> disable = seed % 3 ? std::vector<std::string>{"fuse"} : std::vector<std::string>{};
    const std::int64_t all = cpu_backend::compile(graph, {.disable = disable})->report().temporary_bytes;
    const std::int64_t smallest = smallest_budget(graph, disable).value_or(0);
    EXPECT_LE(smallest, all);
    tight += smallest < all;
    for (const std::int64_t budget : {smallest, (smallest + all) / 2})
      if (budget > 0) expect_same_bits(graph, budget, disable, seed);
  }
  EXPECT_GT(tight, 20);
}

}  // namespace
}  // namespace gradus::recompute_test
