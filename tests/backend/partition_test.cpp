/// Parts of graphs by stage and place.
#include <gtest/gtest.h>
#include "gradus/backend/parts/shard_cut.h"
#include "gradus/base/error.h"

namespace gradus::partition_test {
namespace {

/// The parts of a graph of shards, as text.
std::string parts_of(const char* source) {
  const Graph graph = parse_graph(source);
  ShardCut cut(graph, {});
  TextStream out;
  for (const GraphPart& part : cut.parts(cut.last_sum())) {
    out << "stage " << part.key.stage << " at " << part.key.place << ", of";
    for (const int input : part.inputs) out << " %" << input;
    out << ", makes";
    for (const int output : part.outputs) out << " %" << output;
    out << '\n' << to_text(part.graph);
  }
  return std::move(out).str();
}

/// A common value that shards read is computed before them, another one as late as it is read. A constant is in each
/// part that reads it.
TEST(Partition, CutsAtSumsOverShards) {
  EXPECT_EQ(parts_of(R"(%0 = input : f32[4]
%1 = input : f32[4]
%2 = input : f32[4]
%3 = of_shard{argument=0; length=0} %2 : f32[4]
%4 = constant{0x40000000} : f32[4]
%5 = multiply %0 %4 : f32[4]
%6 = on_shard{length=0} %5 : f32[4]
%7 = multiply %6 %3 : f32[4]
%8 = all_reduce{narrow=false} %7 : f32[4]
%9 = multiply %1 %4 : f32[4]
%10 = add %9 %8 : f32[4]
%11 = subtract %0 %10 : f32[4]
return %11 %10
dying %0 %1
)"),
            R"(stage 0 at -1, of %0, makes %5
%0 = input : f32[4]
%1 = constant{0x40000000} : f32[4]
%2 = multiply %0 %1 : f32[4]
return %2
stage 1 at 0, of %5 %3, makes %7
%0 = input : f32[4]
%1 = input : f32[4]
%2 = multiply %0 %1 : f32[4]
return %2
stage 2 at -1, of %1 %8 %0, makes %10 %11
%0 = input : f32[4]
%1 = constant{0x40000000} : f32[4]
%2 = multiply %0 %1 : f32[4]
%3 = input : f32[4]
%4 = add %2 %3 : f32[4]
%5 = input : f32[4]
%6 = subtract %5 %4 : f32[4]
return %4 %6
dying %5 %0
)");
}

/// The last reader of an input may overwrite it unless something can fail after its stage: here, the second sum.
TEST(Partition, NothingIsOverwrittenBeforeTheLastExchange) {
  const std::string parts = parts_of(R"(%0 = input : f32[4]
%1 = input : f32[4]
%2 = input : f32[4]
%3 = of_shard{argument=0; length=0} %2 : f32[4]
%4 = all_reduce{narrow=false} %3 : f32[4]
%5 = add %1 %4 : f32[4]
%6 = multiply %5 %3 : f32[4]
%7 = all_reduce{narrow=false} %6 : f32[4]
%8 = subtract %0 %7 : f32[4]
return %8 %5
dying %0 %1
)");
  EXPECT_NE(parts.find("stage 2 at -1, of %1 %4, makes %5\n%0 = input : f32[4]\n%1 = input : f32[4]\n"
                       "%2 = add %0 %1 : f32[4]\nreturn %2\nstage 3"),
            std::string::npos)
      << parts;
  EXPECT_NE(parts.find("stage 4 at -1, of %0 %7, makes %8\n%0 = input : f32[4]\n%1 = input : f32[4]\n"
                       "%2 = subtract %0 %1 : f32[4]\nreturn %2\ndying %0\n"),
            std::string::npos)
      << parts;
}

}  // namespace
}  // namespace gradus::partition_test
