/// Attention in blocks: shape rules, gradients, and its definition by other ops.
#include "gradus/ops/attention_ops.h"
#include "gradus/graph/transforms.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr std::size_t query = 0, key = 1, value = 2;

/// [batch, time, heads, width] <-> [batch, heads, time, width].
Tensor exchanged(const Tensor& x) { return transpose(x, {0, 2, 1, 3}); }

/// `others`: operands between the value and the mask.
void check_operands(std::string_view op, Specs in, bool masked, std::size_t others) {
  require(in.size() == 3 + others + (masked ? 1 : 0), op, ": expected ", 3 + others + (masked ? 1 : 0),
          " operands, got ", in.size());
  for (std::size_t i = 0; i < 3 + others; ++i)
    require((in[i].dtype == f32 || in[i].dtype == f64 || in[i].dtype == bf16) && in[i].dtype == in[0].dtype &&
                in[i].shape.rank() == 4,
            op, ": operand ", i, " is ", in[i],
            ", expected f32, f64 or bf16 [batch, time, heads, width], of one dtype");
  const Shape &q = in[query].shape, &k = in[key].shape, &v = in[value].shape;
  require(q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3], op, ": the query is ",
          in[query], ", the key ", in[key], ", the value ", in[value], ": they do not fit");
  require(k[2] > 0 && q[2] >= 0 && q[2] % k[2] == 0, op, ": the heads of the query, ", in[query],
          ", must be a multiple of those of the key, ", in[key]);
  if (!masked) return;
  const Spec& mask = in.back();
  require(mask.dtype == boolean || mask.dtype == computed_in(in[0].dtype), op, ": the mask is ", mask,
          ", expected booleans or numbers of ", computed_in(in[0].dtype));
  const Shape scores{q[0], q[2], q[1], k[1]};
  bool fits = mask.shape.rank() == 4;
  for (int i = 0; fits && i < 4; ++i) fits = mask.shape[i] == 1 || mask.shape[i] == scores[i];
  require(fits, op, ": the mask is ", mask, ", expected a shape that broadcasts to ", brackets(scores));
}

Shape result_of(Specs in) {
  Shape result = in[query].shape;
  result.set(3, in[value].shape[3]);
  return result;
}

std::int64_t elements_of_example(const Shape& shape) {
  return dimension::multiply(dimension::multiply(shape[1], shape[2]), shape[3]);
}

/// [batch, time, heads, width] -> [batch, groups, heads / groups * time, width].
Tensor grouped(const Tensor& x, std::int64_t groups) {
  const Shape& s = x.shape();
  return reshape(exchanged(x), {s[0], groups, dimension::multiply(s[2] / groups, s[1]), s[3]});
}
Tensor apart_again(const Tensor& x, const Shape& like) {
  return exchanged(reshape(x, {like[0], like[2], like[1], like[3]}));
}

/// bf16 as f32, along `axis`, over which a product sums, in the order in which pairs add up: of each the odd one first.
Tensor for_sums(const Tensor& x, int axis, SumOrder order) {
  if (order == SumOrder::any) return cast(x, f32);
  const std::int64_t n = x.shape()[axis];
  const Tensor i = iota({n}, i64), even = i / 2 * 2, other = even + even + 1 - i;
  return gather(cast(x, f32), where(other < extent(n, i64), other, i), axis);
}

/// A softmax that multiplies by the reciprocal of the sum, since its result is rounded to bf16.
Tensor softmax_by_reciprocal(const Tensor& scores) {
  const ReduceOptions along_keys{.axis = {-1}, .keepdims = true};
  const Tensor powers = exp(scores - stop_gradient(reduce_max(scores, along_keys)));
  return powers * (1 / reduce_sum(powers, along_keys));
}

/// For bf16: [batch, heads, queries, keys] in f32.
template <class Op>
Tensor narrow_weights(const Op& op, const Tensor& q, const Tensor& k, const Tensor& mask, SumOrder order) {
  const Shape scores{q.shape()[0], q.shape()[2], q.shape()[1], k.shape()[1]};
  const Tensor products =
      matmul(grouped(for_sums(q, 3, order), k.shape()[2]), transpose(exchanged(for_sums(k, 3, order))));
  return attention_weights(reshape(products, scores) * op.scale, {.mask = mask, .causal = op.causal},
                           softmax_by_reciprocal);
}

template <class Op>
Tensor composed_narrow(const Op& op, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                       SumOrder order) {
  const Tensor weights = cast(narrow_weights(op, q, k, mask, order), bf16);
  return exchanged(cast(weighted_values(for_sums(weights, 3, order), exchanged(for_sums(v, 1, order))), bf16));
}

/// Attention by other ops.
template <class Op>
Tensor composed(const Op& op, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, SumOrder order) {
  if (q.dtype() == bf16) return composed_narrow(op, q, k, v, mask, order);
  return exchanged(
      attention_steps(exchanged(q), exchanged(k), exchanged(v), {.mask = mask, .causal = op.causal, .scale = op.scale})
          .output);
}

/// The same attention of keys and values whose time and heads are exchanged.
BlockedAttention with_time_first(BlockedAttention op) {
  op.heads_first = false;
  return op;
}
Tensors keys_exchanged(In in) {
  Tensors operands(in.begin(), in.end());
  for (const std::size_t i : {key, value}) operands[i] = exchanged(operands[i]);
  return operands;
}

/// Gradients one after the other.
Tensor joined(In gradients) {
  std::vector<Tensor> parts;
  for (const Tensor& x : gradients) parts.push_back(reshape(x, {x.shape()[0], elements_of_example(x.shape())}));
  return concat(parts, 1);
}

Tensors taken_apart(const Tensor& joined, In sources) {
  Tensors parts;
  std::int64_t begin = 0;
  for (const Tensor& source : sources) {
    const std::int64_t size = elements_of_example(source.shape());
    parts.push_back(reshape(slice_within(joined, 1, begin, size), source.shape()));
    begin = dimension::add(begin, size);
  }
  return parts;
}

/// For bf16. Chains over the queries of heads that share keys are those of one head after the other.
Tensor composed_narrow_gradient(const AttentionGradient& op, In in, SumOrder order) {
  const Tensor &q = in[query], &k = in[key], &v = in[value], &dy = in[3];
  const std::int64_t groups = k.shape()[2];
  const Tensor weights = narrow_weights(op, q, k, op.masked ? in[4] : Tensor(), order);
  const Shape& scores = weights.shape();
  const auto rows = [&](const Tensor& x) {
    return reshape(x, {scores[0], groups, dimension::multiply(scores[1] / groups, scores[2]), scores[3]});
  };
  const Tensor by_weights =
      reshape(matmul(grouped(for_sums(dy, 3, order), groups), transpose(exchanged(for_sums(v, 3, order)))), scores);
  const Tensor along_keys = reduce_sum(by_weights * weights, {.axis = {-1}, .keepdims = true});
  const Tensor by_scores = cast(weights * (by_weights - along_keys) * op.scale, bf16);
  const Tensor by_query = matmul(rows(for_sums(by_scores, 3, order)), exchanged(for_sums(k, 1, order)));
  const auto summed_over_queries = [&](const Tensor& factors, const Tensor& x) {
    return exchanged(matmul(transpose(rows(for_sums(factors, 2, order))), grouped(for_sums(x, 1, order), groups)));
  };
  const Tensors parts{cast(apart_again(by_query, q.shape()), bf16), cast(summed_over_queries(by_scores, q), bf16),
                      cast(summed_over_queries(cast(weights, bf16), dy), bf16)};
  return joined(parts);
}

/// The gradients by query, key and value of in[0 ... 3], the last of which is the cotangent, by other ops.
Tensor composed_gradient(const AttentionGradient& op, In in, SumOrder order) {
  if (in[query].dtype() == bf16) return composed_narrow_gradient(op, in, order);
  const std::int64_t groups = in[key].shape()[2];
  const AttentionSteps steps =
      attention_steps(exchanged(in[query]), exchanged(in[key]), exchanged(in[value]),
                      {.mask = op.masked ? in[4] : Tensor(), .causal = op.causal, .scale = op.scale});
  const Tensor q = grouped(in[query], groups) * op.scale, k = exchanged(in[key]), v = exchanged(in[value]);
  const Tensor dy = grouped(in[3], groups);
  const Shape& scores = steps.weights.shape();
  const Tensor weights = reshape(steps.weights, {scores[0], groups, q.shape()[2], scores[3]});
  const Tensor by_weights = matmul(dy, transpose(v));
  const Tensor along_keys = reduce_sum(by_weights * weights, {.axis = {-1}, .keepdims = true});
  const Tensor by_scores = weights * (by_weights - along_keys);
  const Tensor by_query = matmul(by_scores, k) * op.scale, by_key = matmul(transpose(by_scores), q);
  const Tensors parts{apart_again(by_query, in[query].shape()), exchanged(by_key),
                      exchanged(matmul(transpose(weights), dy))};
  return joined(parts);
}

/// `in` with a leading dimension n each, which is then joined with that of the batch.
Tensors as_one_batch(In in, std::uint32_t mask, std::int64_t n, bool masked) {
  const std::int64_t batch = in[query].shape()[has_rows(mask, query) ? 1 : 0];
  Tensors rows;
  for (std::size_t i = 0; i < in.size(); ++i) {
    Tensor x = has_rows(mask, i) ? in[i] : repeat_rows(in[i], n);
    Shape shape = x.shape();
    if (masked && i + 1 == in.size() && shape[1] != batch) {
      shape.set(1, batch);
      x = broadcast_to(x, shape);
    }
    shape.erase(0);
    shape.set(0, dimension::multiply(n, batch));
    rows.push_back(reshape(x, shape));
  }
  return rows;
}

Tensor apart(const Tensor& y, std::int64_t n, std::int64_t batch) {
  Shape shape = y.shape();
  shape.set(0, batch);
  shape.insert(0, n);
  return reshape(y, shape);
}

template <class Op> Tensor batched_attention(const Op& op, In in, std::uint32_t mask, std::int64_t n) {
  const std::int64_t batch = in[query].shape()[has_rows(mask, query) ? 1 : 0];
  return apart(gradus::detail::apply(op, In(as_one_batch(in, mask, n, op.masked))), n, batch);
}

}  // namespace

Spec BlockedAttention::infer(Specs in) const {
  std::vector<Spec> time_first(in.begin(), in.end());
  for (const std::size_t i : {key, value})
    if (heads_first && in.size() > i && in[i].shape.rank() == 4)
      std::swap(time_first[i].shape[1], time_first[i].shape[2]);
  check_operands(name, time_first, masked, 0);
  return {in[0].dtype, result_of(time_first)};
}

Spec AttentionGradient::infer(Specs in) const {
  check_operands(name, in, masked, 1);
  require(in[3].shape == result_of(in), name, ": the cotangent is ", in[3], ", expected ", brackets(result_of(in)));
  std::int64_t all = 0;
  for (const std::size_t i : {query, key, value}) all = dimension::add(all, elements_of_example(in[i].shape));
  return {in[0].dtype, {in[0].shape[0], all}};
}

/// That of an added mask is rarely asked for, and has the scores' size anyway.
Tensors BlockedAttention::vjp(In in, const Tensor& result, const Tensor& dy) const {
  if (heads_first) {
    Tensors gradients = with_time_first(*this).vjp(keys_exchanged(in), result, dy);
    for (const std::size_t i : {key, value}) gradients[i] = exchanged(gradients[i]);
    return gradients;
  }
  Tensors operands(in.begin(), in.begin() + 3);
  operands.push_back(dy);
  if (masked) operands.push_back(in[3]);
  const Tensor all = gradus::detail::apply(AttentionGradient{scale, causal, masked}, In(operands));
  Tensors gradients = taken_apart(all, in.first(3));
  if (!masked) return gradients;
  if (in[3].dtype() == boolean) {
    gradients.emplace_back();
    return gradients;
  }
  const Tensors own = as_arguments(in);
  const Tensor y = composed(*this, own[query], own[key], own[value], own[3], SumOrder::contract);
  const Tensors seed{dy};
  gradients.push_back(Transforms::vjp(In(&y, 1), In(own).last(1), seed, own)[0]);
  return gradients;
}

Tensors AttentionGradient::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Tensors own = as_arguments(in);
  const Tensor gradient = composed_gradient(*this, own, SumOrder::contract);
  const bool by_mask = masked && in[4].dtype() != boolean;
  const Tensors seed{dy};
  Tensors gradients = Transforms::vjp(In(&gradient, 1), In(own).first(by_mask ? 5 : 4), seed, own);
  gradients.resize(in.size());
  return gradients;
}

Tensor BlockedAttention::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return batched_attention(*this, in, mask, n);
}
Tensor AttentionGradient::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return batched_attention(*this, in, mask, n);
}

int BlockedAttention::carries(Specs, int, int axis) const { return axis == -4 ? -4 : 0; }
int AttentionGradient::carries(Specs, int, int axis) const { return axis == -4 ? -2 : 0; }

Region attention_definition(const AnyOp& op, Specs in, SumOrder order) {
  const auto region = [&](const std::function<Tensor(In)>& f) {
    const RegionTrace trace(op->name, in, [&](In x) { return Tensors{f(x)}; });
    return capture(trace).region;
  };
  if (const auto* forward = op.as<BlockedAttention>())
    return region([&](In given) {
      const Tensors x = forward->heads_first ? keys_exchanged(given) : Tensors(given.begin(), given.end());
      return composed(*forward, x[query], x[key], x[value], forward->masked ? x[3] : Tensor(), order);
    });
  if (const auto* gradient = op.as<AttentionGradient>())
    return region([&](In x) { return composed_gradient(*gradient, x, order); });
  return {};
}

}  // namespace gradus
