/// All shards get the rows of all, and add up those of one index by the tree over the shards' numbers: neighbours
/// first.
#include "gradus/gradients/rows_of_shards.h"
#include "gradus/graph/shard_context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/shards_ops.h"
#include "gradus/ops/sort.h"

namespace gradus {
namespace {

/// Rows of several nodes of the tree: of each as many places, in which no index but -1 occurs twice.
struct RowsOfNodes {
  Tensor indices;  // [nodes, places]
  Tensor values;   // [nodes, places, inner...]
};

/// The shape with other leading dimensions in place of the first `replaced`.
Shape with_leading(std::initializer_list<std::int64_t> leading, const Shape& shape, int replaced) {
  Shape out;
  for (const std::int64_t n : leading) out.push_back(n);
  for (int i = replaced; i < shape.rank(); ++i) out.push_back(shape[i]);
  return out;
}

/// Two neighbours become one node with twice the places. A row that one of them lacks counts as 0.
RowsOfNodes merged_pairs(const RowsOfNodes& rows) {
  const std::int64_t pairs = rows.indices.shape()[0] / 2, places = rows.indices.shape()[1], both = 2 * places;
  const DType type = rows.indices.dtype();
  const Tensor indices = reshape(rows.indices, {pairs, both});
  const Tensor order = argsort(indices), sorted = take_along_axis(indices, order);
  const Tensor before = concat({slice(sorted, {0, 0}, {pairs, 1}), slice(sorted, {0, 0}, {pairs, both - 1})}, 1);
  const Tensor number = cumsum(cast(not_equal(sorted, before), i32), {.axis = 1});  // among the distinct ones
  const Tensor first = reshape(iota({pairs}, i32) * both, {pairs, 1});
  const Tensor slots_in_order = reshape(number + first, {pairs * both});
  const Tensor places_in_order = reshape(cast(order, i32) + first, {pairs * both});
  const Tensor slots = update_rows(fill({pairs * both}, -1, i32), places_in_order, slots_in_order);
  const Tensor values = reshape(rows.values, with_leading({pairs, 2, places}, rows.values.shape(), 2));
  const Shape dense = with_leading({pairs * both}, rows.values.shape(), 2);
  const auto side = [&](std::int64_t which) {  // each neighbour's rows at the places of the sum
    std::vector<std::int64_t> begin(static_cast<std::size_t>(values.shape().rank()), 0), size;
    for (int i = 0; i < values.shape().rank(); ++i) size.push_back(values.shape()[i]);
    begin[1] = which;
    size[1] = 1;
    const Tensor own = reshape(slice(values, begin, size), with_leading({pairs * places}, values.shape(), 3));
    const Tensor at = slice(reshape(slots, {pairs, 2, places}), {0, which, 0}, {pairs, 1, places});
    return update_rows(fill(dense, 0, own.dtype()), reshape(at, {pairs * places}), own);
  };
  const Tensor distinct = update_rows(fill({pairs * both}, -1, type), slots_in_order, reshape(sorted, {pairs * both}));
  return {reshape(distinct, {pairs, both}),
          reshape(side(0) + side(1), with_leading({pairs, both}, rows.values.shape(), 2))};
}

/// A node without a neighbour stays as it is, with twice the places.
RowsOfNodes padded(const RowsOfNodes& rows) {
  const Shape more = rows.values.shape();
  return {concat({rows.indices, fill(rows.indices.shape(), -1, rows.indices.dtype())}, 1),
          concat({rows.values, fill(more, 0, rows.values.dtype())}, 1)};
}

RowsOfNodes level_above(const RowsOfNodes& rows) {
  const std::int64_t nodes = rows.indices.shape()[0], even = nodes / 2 * 2;
  if (even == nodes) return merged_pairs(rows);
  const RowsOfNodes pairs = merged_pairs({rows.indices.rows(0, even), rows.values.rows(0, even)});
  const RowsOfNodes last = padded({rows.indices.rows(even, nodes), rows.values.rows(even, nodes)});
  return {concat({pairs.indices, last.indices}, 0), concat({pairs.values, last.values}, 0)};
}

}  // namespace

std::optional<GradientPart> rows_over_shards(const GradientPart& own) {
  const ShardPlace* const at = shard_place();
  if (!at || !own.is_rows() || at->of_first + at->of_second != at->all) return {};
  const AddedRows rows = own.summed();
  const std::int64_t places = rows.indices.shape()[0];
  if (places < 1 || (at->length == 0 && at->all * places > own.extent())) return {};
  const auto of_all = [&](const Tensor& x) {
    return over_shards(AnyOp::of(AllGather{places, places, at->of_first, at->of_second, true}), x);
  };
  // Shards with fewer places have zeros behind them: indices count from 1 on their way, so that 0 is none.
  const Tensor indices = of_all(rows.indices + 1);
  if (!indices.defined()) return {};  // shards of the other length add up whole tables
  const std::int64_t each = indices.shape()[0] / at->all;
  const DType type = rows.values.dtype();
  const Tensor values =
      cast(of_all(cast(rows.values, shard_context()->sums_in_bf16 && type == f32 ? bf16 : type)), type);
  RowsOfNodes all{reshape(indices - 1, {at->all, each}),
                  reshape(values, with_leading({at->all, each}, values.shape(), 1))};
  while (all.indices.shape()[0] > 1) all = level_above(all);
  const std::int64_t sums = all.indices.shape()[1];
  return GradientPart::of_rows(
      {reshape(all.indices, {sums}), reshape(all.values, with_leading({sums}, all.values.shape(), 2)), true},
      own.extent());
}

}  // namespace gradus
