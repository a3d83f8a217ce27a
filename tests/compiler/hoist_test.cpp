/// What goes before a loop, and what does not.
#include <gtest/gtest.h>
#include "gradus/compiler/passes.h"
#include "gradus/ops/control_ops.h"

namespace gradus::hoist_test {
namespace {

/// A scan of 5 iterations over %1, with carry %0 and the whole %2 (and %3), whose body is `body`.
Graph loop_of(const std::string& body) {
  return parse_graph(
      "%0 = input : f32[2,3]\n%1 = input : f32[5,2,3]\n%2 = input : f32[3,3]\n%3 = input : f32[3]\n"
      "%4 = scan{body={%0 = input : f32[2,3] | %1 = input : f32[2,3] | %2 = input : f32[3,3] | "
      "%3 = input : f32[3] | " +
      body +
      "}; last={}; carries=1; singles=1; chunks=0; stacked=0; iterations=5; rows=0; last_rows=0; "
      "reverse=false; counted=false; output=0} %0 %1 %2 %3 : f32[2,3]\nreturn %4\n");
}

struct HoistRow {
  const char* name;
  const char* body;
  std::vector<std::string> outside;  // ops that now stand before the loop, in order
};

const HoistRow rows[] = {
    {"what_is_the_same_in_all_iterations",
     "%4 = exp %2 : f32[3,3] | %5 = sin %4 : f32[3,3] | "
     "%6 = matmul{transpose_a=false; transpose_b=false} %0 %5 : f32[2,3] | return %6",
     {"exp", "sin"}},
    {"a_transposed_operand",
     "%4 = matmul{transpose_a=false; transpose_b=true} %0 %2 : f32[2,3] | return %4",
     {"transpose"}},
    {"once_for_two_readers",
     "%4 = matmul{transpose_a=false; transpose_b=true} %0 %2 : f32[2,3] | "
     "%5 = matmul{transpose_a=false; transpose_b=true} %4 %2 : f32[2,3] | return %5",
     {"transpose"}},
    {"a_view_that_has_to_stand_in_memory",
     "%4 = reverse{dimensions=1} %2 : f32[3,3] | "
     "%5 = matmul{transpose_a=false; transpose_b=false} %0 %4 : f32[2,3] | return %5",
     {"reverse"}},
    {"not_a_view_that_is_read_in_place",
     "%4 = broadcast{shape=[2,3]} %3 : f32[2,3] | %5 = add %0 %4 : f32[2,3] | return %5",
     {}},
    {"but_what_it_views",
     "%4 = exp %3 : f32[3] | %5 = broadcast{shape=[2,3]} %4 : f32[2,3] | %6 = add %0 %5 : f32[2,3] | return %6",
     {"exp"}},
    {"not_what_varies",
     "%4 = exp %1 : f32[2,3] | %5 = matmul{transpose_a=false; transpose_b=false} %4 %2 : f32[2,3] | return %5",
     {}},
    {"not_constants",
     "%4 = fill{value=2; dtype=f32} : f32[] | %5 = broadcast{shape=[2,3]} %4 : f32[2,3] | "
     "%6 = multiply %0 %5 : f32[2,3] | return %6",
     {}},
};

class Hoist : public testing::TestWithParam<HoistRow> {};

TEST_P(Hoist, MovesOut) {
  Graph graph = loop_of(GetParam().body);
  hoist(graph);
  verify(graph);
  std::vector<std::string> outside;
  for (const Value& v : graph.values)
    if (v.op && !v.op.is_control()) outside.emplace_back(v.op->name);
  EXPECT_EQ(outside, GetParam().outside) << to_text(graph);
  const Graph once = graph;
  hoist(graph);
  EXPECT_EQ(to_text(graph), to_text(once)) << "nothing is left to be moved";
}
INSTANTIATE_TEST_SUITE_P(Rows, Hoist, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(Hoist, RewritesAsWritten) {
  Graph graph = loop_of(rows[0].body);
  hoist(graph);
  EXPECT_EQ(to_text(graph),
            "%0 = input : f32[2,3]\n%1 = input : f32[5,2,3]\n%2 = input : f32[3,3]\n%3 = input : f32[3]\n"
            "%4 = exp %2 : f32[3,3]\n%5 = sin %4 : f32[3,3]\n"
            "%6 = scan{body={%0 = input : f32[2,3] | %1 = input : f32[2,3] | %2 = input : f32[3,3] | %3 = input "
            ": f32[3] | %4 = input : f32[3,3] | %5 = exp %2 : f32[3,3] | %6 = sin %5 : f32[3,3] | %7 = "
            "matmul{transpose_a=false; transpose_b=false} %0 %4 : f32[2,3] | return %7}; last={}; carries=1; "
            "singles=1; chunks=0; stacked=0; iterations=5; rows=0; last_rows=0; reverse=false; counted=false; "
            "output=0} %0 %1 %2 %3 %5 : f32[2,3]\nreturn %6\n");
}

TEST(Hoist, SiblingsStayOneLoop) {
  Graph graph = loop_of("%4 = matmul{transpose_a=false; transpose_b=true} %0 %2 : f32[2,3] | return %4");
  Value history = graph[graph.outputs[0]];
  history.op = history.op.sibling(1);
  history.spec.shape.insert(0, 5);
  graph.outputs.push_back(graph.add(history));
  hoist(graph);
  verify(graph);
  const Value &a = graph[graph.outputs[0]], &b = graph[graph.outputs[1]];
  EXPECT_EQ(a.op.sibling(0), b.op.sibling(0));
  EXPECT_EQ(a.in, b.in);
}

TEST(Hoist, ReachesInnerLoops) {
  Graph graph = loop_of(
      "%4 = exp %2 : f32[3,3] | %5 = fill{value=1; dtype=bool} : bool[] | %6 = cond{if_true={%0 = input : f32[2,3] | "
      "%1 = input : f32[3,3] | "
      "%2 = matmul{transpose_a=false; transpose_b=false} %0 %1 : f32[2,3] | return %2}; "
      "if_false={%0 = input : f32[2,3] | %1 = input : f32[3,3] | return %0}; output=0} %5 %0 %4 : f32[2,3] | return "
      "%6");
  hoist(graph);
  verify(graph);
  EXPECT_EQ(graph[4].op->name, "exp") << to_text(graph);
}

}  // namespace
}  // namespace gradus::hoist_test
