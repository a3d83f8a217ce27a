/// Which gathers are read where their rows lie, and what becomes of the graph.
#include "gradus/compiler/lookups.h"
#include <gtest/gtest.h>
#include "gradus/compiler/passes.h"
#include "gradus/compiler/pipeline.h"

namespace gradus::lookups_test {
namespace {

struct Row {
  const char* name;
  std::string before, after;  // empty: nothing changes
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }
class LookupRows : public testing::TestWithParam<Row> {};

TEST_P(LookupRows, AsWritten) {
  Graph graph = parse_graph(GetParam().before);
  look_up_in_place(graph);
  verify(graph);
  EXPECT_EQ(to_text(graph), to_text(parse_graph(GetParam().after.empty() ? GetParam().before : GetParam().after)));
}

const std::string inputs = "%0 = input : f32[100,32]\n%1 = input : i32[8]\n",
                  gathered = inputs + "%2 = gather{axis=-2} %0 %1 : f32[8,32]\n",
                  in_place = inputs +
                             "%2 = check_indices{limit=100} %1 : i32[8]\n"
                             "%3 = indexed_rows{shape=[8,32]} %0 %2 : f32[8,32]\n";

const Row rows[] = {
    {"ByAFormula", gathered + "%3 = exp %2 : f32[8,32]\nreturn %3\ndying %1\n",
     in_place + "%4 = exp %3 : f32[8,32]\nreturn %4\ndying %1\n"},
    {"ByAReduction", gathered + "%3 = sum{axis=-1} %2 : f32[8,1]\nreturn %3\n",
     in_place + "%4 = sum{axis=-1} %3 : f32[8,1]\nreturn %4\n"},
    {"UnderAnotherShape",
     gathered + "%3 = reshape{shape=[2,4,32]} %2 : f32[2,4,32]\n%4 = exp %3 : f32[2,4,32]\nreturn %4\n",
     inputs + "%2 = check_indices{limit=100} %1 : i32[8]\n%3 = indexed_rows{shape=[8,32]} %0 %2 : f32[8,32]\n"
              "%4 = indexed_rows{shape=[2,4,32]} %0 %2 : f32[2,4,32]\n%5 = exp %4 : f32[2,4,32]\nreturn %5\n"},
    {"OneCheckForTwo",
     inputs + "%2 = input : i8[100,16]\n%3 = gather{axis=-2} %0 %1 : f32[8,32]\n%4 = exp %3 : f32[8,32]\n"
              "%5 = gather{axis=-2} %2 %1 : i8[8,16]\n%6 = negative %5 : i8[8,16]\nreturn %4 %6\n",
     inputs + "%2 = input : i8[100,16]\n%3 = check_indices{limit=100} %1 : i32[8]\n"
              "%4 = indexed_rows{shape=[8,32]} %0 %3 : f32[8,32]\n%5 = exp %4 : f32[8,32]\n"
              "%6 = indexed_rows{shape=[8,16]} %2 %3 : i8[8,16]\n%7 = negative %6 : i8[8,16]\nreturn %5 %7\n"},
    {"OfAnOpenNumber",
     "%0 = input : f32[100,32]\n%1 = input : i32[s0]\n%2 = gather{axis=-2} %0 %1 : f32[s0,32]\n"
     "%3 = exp %2 : f32[s0,32]\nreturn %3\n",
     "%0 = input : f32[100,32]\n%1 = input : i32[s0]\n%2 = check_indices{limit=100} %1 : i32[s0]\n"
     "%3 = indexed_rows{shape=[s0,32]} %0 %2 : f32[s0,32]\n%4 = exp %3 : f32[s0,32]\nreturn %4\n"},
    {"OfATemporaryThatIsNotLarger",
     "%0 = input : f32[8,32]\n%1 = input : i32[8]\n%2 = exp %0 : f32[8,32]\n"
     "%3 = gather{axis=-2} %2 %1 : f32[8,32]\n%4 = exp %3 : f32[8,32]\nreturn %4\n",
     "%0 = input : f32[8,32]\n%1 = input : i32[8]\n%2 = exp %0 : f32[8,32]\n%3 = check_indices{limit=8} %1 : i32[8]\n"
     "%4 = indexed_rows{shape=[8,32]} %2 %3 : f32[8,32]\n%5 = exp %4 : f32[8,32]\nreturn %5\n"},
    {"NotOfALargerTemporary",
     "%0 = input : f32[9,32]\n%1 = input : i32[8]\n%2 = exp %0 : f32[9,32]\n"
     "%3 = gather{axis=-2} %2 %1 : f32[8,32]\n%4 = exp %3 : f32[8,32]\nreturn %4\n",
     ""},
    {"NotOfWhatIsTakenOver", gathered + "%3 = exp %2 : f32[8,32]\nreturn %3\ndying %0\n", ""},
    {"NotWhatIsYielded", gathered + "%3 = exp %2 : f32[8,32]\nreturn %3 %2\n", ""},
    {"NotWhatAProductReads",
     gathered + "%3 = matmul{transpose_a=false; transpose_b=true} %2 %2 : f32[8,8]\nreturn %3\n", ""},
    {"NotWhatIsViewed", gathered + "%3 = transpose{order=[0,1]} %2 : f32[32,8]\n%4 = exp %3 : f32[32,8]\nreturn %4\n",
     ""},
    {"NotWhatTwoStepsRead",
     gathered + "%3 = exp %2 : f32[8,32]\n%4 = matmul{transpose_a=false; transpose_b=true} %3 %3 : f32[8,8]\n"
                "%5 = matmul{transpose_a=false; transpose_b=false} %4 %3 : f32[8,32]\n"
                "%6 = multiply %5 %2 : f32[8,32]\nreturn %6\n",
     ""},
    {"NotShortRows",
     "%0 = input : f32[100,15]\n%1 = input : i32[8]\n%2 = gather{axis=-2} %0 %1 : f32[8,15]\n"
     "%3 = exp %2 : f32[8,15]\nreturn %3\n",
     ""},
    {"NotAlongAnotherAxis",
     "%0 = input : f32[2,100,32]\n%1 = input : i32[8]\n%2 = gather{axis=-2} %0 %1 : f32[2,8,32]\n"
     "%3 = exp %2 : f32[2,8,32]\nreturn %3\n",
     ""},
};
INSTANTIATE_TEST_SUITE_P(Rows, LookupRows, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

/// Such a view has the walk of its source, in another order of rows.
TEST(Lookups, OfAsManyRowsAsThereAreStay) {
  const std::string source =
      "%0 = input : f32[8,32]\n%1 = input : i64[8]\n"
      "%2 = indexed_rows{shape=[8,32]} %0 %1 : f32[8,32]\nreturn %2\n";
  Graph graph = parse_graph(source);
  run_graph_passes(graph, {});
  EXPECT_EQ(to_text(graph), source);
}

TEST(LookupsInSteps, OneStepReadsAllThatItNeeds) {
  Graph graph = parse_graph(gathered + "%3 = exp %2 : f32[8,32]\n%4 = sum{axis=-1} %3 : f32[8,1]\nreturn %3 %4\n");
  look_up_in_place(graph);
  const std::vector<Step> steps = fuse(graph, true);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].space, (Shape{8, 32}));
  const std::vector<Read> reads = reads_of(graph, steps[1]);
  ASSERT_EQ(reads.size(), 2u);
  EXPECT_TRUE(reads[0].is_table);
  EXPECT_EQ(reads[0].storage, 2);
  EXPECT_EQ(reads[1].storage, 0);
}

}  // namespace
}  // namespace gradus::lookups_test
