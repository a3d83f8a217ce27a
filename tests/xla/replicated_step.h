/// A step on shards as several devices run it together: all kinds of sums, what is gathered, a check of data, a
/// Variable that is assigned.
#pragma once
#include <string>
#include "gradus/backend/parts/replicated_graph.h"
#include "gradus/backend/xla/stablehlo.h"

namespace gradus::testing_plugin {

/// The shards of a run that is not one.
struct ShardsOfTest : ShardRun {
  ShardsOfTest(int replicas_there, int shards_there) {
    for (int i = 0; i < replicas_there; ++i) replicas.push_back(cpu(i));
    const int all = std::max(replicas_there, shards_there);
    for (int i = 0; i < shards_there; ++i) shards.push_back({i, 0, i * replicas_there / all});
  }
};

inline xla::StableHloModule replicated_step(int replicas, int shards) {
  const Graph whole = parse_graph(text(R"(
%0 = input : f32[8,16]
%1 = input : f32[16,4]
%2 = input : i32[8]
%3 = of_shard{argument=0; length=0} %0 : f32[8,16]
%4 = of_shard{argument=1; length=0} %2 : i32[8]
%5 = check_indices{limit=4} %4 : i32[8]
%6 = matmul{transpose_a=false; transpose_b=false} %3 %1 : f32[8,4]
%7 = tanh %6 : f32[8,4]
%8 = matmul{transpose_a=true; transpose_b=false} %3 %7 : f32[16,4]
%9 = all_reduce{narrow=false} %8 : f32[16,4]
%10 = cast{to=bf16} %8 : bf16[16,4]
%11 = all_reduce{narrow=true} %10 : bf16[16,4]
%12 = all_reduce{narrow=false} %10 : bf16[16,4]
%13 = cast{to=i32} %8 : i32[16,4]
%14 = all_reduce{narrow=false} %13 : i32[16,4]
%15 = cast{to=f64} %8 : f64[16,4]
%16 = all_reduce{narrow=false} %15 : f64[16,4]
%17 = add %1 %9 : f32[16,4]
%18 = all_gather{first=8; second=0; of_first=)",
                                       shards, R"(; of_second=0; pads=false} %5 : i32[)", 8 * shards, R"(]
return %17 %11 %12 %14 %16 %18
)"));
  const ReplicatedGraph made = replicated(whole, ReplicaSlots(ShardsOfTest(replicas, shards)));
  std::vector<int> donated(made.graph.outputs.size(), -1);
  for (std::size_t i = 0; i < made.inputs.size(); ++i)
    if (made.inputs[i].kind == ReplicatedGraph::Input::Kind::whole) donated[0] = static_cast<int>(i);
  return xla::to_stablehlo(xla::prepared_for_stablehlo(made.graph, {}), {.donated = donated, .replicas = replicas},
                           "x");
}

}  // namespace gradus::testing_plugin
