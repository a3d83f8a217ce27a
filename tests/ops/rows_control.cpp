/// Rows of the ops that hold regions.
#include "gradus/ops/barrier.h"
#include "gradus/ops/call.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/shards_ops.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_control {
namespace {

const std::vector<std::vector<Shape>> vectors{{{3}, {3}}, {{7}, {7}}, {{0}, {0}}, {{17}, {17}}};

std::vector<Row> calls() {
  Row call{.name = "call", .covers = {"call"}, .operands = {{}, {}}, .shapes = vectors};
  call.apply = [](In in) {
    const Tensors both =
        recomputed("test", in, [&](In x) { return Tensors{sin(x[0]) * x[1], x[0] + square(x[1]) * in[0]}; });
    return both[0] * both[1];
  };
  call.tolerance = 64;
  call.magnitude = 4;

  Row custom{.name = "custom_call", .covers = {"custom_call"}, .operands = {{}, {}}, .shapes = vectors};
  custom.apply = [](In in) {
    return with_gradient(in, [](In x) {
      const Tensor a = x[0], b = x[1];
      return WithPullback{sin(a) * b, [=](const Tensor& dy) { return Tensors{dy * b * cos(a), dy * sin(a)}; }};
    });
  };
  custom.tolerance = 64;
  custom.magnitude = 4;

  Row held{.name = "barrier", .covers = {"barrier"}, .operands = {{}, {.has_gradient = false}}, .shapes = vectors};
  held.apply = [](In in) { return barrier(in[0], in[1]) * 2; };

  Row moved{.name = "to", .covers = {"copy"}, .operands = {{}}, .shapes = {{{3}}, {{2, 5}}, {{17}}}};
  moved.apply = [](In in) { return in[0].to(cpu(1)).to(cpu(0)) * 2; };

  Row shards{.name = "all_reduce",
             .covers = {"of_shard", "on_shard", "all_reduce", "join_in", "divisible", "all_gather", "join_gather",
                        "from_shard", "join_from"},
             .operands = {{}, {}},
             .shapes = vectors};
  shards.apply = [](In in) {  // the whole batch is one shard
    const Tensor own = apply(OnShard{}, in[0]);
    const std::int64_t n = own.shape()[0];
    const Tensor gathered = apply(JoinGather{n, n}, apply(AllGather{n}, own), own);
    const Tensor from = apply(JoinFrom{}, apply(FromShard{}, in[1]), in[1]);
    return apply(JoinIn{}, apply(AllReduce{}, own), own) * apply(Divisible{}, apply(OfShard{}, in[1])) +
           sin(gathered) * from;
  };
  return {call, custom, held, moved, shards};
}

std::vector<Row> branches_and_loops() {
  Row branch{
      .name = "cond", .covers = {"cond"}, .operands = {{}, {}}, .shapes = {{{3}, {3}}, {{7}, {7}}, {{17}, {17}}}};
  branch.apply = [](In in) {
    return cond(reduce_sum(in[0]) > 0, [&] { return sin(in[0]) * in[1]; }, [&] { return square(in[1]) + in[0]; });
  };

  Row loop{.name = "scan",
           .covers = {"scan"},
           .operands = {{-1, 1}, {-1, 1}},
           .shapes = {{{3}, {4, 3}}, {{2}, {1, 2}}, {{3}, {0, 3}}, {{100}, {3, 100}}}};
  loop.apply = [](In in) {
    const auto [last, all] =
        scan([&](Tensor s, Tensor x) { return std::pair{tanh(s * x) + s, s * x * in[0]}; }, in[0], in[1]);
    return last + reduce_sum(all, {.axis = {0}});
  };

  Row repeated{.name = "while_loop",
               .covers = {"while"},
               .operands = {{0.2, 1}, {0.2, 1}},
               .shapes = {{{3}, {3}}, {{1}, {1}}, {{17}, {17}}}};
  repeated.apply = [](In in) {
    const auto [y, n] = while_loop([](Tensor t, Tensor k) { return logical_and(reduce_sum(t) < 100, k < 4); },
                                   [&](Tensor t, Tensor k) { return std::tuple{t * t + in[1], k + 1}; },
                                   std::tuple{in[0], constant(0)}, {.max_iterations = 6});
    return y;
  };

  const auto over_rows = [](std::string name, std::int64_t rows) {
    Row row{.name = std::move(name), .covers = {"scan"}, .operands = {{-1, 1}, {-1, 1}}, .shapes = {{{7, 3}, {3}}}};
    row.apply = [rows](In in) {
      const Tensors sums_and_rows = scan_rows(
          "test",
          [&](In sum, In chunk) { return Tensors{sum[0] + reduce_sum(chunk[0], {.axis = {0}}), chunk[0] * in[1]}; },
          in.subspan(1), in.first(1), rows);
      return sums_and_rows[1] * sums_and_rows[0];
    };
    return row;
  };
  std::vector<Row> rows{branch, loop, repeated, over_rows("scan by rows", 7),
                        over_rows("scan by rows, the last shorter", 3)};
  for (Row& row : rows) {
    row.tolerance = 64;
    row.magnitude = 8;
  }
  return rows;
}

const bool registered = add_rows(calls()) && add_rows(branches_and_loops());

}  // namespace
}  // namespace gradus::rows::rows_control
