/// Rules of the ops on shards. Decision 250 has the reasons.
#include "gradus/ops/shards.h"
#include "gradus/ops/shards_ops.h"
#include "gradus/graph/shard_context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

Spec same_as_operand(std::string_view op, Specs in) {
  require(in.size() == 1, op, ": expected 1 operand, got ", in.size());
  return in[0];
}

Tensor sum_of_all(const Tensor& x) { return over_shards(AnyOp::of(AllReduce{}), x); }

/// How many shards with rows stand before this one: of the first length, and of the second.
std::pair<Tensor, Tensor> shards_before(const ShardPlace& at) {
  // Those of the first length are spread evenly: shard i begins with row ceil(i * rows / all).
  const Tensor firsts = floor_divide(at.number * at.of_first + (at.all - 1), at.all);
  return {firsts, at.of_second > 0 ? at.number - firsts : fill({}, 0, i64)};
}

/// Rows [begin, begin + count) of x along `axis`, which counts from the end.
Tensor rows_from(const Tensor& x, const Tensor& begin, std::int64_t count, int axis) {
  return apply(Gather{axis}, x, begin + iota({count}, i64));
}

/// The rows of this shard among those that all shards have gathered.
Tensor own_rows(const Tensor& all, const auto& gather) {
  const ShardPlace* const at = shard_place();
  if (!at) return all;
  const auto [firsts, seconds] = shards_before(*at);
  return rows_from(all, firsts * gather.first + seconds * gather.second, at->length == 0 ? gather.first : gather.second,
                   -all.shape().rank());
}

/// The cotangent of what comes from one shard.
Tensor of_root(const Tensor& dy, int root) {
  const Tensor sum = sum_of_all(dy);
  const ShardPlace* const at = shard_place();
  if (!at) return sum;
  const auto [firsts, seconds] = shards_before(*at);
  return where(equal(firsts + seconds, root), sum, fill_like(sum, 0));
}

/// n of shards of the other length, if it is n on those of this one.
std::int64_t on_other_length(std::int64_t n, const ShardPlace& at) {
  const std::int64_t own = at.rows[at.length], other = at.rows[1 - at.length];
  return own > 0 && n % own == 0 ? n / own * other : n;
}

Tensor with_axis_first(const Tensor& x, int axis) {
  std::vector<int> order{axis};
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != axis) order.push_back(i);
  return axis == 0 ? x : transpose(x, order);
}
Tensor with_first_axis_at(const Tensor& x, int axis) {
  std::vector<int> order;
  for (int i = 1; i < x.shape().rank(); ++i) order.push_back(i);
  order.insert(order.begin() + axis, 0);
  return axis == 0 ? x : transpose(x, order);
}

/// shard_place(). InvalidArgument where some ranks have no data any more: then it is open which shards there are.
const ShardPlace* place_among_all(std::string_view op) {
  const ShardPlace* const at = shard_place();
  require(!at || at->all > 0, op, ": the data of some ranks have ended before those of others, so their shards are ",
          "missing; give all ranks data of one known length, as .repeat().take(n) does");
  return at;
}

int axis_of(std::string_view op, const Tensor& x, int axis) {
  require(x.shape().rank() > 0, op, ": ", x.spec(), " has no axis; reshape(x, {1}) first");
  const int place = x.shape().normalized(axis);
  require(x.shape()[place] >= 0, op, ": axis ", axis, " of ", x.spec(), " has to have a known size");
  return place;
}

}  // namespace

Spec OfShard::infer(Specs in) const { return same_as_operand(name, in); }
Tensors OfShard::vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
Tensor OfShard::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Spec OnShard::infer(Specs in) const { return same_as_operand(name, in); }
Tensors OnShard::vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
Tensor OnShard::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Spec AllReduce::infer(Specs in) const { return same_as_operand(name, in); }
/// Every shard's use of the sum counts.
Tensors AllReduce::vjp(In, const Tensor&, const Tensor& dy) const { return {sum_of_all(dy)}; }
Tensor AllReduce::batch(In in, std::uint32_t, std::int64_t) const { return sum_of_all(in[0]); }

Spec JoinIn::infer(Specs in) const {
  require(in.size() == 2 && in[0] == in[1], "join_in: expected a sum, and a part of its spec");
  return in[0];
}
Tensors JoinIn::vjp(In, const Tensor&, const Tensor& dy) const { return {{}, sum_of_all(dy)}; }
Tensor JoinIn::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0], in[1]); }

Spec AllGather::infer(Specs in) const {
  require(in.size() == 1 && in[0].shape.rank() > 0 && (in[0].shape[0] == first || in[0].shape[0] == second),
          "all_gather: expected one operand with ", first, " or ", second, " rows");
  Spec spec = in[0];
  spec.shape.set(0, all());
  return spec;
}
Tensors AllGather::vjp(In, const Tensor&, const Tensor& dy) const { return {own_rows(sum_of_all(dy), *this)}; }
Tensor AllGather::batch(In in, std::uint32_t mask, std::int64_t) const {
  if (!has_rows(mask, 0)) return gradus::over_shards(AnyOp::of(*this), in[0]);  // the same for all rows
  return with_first_axis_at(gradus::over_shards(AnyOp::of(*this), with_axis_first(in[0], 1)), 1);
}

Spec FromShard::infer(Specs in) const { return same_as_operand(name, in); }
Tensors FromShard::vjp(In, const Tensor&, const Tensor& dy) const { return {of_root(dy, place)}; }
Tensor FromShard::batch(In in, std::uint32_t, std::int64_t) const {
  return gradus::over_shards(AnyOp::of(*this), in[0]);
}

Spec JoinGather::infer(Specs in) const {
  require(in.size() == 2 && in[1].shape.rank() > 0 && in[1].shape[0] == second,
          "join_gather: expected what is gathered, and a part of ", second, " rows");
  Spec spec = in[1];
  spec.shape.set(0, first * of_first + second * of_second);
  require(spec == in[0], "join_gather: expected a part of ", in[0], ", got ", in[1]);
  return spec;
}
Tensors JoinGather::vjp(In, const Tensor&, const Tensor& dy) const { return {{}, own_rows(sum_of_all(dy), *this)}; }
Tensor JoinGather::batch(In in, std::uint32_t mask, std::int64_t n) const {
  if (mask == 0) return apply(*this, in[0], in[1]);
  const auto rows_first = [&](std::size_t i) {
    return with_axis_first(has_rows(mask, i) ? in[i] : repeat_rows(in[i], n), 1);
  };
  return with_first_axis_at(apply(*this, rows_first(0), rows_first(1)), 1);
}

Spec JoinFrom::infer(Specs in) const { return JoinIn{}.infer(in); }
Tensors JoinFrom::vjp(In, const Tensor&, const Tensor& dy) const { return {{}, of_root(dy, place)}; }
Tensor JoinFrom::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0], in[1]); }

AnyOp joining(const AnyOp& op) {
  if (const AllGather* g = op.as<AllGather>())
    return AnyOp::of(JoinGather{g->first, g->second, g->of_first, g->of_second});
  if (const FromShard* from = op.as<FromShard>()) return AnyOp::of(JoinFrom{from->place});
  return AnyOp::of(JoinIn{});
}

Spec Divisible::infer(Specs in) const { return same_as_operand(name, in); }
Tensors Divisible::vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
Tensor Divisible::batch(In in, std::uint32_t, std::int64_t) const { return apply(*this, in[0]); }

Tensor all_reduce_sum(const Tensor& x) {
  require(x.dtype() != boolean, "all_reduce_sum: booleans have no sum; cast them to i32");
  return sum_of_all(x);
}

Tensor all_reduce_mean(const Tensor& x) {
  require(is_floating(x.dtype()), "all_reduce_mean: ", x.spec(), " has no mean; cast it to a floating type");
  const Tensor sum = sum_of_all(x);
  const ShardPlace* const at = shard_place();
  return at ? sum / static_cast<double>(at->of_first + at->of_second) : sum;
}

Tensor all_gather(const Tensor& x, int axis) {
  const int place = axis_of("all_gather", x, axis);
  const ShardPlace* const at = place_among_all("all_gather");
  const std::int64_t n = x.shape()[place];
  AllGather op{n, 0, 1, 0};
  if (at) {
    op = {n, 0, at->of_first, at->of_second};
    if (at->of_second > 0) (at->length == 0 ? op.second : op.first) = on_other_length(n, *at);
    if (at->length == 1) op.second = n;
  }
  return with_first_axis_at(over_shards(AnyOp::of(op), with_axis_first(x, place)), place);
}

Tensor reduce_scatter(const Tensor& x, int axis) {
  require(x.dtype() != boolean, "reduce_scatter: booleans have no sum; cast them to i32");
  const int place = axis_of("reduce_scatter", x, axis);
  const Tensor sum = sum_of_all(x);
  const ShardPlace* const at = place_among_all("reduce_scatter");
  if (!at) return sum;
  const std::int64_t n = x.shape()[place], shards = at->of_first + at->of_second;
  require(n % shards == 0, "reduce_scatter: axis ", axis, " of ", x.spec(), " cannot be divided among ", shards,
          " shards; its size has to be a multiple of their count");
  const auto [firsts, seconds] = shards_before(*at);
  return rows_from(sum, (firsts + seconds) * (n / shards), n / shards, place - x.shape().rank());
}

Tensor broadcast(const Tensor& x, int root) {
  const ShardPlace* const at = place_among_all("broadcast");
  const Tensor of_root = over_shards(AnyOp::of(FromShard{root}), x);
  const int shards = at ? at->of_first + at->of_second : 1;
  require<OutOfRange>(root >= 0 && root < shards, "broadcast: root is ", root, ", but there are ", shards,
                      " shards with rows");
  return of_root;
}

}  // namespace gradus
