/// The memory that a plan foresees, for each kind of step, beside what the program of the same graph takes.
#include <gtest/gtest.h>
#include "gradus/backend/cpu/budget.h"
#include "gradus/compiler/recompute.h"
#include "tests/threads.h"

namespace gradus::planned_memory_test {
namespace {

struct Row {
  const char* name;
  std::string graph;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
class PlannedMemory : public testing::TestWithParam<Row> {};

/// The program that keeps to the smallest budget.
std::shared_ptr<const CpuProgram> smallest_program(const Graph& graph, std::int64_t& budget) {
  budget = 1;
  try {
    return cpu_backend::compile(graph, {.max_bytes = budget});
  } catch (const BudgetTooSmall& error) { budget = error.smallest(); }
  return cpu_backend::compile(graph, {.max_bytes = budget});
}

TEST_P(PlannedMemory, IsAtLeastWhatAProgramTakes) {
  const Graph graph = parse_graph(GetParam().graph);
  for (const int threads : {1, 2, 3}) {
    const Threads scope(threads);
    const auto program = cpu_backend::compile(graph);
    const PlannedUse planned = planned_use(graph, {});
    EXPECT_EQ(planned.slots, program->slots()) << threads << " threads";
    EXPECT_GE(planned.arena_bytes, program->report().arena_bytes) << threads << " threads";
    std::int64_t budget = 0;
    EXPECT_LE(smallest_program(graph, budget)->report().temporary_bytes, budget) << threads << " threads";
  }
}

const std::string matrix = "f32[260,260]", three = "f32[3,260,260]";
const std::string input = "%0 = input : " + matrix + "\n", inputs = "%0 = input : " + three + "\n";
const std::string product = " = matmul{transpose_a=false; transpose_b=false} ";

/// One op on one matrix, or on one operand twice; only teams that divide a matrix need memory that they share.
std::string of_matrix(const std::string& op) { return input + "%1 = " + op + " : " + matrix + "\nreturn %1\n"; }

const Row rows[] = {
    {"Formulas", input + "%1 = exp %0 : " + matrix + "\n%2" + product + "%1 %1 : " + matrix + "\nreturn %2\n"},
    {"RowReduction", "%0 = input : f32[3,200000]\n%1 = sum{axis=-1} %0 : f32[3,1]\nreturn %1\n"},
    {"ColumnReduction", "%0 = input : f32[9000,40]\n%1 = sum{axis=-2} %0 : f32[1,40]\nreturn %1\n"},
    {"ProductWithFormulas", input + "%1" + product + "%0 %0 : " + matrix + "\n%2 = tanh %1 : " + matrix +
                                "\n%3 = add %2 %0 : " + matrix + "\nreturn %3\n"},
    {"Convolution",
     "%0 = input : f32[4,24,24,64]\n%1 = input : f32[3,3,64,64]\n%2 = convolution{strides=[1,1]; dilations=[1,1]; "
     "before=[1,1]; size=[24,24]; groups=1} %0 %1 : f32[4,24,24,64]\nreturn %2\n"},
    {"Cholesky", of_matrix("cholesky %0")},
    {"ThreeCholeskys", inputs + "%1 = cholesky %0 : " + three + "\nreturn %1\n"},
    {"Solve", of_matrix("solve %0 %0")},
    {"TriangularSolve", of_matrix("triangular_solve{lower=true} %0 %0")},
    {"Inverse", of_matrix("inverse %0")},
    {"Det", input + "%1 = det %0 : f32[]\nreturn %1\n"},
    {"ScaledDet", input + "%1 = scaled_det %0 : f32[2]\nreturn %1\n"},
    {"CholeskyInALoop",
     input + "%1 = scan{body={%0 = input : " + matrix + " | %1 = cholesky %0 : " + matrix +
         " | return %1}; last={}; carries=1; singles=0; chunks=0; stacked=0; iterations=5; rows=0; last_rows=0; "
         "reverse=false; counted=false; output=0} %0 : " +
         matrix + "\nreturn %1\n"},
};
INSTANTIATE_TEST_SUITE_P(Rows, PlannedMemory, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace gradus::planned_memory_test
