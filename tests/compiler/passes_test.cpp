/// Graph passes, text in and text out.
#include "gradus/compiler/passes.h"
#include "gradus/compiler/pipeline.h"
#include <gtest/gtest.h>
#include <algorithm>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::passes_test {
namespace {

struct Row {
  const char* name;
  void (*pass)(Graph&);
  std::string before, after;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

void simplify_and_clean(Graph& graph) {
  simplify(graph);
  eliminate_common_subexpressions(graph);
}
void fold_and_clean(Graph& graph) {
  fold_constants(graph);
  eliminate_common_subexpressions(graph);
}

class Passes : public testing::TestWithParam<Row> {};

TEST_P(Passes, RewriteAsWritten) {
  Graph graph = parse_graph(GetParam().before);
  GetParam().pass(graph);
  verify(graph);
  EXPECT_EQ(to_text(graph), to_text(parse_graph(GetParam().after)));
}

const Row rows[] = {
    {"FoldsFormulasOfConstants", fold_and_clean,
     "%0 = constant{0x40000000} : f32[4]\n%1 = constant{0x40400000} : f32[4]\n%2 = add %0 %1 : f32[4]\nreturn %2\n",
     "%0 = constant{0x40a00000} : f32[4]\nreturn %0\n"},
    {"FoldsViewsAndShapes", fold_and_clean,
     "%0 = constant{0x7} : i32[]\n%1 = broadcast{shape=[2,3]} %0 : i32[2,3]\n"
     "%2 = reshape{shape=[6]} %1 : i32[6]\nreturn %2\n",
     "%0 = constant{0x7} : i32[6]\nreturn %0\n"},
    {"FoldsFillsAndKnownExtents", fold_and_clean,
     "%0 = fill{value=2; dtype=f32} : f32[]\n%1 = extent{dimension=64; dtype=f32} : f32[]\n"
     "%2 = multiply %0 %1 : f32[]\nreturn %2\n",
     "%0 = constant{0x43000000} : f32[]\nreturn %0\n"},
    {"LeavesSymbolicExtents", fold_and_clean, "%0 = extent{dimension=s0; dtype=f32} : f32[]\nreturn %0\n",
     "%0 = extent{dimension=s0; dtype=f32} : f32[]\nreturn %0\n"},
    {"LeavesWhatDependsOnInputs", fold_and_clean,
     "%0 = input : f32[4]\n%1 = constant{0x0} : f32[4]\n%2 = multiply %0 %1 : f32[4]\nreturn %2\n",
     "%0 = input : f32[4]\n%1 = constant{0x0} : f32[4]\n%2 = multiply %0 %1 : f32[4]\nreturn %2\n"},
    {"FoldsAsItWouldRun", fold_and_clean,  // subnormals are zero: 1e-40 * 1
     "%0 = constant{0x116c2} : f32[]\n%1 = constant{0x3f800000} : f32[]\n%2 = multiply %0 %1 : f32[]\nreturn %2\n",
     "%0 = constant{0x0} : f32[]\nreturn %0\n"},
    {"JoinsSumsOfPaddedParts", simplify_and_clean,
     "%0 = input : f32[4,1]\n%1 = input : f32[4,1]\n%2 = constant{0x0} : f32[4,2]\n"
     "%3 = concat{axis=-1} %0 %2 : f32[4,3]\n%4 = concat{axis=-1} %2 %1 : f32[4,3]\n%5 = add %3 %4 : f32[4,3]\n"
     "return %5\n",
     "%0 = input : f32[4,1]\n%1 = input : f32[4,1]\n%2 = constant{0x0} : f32[4,1]\n%3 = add %0 %2 : f32[4,1]\n"
     "%4 = add %2 %1 : f32[4,1]\n%5 = concat{axis=-1} %3 %2 %4 : f32[4,3]\nreturn %5\n"},
    {"JoinsSumsOfSums", simplify_and_clean,  // of integers nothing is added to zeros
     "%0 = input : i32[1,2]\n%1 = input : i32[1,2]\n%2 = constant{0x0} : i32[2,2]\n%3 = constant{0x0} : i32[1,2]\n"
     "%4 = concat{axis=-2} %0 %2 : i32[3,2]\n%5 = concat{axis=-2} %3 %1 %3 : i32[3,2]\n%6 = add %4 %5 : i32[3,2]\n"
     "%7 = concat{axis=-2} %1 %2 : i32[3,2]\n%8 = add %6 %7 : i32[3,2]\nreturn %8\n",
     "%0 = input : i32[1,2]\n%1 = input : i32[1,2]\n%2 = add %0 %1 : i32[1,2]\n%3 = constant{0x0} : i32[1,2]\n"
     "%4 = concat{axis=-2} %2 %1 %3 : i32[3,2]\nreturn %4\n"},
    {"CutsNoPaddedPart", simplify_and_clean,
     "%0 = input : f32[4,2]\n%1 = constant{0x0} : f32[4,1]\n%2 = concat{axis=-1} %0 %1 : f32[4,3]\n"
     "%3 = concat{axis=-1} %1 %0 : f32[4,3]\n%4 = add %2 %3 : f32[4,3]\nreturn %4\n",
     "%0 = input : f32[4,2]\n%1 = constant{0x0} : f32[4,1]\n%2 = concat{axis=-1} %0 %1 : f32[4,3]\n"
     "%3 = concat{axis=-1} %1 %0 : f32[4,3]\n%4 = add %2 %3 : f32[4,3]\nreturn %4\n"},
    {"MultipliesByOne", simplify_and_clean,
     "%0 = input : f32[4]\n%1 = constant{0x3f800000} : f32[4]\n%2 = square %0 : f32[4]\n%3 = multiply %1 %2 : f32[4]\n"
     "%4 = divide %3 %1 : f32[4]\n%5 = negative %4 : f32[4]\nreturn %5\n",
     "%0 = input : f32[4]\n%1 = square %0 : f32[4]\n%2 = negative %1 : f32[4]\nreturn %2\n"},
    {"MultipliesWhatWasMovedByOne", simplify_and_clean,
     "%0 = input : f32[4]\n%1 = input : bool[2,2]\n%2 = constant{0x3f800000} : f32[2,2]\n%3 = square %0 : f32[4]\n"
     "%4 = reshape{shape=[2,2]} %3 : f32[2,2]\n%5 = transpose{order=[0,1]} %4 : f32[2,2]\n"
     "%6 = where %1 %5 %2 : f32[2,2]\n%7 = max{axis=-1} %6 : f32[2,1]\n"
     "%8 = broadcast{shape=[2,2]} %7 : f32[2,2]\n%9 = multiply %8 %2 : f32[2,2]\nreturn %9\n",
     "%0 = input : f32[4]\n%1 = input : bool[2,2]\n%2 = constant{0x3f800000} : f32[2,2]\n%3 = square %0 : f32[4]\n"
     "%4 = reshape{shape=[2,2]} %3 : f32[2,2]\n%5 = transpose{order=[0,1]} %4 : f32[2,2]\n"
     "%6 = where %1 %5 %2 : f32[2,2]\n%7 = max{axis=-1} %6 : f32[2,1]\n"
     "%8 = broadcast{shape=[2,2]} %7 : f32[2,2]\nreturn %8\n"},
    {"LeavesTheShapeOfAnAliasWithoutOne", simplify_and_clean,
     "%0 = input : f64[3,1]\n%1 = reshape{shape=[1,3]} %0 : f64[1,3]\n%2 = reshape{shape=[3]} %1 : f64[3]\n"
     "%3 = on_shard{length=0} %2 : f64[3]\n%4 = sin %3 : f64[3]\nreturn %4\n",
     "%0 = input : f64[3,1]\n%1 = reshape{shape=[3]} %0 : f64[3]\n%2 = sin %1 : f64[3]\nreturn %2\n"},
    {"LeavesWhatFlushesSubnormals", simplify_and_clean,
     "%0 = input : f32[2,2]\n%1 = constant{0x3f800000} : f32[2,2]\n%2 = multiply %0 %1 : f32[2,2]\n"
     "%3 = transpose{order=[0,1]} %0 : f32[2,2]\n%4 = divide %3 %1 : f32[2,2]\n%5 = negative %0 : f32[2,2]\n"
     "%6 = multiply %1 %5 : f32[2,2]\nreturn %2 %4 %6\n",
     "%0 = input : f32[2,2]\n%1 = constant{0x3f800000} : f32[2,2]\n%2 = multiply %0 %1 : f32[2,2]\n"
     "%3 = transpose{order=[0,1]} %0 : f32[2,2]\n%4 = divide %3 %1 : f32[2,2]\n%5 = negative %0 : f32[2,2]\n"
     "%6 = multiply %1 %5 : f32[2,2]\nreturn %2 %4 %6\n"},
    {"SubnormalsOfBf16AreFlushedThoseOfF16AreNot", simplify_and_clean,
     "%0 = input : bf16[4]\n%1 = constant{0x3f80} : bf16[4]\n%2 = multiply %0 %1 : bf16[4]\n%3 = input : f16[4]\n"
     "%4 = constant{0x3c00} : f16[4]\n%5 = multiply %3 %4 : f16[4]\nreturn %2 %5\n",
     "%0 = input : bf16[4]\n%1 = constant{0x3f80} : bf16[4]\n%2 = multiply %0 %1 : bf16[4]\n%3 = input : f16[4]\n"
     "return %2 %3\n"},
    {"AddsNothing", simplify_and_clean,  // x + 0 turns -0 into 0, so it stays
     "%0 = input : f32[4]\n%1 = constant{0x0} : f32[4]\n%2 = constant{0x80000000} : f32[4]\n%3 = add %0 %1 : f32[4]\n"
     "%4 = add %3 %2 : f32[4]\n%5 = subtract %4 %1 : f32[4]\nreturn %5\n",
     "%0 = input : f32[4]\n%1 = constant{0x0} : f32[4]\n%2 = add %0 %1 : f32[4]\nreturn %2\n"},
    {"AddsNothingToIntegers", simplify_and_clean,
     "%0 = input : i32[4]\n%1 = constant{0x0} : i32[4]\n%2 = add %0 %1 : i32[4]\nreturn %2\n",
     "%0 = input : i32[4]\nreturn %0\n"},
    {"DividesOneByX", simplify_and_clean,
     "%0 = input : f32[4]\n%1 = constant{0x3f800000} : f32[4]\n%2 = divide %1 %0 : f32[4]\nreturn %2\n",
     "%0 = input : f32[4]\n%1 = constant{0x3f800000} : f32[4]\n%2 = divide %1 %0 : f32[4]\nreturn %2\n"},
    {"DropsCastsToTheSameType", simplify_and_clean, "%0 = input : f32[4]\n%1 = cast{to=f32} %0 : f32[4]\nreturn %1\n",
     "%0 = input : f32[4]\nreturn %0\n"},
    {"JoinsReshapes", simplify_and_clean,
     "%0 = input : f32[4,s0]\n%1 = reshape{shape=[4*s0]} %0 : f32[4*s0]\n"
     "%2 = reshape{shape=[2,2*s0]} %1 : f32[2,2*s0]\n%3 = reshape{shape=[2,2*s0]} %2 : f32[2,2*s0]\n"
     "%4 = reshape{shape=[4,s0]} %3 : f32[4,s0]\nreturn %3 %4\n",
     "%0 = input : f32[4,s0]\n%1 = reshape{shape=[2,2*s0]} %0 : f32[2,2*s0]\nreturn %1 %0\n"},
    {"DropsViewsOfEverything", simplify_and_clean,
     "%0 = input : f32[4,5]\n%1 = transpose{order=[1,0]} %0 : f32[4,5]\n%2 = slice{begin=[0,0]; size=[4,5]} %1 : "
     "f32[4,5]\n"
     "%3 = broadcast{shape=[4,5]} %2 : f32[4,5]\nreturn %3\n",
     "%0 = input : f32[4,5]\nreturn %0\n"},
    {"ProductsReadTransposedOperands", simplify_and_clean,
     "%0 = input : f32[7,4,5]\n%1 = input : f32[6,5]\n%2 = transpose{order=[2,0,1]} %0 : f32[7,5,4]\n"
     "%3 = transpose{order=[0,1]} %1 : f32[5,6]\n"
     "%4 = matmul{transpose_a=true; transpose_b=false} %2 %3 : f32[7,4,6]\nreturn %4\n",
     "%0 = input : f32[7,4,5]\n%1 = input : f32[6,5]\n"
     "%2 = matmul{transpose_a=false; transpose_b=true} %0 %1 : f32[7,4,6]\nreturn %2\n"},
    {"RepeatedRowsAreMultipliedOnce", simplify_and_clean,
     "%0 = input : f32[10,5]\n%1 = input : f32[6,5]\n%2 = reshape{shape=[10,1,5]} %0 : f32[10,1,5]\n"
     "%3 = broadcast{shape=[10,s0,5]} %2 : f32[10,s0,5]\n%4 = reshape{shape=[10*s0,5]} %3 : f32[10*s0,5]\n"
     "%5 = matmul{transpose_a=false; transpose_b=true} %4 %1 : f32[10*s0,6]\n"
     "%6 = reshape{shape=[10,s0,6]} %5 : f32[10,s0,6]\n%7 = exp %6 : f32[10,s0,6]\nreturn %7\n",
     "%0 = input : f32[10,5]\n%1 = input : f32[6,5]\n%2 = reshape{shape=[10,1,5]} %0 : f32[10,1,5]\n"
     "%3 = matmul{transpose_a=false; transpose_b=true} %2 %1 : f32[10,1,6]\n"
     "%4 = broadcast{shape=[10,s0,6]} %3 : f32[10,s0,6]\n%5 = exp %4 : f32[10,s0,6]\nreturn %5\n"},
    {"RowsOfAConstantAreMultipliedOnce", simplify_and_clean,
     "%0 = input : f32[1,6]\n%1 = constant{0x3f800000} : f32[s0,1]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %1 %0 : f32[s0,6]\n"
     "%3 = matmul{transpose_a=false; transpose_b=true} %2 %0 : f32[s0,1]\nreturn %3\n",
     "%0 = input : f32[1,6]\n%1 = constant{0x3f800000} : f32[1,1]\n"
     "%2 = matmul{transpose_a=false; transpose_b=false} %1 %0 : f32[1,6]\n"
     "%3 = matmul{transpose_a=false; transpose_b=true} %2 %0 : f32[1,1]\n"
     "%4 = broadcast{shape=[s0,1]} %3 : f32[s0,1]\nreturn %4\n"},
    {"RowsOfAVectorAreMultipliedOnce", simplify_and_clean,
     "%0 = input : f32[5]\n%1 = input : f32[5,6]\n%2 = broadcast{shape=[3,4,5]} %0 : f32[3,4,5]\n"
     "%3 = matmul{transpose_a=false; transpose_b=false} %2 %1 : f32[3,4,6]\nreturn %3\n",
     "%0 = input : f32[5]\n%1 = input : f32[5,6]\n%2 = broadcast{shape=[1,1,5]} %0 : f32[1,1,5]\n"
     "%3 = matmul{transpose_a=false; transpose_b=false} %2 %1 : f32[1,1,6]\n"
     "%4 = broadcast{shape=[3,4,6]} %3 : f32[3,4,6]\nreturn %4\n"},
    {"LeavesRowsThatDiffer", simplify_and_clean,
     "%0 = input : f32[7,5,1]\n%1 = input : f32[5,6]\n%2 = input : f32[7,5,6]\n%3 = input : f32[5]\n"
     "%4 = broadcast{shape=[7,5,5]} %0 : f32[7,5,5]\n"
     "%5 = matmul{transpose_a=false; transpose_b=false} %4 %1 : f32[7,5,6]\n"
     "%6 = broadcast{shape=[7,4,5]} %3 : f32[7,4,5]\n"
     "%7 = matmul{transpose_a=false; transpose_b=false} %6 %2 : f32[7,4,6]\nreturn %5 %7\n",
     "%0 = input : f32[7,5,1]\n%1 = input : f32[5,6]\n%2 = input : f32[7,5,6]\n%3 = input : f32[5]\n"
     "%4 = broadcast{shape=[7,5,5]} %0 : f32[7,5,5]\n"
     "%5 = matmul{transpose_a=false; transpose_b=false} %4 %1 : f32[7,5,6]\n"
     "%6 = broadcast{shape=[7,4,5]} %3 : f32[7,4,5]\n"
     "%7 = matmul{transpose_a=false; transpose_b=false} %6 %2 : f32[7,4,6]\nreturn %5 %7\n"},
    {"KeepsOneOfEqualValues", eliminate_common_subexpressions,
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = exp %0 : f32[4]\n%3 = add %1 %2 : f32[4]\n"
     "%4 = log %3 : f32[4]\nreturn %3\ndying %0\n",
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = add %1 %1 : f32[4]\nreturn %2\ndying %0\n"},
    {"KeepsInputsThatNobodyReads", eliminate_common_subexpressions,
     "%0 = input : f32[4]\n%1 = input : f32[4]\nreturn %1\n", "%0 = input : f32[4]\n%1 = input : f32[4]\nreturn %1\n"},
    {"CallsGiveWayToTheirRegions", inline_calls,
     "%0 = input : f32[4]\n%1 = call{body={%0 = input : f32[4] | %1 = exp %0 : f32[4] | return %1 %0}; output=0} %0 : "
     "f32[4]\n%2 = call{body={%0 = input : f32[4] | %1 = exp %0 : f32[4] | return %1 %0}; output=1} %0 : f32[4]\n"
     "%3 = add %1 %2 : f32[4]\nreturn %3\n",
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\n%2 = add %1 %0 : f32[4]\nreturn %2\n"},
    {"CallsWithinCallsGiveWayToo", inline_calls,
     "%0 = input : f32[4]\n%1 = call{body={%0 = input : f32[4] | %1 = call{body={%0 = input : f32[4] | %1 = exp %0 : "
     "f32[4] | return %1}; output=0} %0 : f32[4] | return %1}; output=0} %0 : f32[4]\nreturn %1\ndying %0\n",
     "%0 = input : f32[4]\n%1 = exp %0 : f32[4]\nreturn %1\ndying %0\n"},
    {"LeavesBarriers", simplify_and_clean,
     "%0 = input : f32[4]\n%1 = input : f32[]\n%2 = barrier %0 %1 : f32[4]\n%3 = exp %0 : f32[4]\n"
     "%4 = exp %2 : f32[4]\n%5 = add %3 %4 : f32[4]\nreturn %5\n",
     "%0 = input : f32[4]\n%1 = input : f32[]\n%2 = barrier %0 %1 : f32[4]\n%3 = exp %0 : f32[4]\n"
     "%4 = exp %2 : f32[4]\n%5 = add %3 %4 : f32[4]\nreturn %5\n"},
};
INSTANTIATE_TEST_SUITE_P(Rows, Passes, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

TEST(PassRunner, RunsAllButTheDisabled) {
  Graph graph = parse_graph(rows[0].before);
  const std::string off[] = {"fold"};
  run_graph_passes(graph, off);
  EXPECT_EQ(graph.size(), 3);
  run_graph_passes(graph, {});
  EXPECT_EQ(to_text(graph), to_text(parse_graph(rows[0].after)));
}

/// Also where it comes out of a loop, whose iterations would all compute the same.
TEST(PassRunner, LeavesNoAttentionWhereItIsDisabled) {
  const std::string type = "f32[1,4,1,2]";
  const std::string before =
      "%0 = input : " + type + "\n%1 = input : f32[3,1,4,1,2]\n%2 = input : " + type +
      "\n%3 = scan{body={%0 = input : " + type + " | %1 = input : " + type + " | %2 = input : " + type +
      " | %3 = attention{scale=1; causal=false; masked=false; heads_first=false} %2 %2 %2 : " + type +
      " | %4 = add %0 %3 : " + type +
      " | return %4}; last={}; carries=1; singles=1; chunks=0; stacked=0; iterations=3; rows=0; last_rows=0; "
      "reverse=false; counted=false; output=0} %0 %1 %2 : " +
      type + "\nreturn %3\n";
  const auto attentions = [&](const std::vector<std::string>& disable) {
    Graph graph = parse_graph(before);
    run_graph_passes(graph, disable);
    verify(graph);
    return std::ranges::count_if(graph.values, [](const Value& v) { return v.op && v.op->name == "attention"; });
  };
  EXPECT_EQ(attentions({}), 1);
  EXPECT_EQ(attentions({"attention"}), 0);
}

TEST(PassRunner, ComposesAttentionAsWritten) {
  Graph graph = parse_graph(
      "%0 = input : f32[1,4,1,2]\n%1 = attention{scale=1; causal=true; masked=false; heads_first=false} %0 %0 %0 : "
      "f32[1,4,1,2]\n"
      "return %1\n");
  const std::string off[] = {"attention"};
  run_graph_passes(graph, off);
  verify(graph);
  EXPECT_EQ(to_text(graph),
            "%0 = input : f32[1,4,1,2]\n%1 = iota{shape=[4]; dtype=i64} : i64[4]\n"
            "%2 = reshape{shape=[1,1,1,4]} %1 : i64[1,1,1,4]\n%3 = broadcast{shape=[1,1,4,4]} %2 : i64[1,1,4,4]\n"
            "%4 = reshape{shape=[1,1,4,1]} %1 : i64[1,1,4,1]\n%5 = broadcast{shape=[1,1,4,4]} %4 : i64[1,1,4,4]\n"
            "%6 = subtract %3 %5 : i64[1,1,4,4]\n%7 = constant{0x0} : i64[1,1,4,4]\n"
            "%8 = less_equal %6 %7 : bool[1,1,4,4]\n%9 = transpose{order=[3,1,2,0]} %0 : f32[1,1,4,2]\n"
            "%10 = constant{0x3f800000} : f32[1,1,4,2]\n%11 = multiply %9 %10 : f32[1,1,4,2]\n"
            "%12 = reshape{shape=[4,2]} %11 : f32[4,2]\n%13 = transpose{order=[3,2,0,1]} %9 : f32[1,1,2,4]\n"
            "%14 = reshape{shape=[2,4]} %13 : f32[2,4]\n"
            "%15 = matmul{transpose_a=false; transpose_b=false} %12 %14 : f32[4,4]\n"
            "%16 = reshape{shape=[1,1,4,4]} %15 : f32[1,1,4,4]\n%17 = constant{0xff800000} : f32[1,1,4,4]\n"
            "%18 = where %8 %16 %17 : f32[1,1,4,4]\n%19 = max{axis=-1} %18 : f32[1,1,4,1]\n"
            "%20 = broadcast{shape=[1,1,4,4]} %19 : f32[1,1,4,4]\n%21 = subtract %18 %20 : f32[1,1,4,4]\n"
            "%22 = exp %21 : f32[1,1,4,4]\n%23 = sum{axis=-1} %22 : f32[1,1,4,1]\n"
            "%24 = broadcast{shape=[1,1,4,4]} %23 : f32[1,1,4,4]\n%25 = divide %22 %24 : f32[1,1,4,4]\n"
            "%26 = reshape{shape=[4,4]} %25 : f32[4,4]\n%27 = reshape{shape=[4,2]} %9 : f32[4,2]\n"
            "%28 = matmul{transpose_a=false; transpose_b=false} %26 %27 : f32[4,2]\n"
            "%29 = reshape{shape=[1,1,4,2]} %28 : f32[1,1,4,2]\n%30 = transpose{order=[3,1,2,0]} %29 : f32[1,4,1,2]\n"
            "return %30\n");
}

TEST(PassRunner, NamesTheKnownPasses) {
  Graph graph;
  const std::string off[] = {"unroll"};
  try {
    run_graph_passes(graph, off);
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string words = error.what();
    EXPECT_TRUE(words.starts_with("compile: there is no pass `unroll`; the passes are hoist, fold, ")) << words;
    for (const std::string_view name : pass_names()) EXPECT_NE(words.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace gradus::passes_test
