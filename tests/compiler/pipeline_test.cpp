/// The tables of passes, what each step pass makes of a graph and its steps, and the faults that verify() finds.
#include "gradus/compiler/pipeline.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <set>
#include "gradus/base/error.h"
#include "gradus/compiler/passes.h"
#include "gradus/compiler/plan_memory.h"
#include "gradus/compiler/verify_steps.h"

namespace gradus::pipeline_test {
namespace {

// ---------------------------------------------------------------- the tables

TEST(Pipeline, EachRowHasANameOfItsOwnAndSaysWhatItDoes) {
  std::set<std::string_view> names;
  const auto look_at = [&](const auto& rows) {
    for (const auto& row : rows) {
      EXPECT_TRUE(names.insert(row.name).second) << row.name;
      EXPECT_GT(row.does.size(), 10u) << row.name;
    }
  };
  look_at(graph_passes()), look_at(step_passes()), look_at(kernel_choices()), look_at(executor_switches());
  for (const std::string_view name : pass_names()) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Pipeline, WhatARowNamesCanBeLeftOut) {
  const auto is_known = [](std::string_view name) {
    return name.empty() || std::ranges::count(pass_names(), name) == 1;
  };
  for (const GraphPass& pass : graph_passes()) EXPECT_TRUE(is_known(pass.instead_of)) << pass.name;
  for (const StepPass& pass : step_passes())
    EXPECT_TRUE(is_known(pass.instead_of) && is_known(pass.needs)) << pass.name;
}

// ---------------------------------------------------------------- goldens

const std::string product = " = matmul{transpose_a=false; transpose_b=false} ", large = " : f32[1024,1024]\n";

struct Row {
  const char* pass;        // the last one that runs
  std::string graph;       // before any step pass
  std::string steps;       // after it
  std::string after = {};  // the graph; empty: as before
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.pass; }

/// The table up to and including `last`.
std::span<const StepPass> up_to(std::string_view last) {
  const std::span<const StepPass> all = step_passes();
  const auto found = std::ranges::find(all, last, &StepPass::name);
  return all.first(static_cast<std::size_t>(found - all.begin()) + 1);
}

class StepPasses : public testing::TestWithParam<Row> {};

TEST_P(StepPasses, MakeWhatIsWritten) {
  const Row& row = GetParam();
  Graph graph = parse_graph(row.graph);
  const std::vector<std::string> off =
      row.pass == std::string("single") ? std::vector<std::string>{"fuse"} : std::vector<std::string>{};
  const std::vector<Step> steps = run_step_passes(up_to(row.pass), graph, off, {.least_joined_bytes = 0});
  EXPECT_EQ(to_text(steps), row.steps);
  EXPECT_EQ(to_text(graph), to_text(parse_graph(row.after.empty() ? row.graph : row.after)));
  verify(graph);
  if (!steps.empty()) verify(graph, steps);
}

const std::string chain = "%0 = input : f32[8,4]\n%1 = input : f32[4,4]\n%2" + product +
                          "%0 %1 : f32[8,4]\n%3 = exp %2 : f32[8,4]\n"
                          "%4 = negative %3 : f32[8,4]\n%5 = sum{axis=-1} %4 : f32[8,1]\nreturn %4 %5\n";

/// The formulas %2 and %3 of the product %1; other products, so that they leave the caches; then late readers of both.
const std::string late_readers = "%0 = input" + large + "%1" + product + "%0 %0" + large + "%2 = square %1" + large +
                                 "%3 = multiply %2 %1" + large + "%4" + product + "%3 %0" + large + "%5" + product +
                                 "%4 %0" + large + "%6" + product + "%5 %0" + large;

/// A loop over tanh(state + x), and the loop of its gradient.
const std::string rest = "; last={}; carries=1; singles=", loops =
                                                               "; chunks=0; stacked=1; iterations=3; rows=0; "
                                                               "last_rows=0; reverse=";
std::string forward_loop(int output) {
  return "%3 = scan{body={%0 = input : f32[8] | %1 = input : f32[8] | %2 = add %0 %1 : f32[8] | %3 = tanh %2 : f32[8] "
         "| "
         "%4 = multiply %3 %3 : f32[8] | return %4 %3}" +
         rest + "1" + loops + "false; counted=false; output=" + std::to_string(output) + "} %1 %2 : f32[3,8]\n";
}
std::string backward_loop(const std::string& body, int singles, const std::string& operands) {
  return "%4 = scan{body={" + body + "}" + rest + std::to_string(singles) + loops + "true; counted=false; output=1} " +
         operands + " : f32[3,8]\nreturn %4\n";
}
const std::string loop_inputs = "%0 = constant{0x3f800000} : f32[8]\n%1 = input : f32[8]\n%2 = input : f32[3,8]\n";

const Row goldens[] = {
    // The gradient's loop read the states and computed each tanh again; now it reads those that the first loop had.
    {"residuals",
     loop_inputs + forward_loop(2) +
         backward_loop("%0 = input : f32[8] | %1 = input : f32[8] | %2 = input : f32[8] | %3 = add %1 %2 : f32[8] | "
                       "%4 = tanh %3 : f32[8] | %5 = tanh_grad %4 %0 : f32[8] | return %5 %5",
                       2, "%0 %3 %2"),
     "",
     loop_inputs + forward_loop(1) +
         backward_loop("%0 = input : f32[8] | %1 = input : f32[8] | %2 = tanh_grad %1 %0 : f32[8] | return %2 %2", 1,
                       "%0 %3")},
    {"lookups",
     "%0 = input : f32[100,32]\n%1 = input : i32[8]\n%2 = gather{axis=-2} %0 %1 : f32[8,32]\n"
     "%3 = exp %2 : f32[8,32]\nreturn %3\n",
     "",
     "%0 = input : f32[100,32]\n%1 = input : i32[8]\n%2 = check_indices{limit=100} %1 : i32[8]\n"
     "%3 = indexed_rows{shape=[8,32]} %0 %2 : f32[8,32]\n%4 = exp %3 : f32[8,32]\nreturn %4\n"},
    {"fuse", chain, "library %2 -> %2\nloops %3 %4 %5 -> %4 %5\n"},
    {"single", chain, "library %2 -> %2\nloops %3 -> %3\nloops %4 -> %4\nloops %5 -> %5\n"},
    {"rederive", late_readers + "%7 = multiply %6 %2" + large + "%8" + product + "%3 %7" + large + "return %8\n",
     "library %1 -> %1\nloops %2 %3 -> %3\nlibrary %4 -> %4\nlibrary %5 -> %5\nlibrary %6 -> %6\n"
     "loops %7 %8 -> %8\nlibrary %9 -> %9\n",
     late_readers + "%7 = square %1" + large + "%8 = multiply %6 %7" + large + "%9" + product + "%3 %8" + large +
         "return %9\n"},
    {"remake", late_readers + "%7 = multiply %6 %2" + large + "%8" + product + "%3 %7" + large + "return %8\n",
     "library %1 -> %1\nloops %2 %3 -> %3\nlibrary %4 -> %4\nlibrary %5 -> %5\nlibrary %6 -> %6\n"
     "loops %7 %8 %9 -> %8 %9\nlibrary %10 -> %10\n",
     late_readers + "%7 = square %1" + large + "%8 = multiply %6 %7" + large + "%9 = multiply %7 %1" + large + "%10" +
         product + "%9 %8" + large + "return %10\n"},
    // The check of indices may fail, so it comes first; the negation only makes an output, so it comes last.
    {"order",
     "%0 = input : f32[100,32]\n%1 = input : i32[8]\n%2 = negative %0 : f32[100,32]\n"
     "%3 = gather{axis=-2} %0 %1 : f32[8,32]\n%4 = exp %3 : f32[8,32]\nreturn %2 %4\n",
     "library %3 -> %3\nloops %2 -> %2\nloops %5 -> %5\n",
     "%0 = input : f32[100,32]\n%1 = input : i32[8]\n%2 = negative %0 : f32[100,32]\n"
     "%3 = check_indices{limit=100} %1 : i32[8]\n%4 = indexed_rows{shape=[8,32]} %0 %3 : f32[8,32]\n"
     "%5 = exp %4 : f32[8,32]\nreturn %2 %5\n"},
    {"epilogues",
     "%0 = input : f32[64,64]\n%1" + product + "%0 %0 : f32[64,64]\n%2 = exp %1 : f32[64,64]\n" +
         "%3 = negative %2 : f32[64,64]\nreturn %3\n",
     "product %1* %2 %3 -> %3\n"},
};
INSTANTIATE_TEST_SUITE_P(Goldens, StepPasses, testing::ValuesIn(goldens),
                         [](const auto& info) { return std::string(info.param.pass); });

/// The steps of the interpreter, too.
TEST(InterpreterStepPasses, AreSingle) {
  Graph graph = parse_graph(chain);
  EXPECT_EQ(to_text(run_step_passes(interpreter_step_passes(), graph, {})),
            "library %2 -> %2\nloops %3 -> %3\nloops %4 -> %4\nloops %5 -> %5\n");
}

// ---------------------------------------------------------------- faults

struct Fault {
  const char* name;
  void (*make)(std::vector<Step>&);
  const char* words;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }
class FaultySteps : public testing::TestWithParam<Fault> {};

/// Of `chain`, whose steps are: library %2 -> %2; loops %3 %4 %5 -> %4 %5.
TEST_P(FaultySteps, AreFound) {
  Graph graph = parse_graph(chain);
  std::vector<Step> steps = fuse(graph, true);
  verify(graph, steps);
  GetParam().make(steps);
  try {
    verify(graph, steps);
    FAIL() << to_text(steps);
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().words), std::string::npos) << error.what();
  }
}

const Fault faults[] = {
    {"InAnotherOrder", [](auto& s) { std::swap(s[0], s[1]); }, "step 0 reads %2, which no step before it writes"},
    {"NotWritten", [](auto& s) { s[0].outputs = {}; }, "step 1 reads %2, which no step before it writes"},
    {"AStepIsMissing", [](auto& s) { s.erase(s.begin()); }, "step 0 reads %2, which no step before it writes"},
    {"AnOutputIsMissing", [](auto& s) { s[1].outputs = {5}; }, "the graph yields %4, which no step writes"},
    {"WritesAnother", [](auto& s) { s[0].outputs = {2, 3}; }, "step 0 writes what it does not compute"},
    {"Twice", [](auto& s) { s.push_back(s[1]); }, "%3 is a member of steps 1 and 2"},
    {"NoMembers", [](auto& s) { s[1].members = {}; }, "step 1 has no members"},
    {"Descending", [](auto& s) { s[1].members = {4, 3, 5}; }, "step 1 is not ascending"},
    {"Foreign", [](auto& s) { s[1].members.push_back(6); }, "has a member %6 that the graph lacks"},
    {"OfAnotherKind", [](auto& s) { s[0].kind = Step::Kind::loops; }, "step 0 cannot compute %2"},
    {"AnInput", [](auto& s) { s[1].members = {0, 3, 4, 5}; }, "step 1 cannot compute %0"},
    {"AProductOfLoops", [](auto& s) { s[1].product = 3; }, "has a product that is none of its kind"},
};
INSTANTIATE_TEST_SUITE_P(Steps, FaultySteps, testing::ValuesIn(faults),
                         [](const auto& info) { return std::string(info.param.name); });

struct SharingFault {
  const char* name;
  std::string graph;
  Sharing sharing;
  const char* words;
};
void PrintTo(const SharingFault& fault, std::ostream* out) { *out << fault.name; }
class FaultySharing : public testing::TestWithParam<SharingFault> {};

TEST_P(FaultySharing, IsFound) {
  const Graph graph = parse_graph(GetParam().graph);
  const std::vector<Step> steps = fuse(graph, false);
  verify(graph, steps, plan_sharing(graph, steps));
  try {
    verify(graph, steps, GetParam().sharing);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam().words), std::string::npos) << error.what();
  }
}

const std::string two_readers =
    "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = negative %0 : f32[4]\n%3 = sum{axis=-1} %0 : f32[1]\n";

const SharingFault sharing_faults[] = {
    {"ReadLater", two_readers + "return %1 %2 %3\ndying %0\n", {{0, -1, -1}}, "reads %0, which is taken over by %1"},
    {"NotDying", two_readers + "return %1 %2 %3\n", {{-1, 0, -1}}, "takes over %0, which does not die"},
    {"OfAnotherSpec", two_readers + "return %1 %2 %3\ndying %0\n", {{-1, -1, 0}}, "which has another spec"},
    {"Twice", two_readers + "return %1 %2 %3\ndying %0\n", {{0, 0, -1}}, "%0 is taken over twice"},
    {"OfTooFew", two_readers + "return %1 %2 %3\ndying %0\n", {{-1}}, "sharing is of 1 outputs, the graph has 3"},
    {"WithinAnOutputThoughReadLater",
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = negative %0 : f32[4]\n%3 = exp %1 : f32[4]\nreturn %2 %3\n",
     {{-1, -1}, {{1, 2}}},
     "reads %1, which lies within %2"},
    {"BeforeSomethingThatMayFail",
     "%0 = input : f32[4]\n%1 = input : i32[4]\n%2 = exp %0 : f32[4]\n%3 = check_indices{limit=4} %1 : i32[4]\n"
     "return %2 %3\ndying %0\n",
     {{0, -1}},
     "may fail when %0 is lost to %2"},
};
INSTANTIATE_TEST_SUITE_P(Sharing, FaultySharing, testing::ValuesIn(sharing_faults),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradus::pipeline_test
