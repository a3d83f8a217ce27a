/// Attention as a primitive where possible, else as a composite: two products around a softmax. Grouped queries are
/// further rows of the products, so keys and values are never repeated.
#include "gradus/ops/attention.h"
#include <cmath>
#include <limits>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/attention_ops.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

constexpr std::string_view op = "scaled_dot_product_attention";

using Options = DotProductAttentionOptions;
constexpr double not_allowed = -std::numeric_limits<double>::infinity();  // what such a score is

void check_operands(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options) {
  for (const auto& [name, x] : {std::pair{"query", query}, std::pair{"key", key}, std::pair{"value", value}}) {
    require(is_floating(x.dtype()) && x.dtype() == query.dtype(), op, ": ", name, " is ", x.spec(), ", query is ",
            query.spec(), "; expected one floating dtype; cast it");
    require(x.shape().rank() == 4, op, ": ", name, " is ", x.spec(), ", expected [batch, heads, time, width]");
    require(x.shape()[0] == query.shape()[0], op, ": ", name, " is ", x.spec(), ", query is ", query.spec(),
            ": the batches differ");
  }
  require(key.shape()[3] == query.shape()[3], op, ": query is ", query.spec(), ", key is ", key.spec(),
          ": the widths of their heads differ");
  require(value.shape()[1] == key.shape()[1] && value.shape()[2] == key.shape()[2], op, ": key is ", key.spec(),
          ", value is ", value.spec(), ": expected as many heads and places");
  const std::int64_t heads = query.shape()[1], key_heads = key.shape()[1];
  require(heads >= 0 && key_heads > 0 && heads % key_heads == 0, op, ": query is ", query.spec(), ", key is ",
          key.spec(), ": the heads of the query must be a multiple of those of the key");
  require(options.past_key.defined() == options.past_value.defined(), op,
          ": past_key and past_value go together, one of them is missing");
  require(!options.key_lengths.defined() || !options.past_key.defined(), op,
          ": key_lengths tell how much of the keys is there; they cannot go with past_key");
  require(options.softcap >= 0, op, ": softcap must not be negative, got ", options.softcap);
  require(options.dropout >= 0 && options.dropout < 1, op, ": dropout must be at least 0 and below 1, got ",
          options.dropout);
  require(options.left_window >= -1 && options.right_window >= -1, op, ": windows must be -1 or more, got ",
          options.left_window, " and ", options.right_window);
}

/// past and x along time.
Tensor after_past(const Tensor& past, const Tensor& x, std::string_view name) {
  if (!past.defined()) return x;
  Shape expected = x.shape();
  require(past.shape().rank() == 4, op, ": ", name, " is ", past.spec(), ", expected [batch, heads, past, width]");
  expected.set(2, past.shape()[2]);
  require(past.spec() == Spec({x.dtype(), expected}), op, ": ", name, " is ", past.spec(), ", expected ",
          Spec{x.dtype(), expected}, " beside ", x.spec());
  return concat({past, x}, 2);
}

/// [batch, heads, m, n] -> [batch, groups, heads / groups * m, n]: heads that share one of `groups` are further rows.
Tensor with_grouped_rows(const Tensor& x, std::int64_t groups) {
  const Shape& s = x.shape();
  return reshape(x, {s[0], groups, dimension::multiply(s[1] / groups, s[2]), s[3]});
}

/// The keys that each query may look at: two masks, either of which may be empty.
struct Masks {
  Tensor allowed;  // booleans, broadcast to [batch, heads, queries, keys]
  Tensor added;    // numbers, the same
};

Tensor both(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() ? logical_and(a, b) : a.defined() ? a : b;
}

/// The mask as it was given, with what it lacks at the end of the keys.
Tensor complete_mask(const Tensor& mask, const Shape& scores) {
  require(mask.shape().rank() >= 1 && mask.shape().rank() <= 4, op, ": mask is ", mask.spec(),
          ", expected a shape that broadcasts to ", brackets(scores));
  const std::int64_t keys = scores[-1], given = mask.shape()[-1];
  if (given == keys || given == 1 || given < 0 || keys < given) return mask;
  std::vector<std::array<std::int64_t, 2>> paddings(static_cast<std::size_t>(mask.shape().rank()), {0, 0});
  paddings.back()[1] = keys - given;
  return mask.dtype() == boolean ? cast(pad(cast(mask, i32), paddings), boolean) : pad(mask, paddings, not_allowed);
}

Masks given_mask(const Options& options, const Spec& scores) {
  if (!options.mask.defined()) return {};
  const Tensor mask = complete_mask(options.mask, scores.shape);
  require(mask.dtype() == boolean || mask.dtype() == scores.dtype, op, ": mask is ", mask.spec(),
          ", expected booleans or the dtype of the query, ", scores.dtype);
  require(broadcast_shape(mask.shape(), scores.shape, op) == scores.shape, op, ": mask is ", options.mask.spec(),
          ", expected a shape that broadcasts to ", brackets(scores.shape));
  return mask.dtype() == boolean ? Masks{mask, {}} : Masks{{}, mask};
}

/// Where causality, windows and lengths let queries look: the distance from key to query decides.
Tensor allowed_by_place(const Options& options, const Shape& scores) {
  const std::int64_t queries = scores[2], keys = scores[3];
  const bool by_distance = options.causal || options.left_window >= 0 || options.right_window >= 0;
  const Tensor j = reshape(iota({keys}, i64), {1, 1, 1, keys});
  Tensor lengths, allowed;
  if (options.key_lengths.defined()) {
    require(is_integer(options.key_lengths.dtype()) && options.key_lengths.shape().size() == scores[0], op,
            ": key_lengths is ", options.key_lengths.spec(), ", expected integers [", dimension::to_text(scores[0]),
            "]");
    lengths = reshape(cast(options.key_lengths, i64), {scores[0], 1, 1, 1});
    allowed = j < lengths;
  }
  if (!by_distance) return allowed;
  Tensor offset = fill({}, 0, i64);
  if (lengths.defined()) offset = lengths - extent(queries, i64);
  else if (options.past_key.defined()) offset = extent(options.past_key.shape()[2], i64);
  const Tensor ahead = j - (reshape(iota({queries}, i64), {1, 1, queries, 1}) + offset);
  if (options.causal) allowed = both(allowed, ahead <= 0);
  if (options.left_window >= 0) allowed = both(allowed, ahead >= -options.left_window);
  if (options.right_window >= 0) allowed = both(allowed, ahead <= options.right_window);
  return allowed;
}

/// True if a query may be left without any key: causality alone leaves each the first one.
bool may_leave_none(const Options& options) {
  return options.mask.defined() || options.key_lengths.defined() || options.left_window >= 0 ||
         options.right_window >= 0;
}

/// booleans [batch, heads, queries, 1]: for which queries a key is left.
Tensor any_key_left(const Masks& masks) {
  const ReduceOptions along_keys{.axis = {-1}, .keepdims = true};
  if (!masks.added.defined()) return reduce_any(masks.allowed, along_keys);
  const Tensor there = not_equal(masks.added, not_allowed);
  return reduce_any(both(masks.allowed, there), along_keys);
}

double scale_of(const Options& options, const Tensor& query) {
  const std::int64_t width = query.shape()[3];
  require(width >= 0 || options.scale, op, ": query is ", query.spec(),
          ": its width must be known when tracing, or the scale given");
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(width, 1))));
}

Tensor dropped_out(const Tensor& weights, double rate) {
  if (rate == 0) return weights;
  const Tensor drawn = random::uniform(weights.shape(), {.dtype = computed_in(weights.dtype())});
  return where(drawn < rate, fill_like(weights, 0), weights * (1 / (1 - rate)));
}

using Softmax = Tensor (*)(const Tensor& scores);
Tensor softmax_of_rows(const Tensor& scores) { return softmax(scores); }

/// softmax over keys of `masked`; zeros where no key is left.
Tensor weights_of(const Tensor& masked, const Masks& masks, const Options& options, Softmax soften) {
  const Tensor x = options.softmax_dtype ? cast(masked, *options.softmax_dtype) : masked;
  if (!may_leave_none(options)) return cast(soften(x), masked.dtype());
  const Tensor left = any_key_left(masks);
  const Tensor weights = soften(where(left, x, fill_like(x, 0)));
  return cast(where(left, weights, fill_like(weights, 0)), masked.dtype());
}

/// From scores to weights.
void weigh(AttentionSteps& steps, const Options& options, Softmax soften) {
  steps.capped = options.softcap > 0 ? tanh(steps.scores / options.softcap) * options.softcap : steps.scores;
  Masks masks = given_mask(options, steps.scores.spec());
  masks.allowed = both(masks.allowed, allowed_by_place(options, steps.scores.shape()));
  steps.masked = masks.added.defined() ? steps.capped + masks.added : steps.capped;
  if (masks.allowed.defined()) steps.masked = where(masks.allowed, steps.masked, fill_like(steps.masked, not_allowed));
  steps.weights = weights_of(steps.masked, masks, options, soften);
}

}  // namespace

Tensor attention_weights(const Tensor& scores, const Options& options, Softmax soften) {
  const HostFloats floats;
  AttentionSteps steps{.scores = scores};
  weigh(steps, options, soften);
  return steps.weights;
}

AttentionSteps attention_steps(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options) {
  const HostFloats floats;
  check_operands(query, key, value, options);
  AttentionSteps steps{.present_key = after_past(options.past_key, key, "past_key"),
                       .present_value = after_past(options.past_value, value, "past_value")};
  const std::int64_t groups = key.shape()[1], keys = steps.present_key.shape()[2];
  const Shape scores{query.shape()[0], query.shape()[1], query.shape()[2], keys};
  const double scale = scale_of(options, query);
  // Narrow products overflow less when both sides are scaled; else one multiplication of the smaller side is enough.
  const bool both_sides = is_narrow(query.dtype()) && scale > 0;
  const double of_query = both_sides ? std::sqrt(scale) : scale;
  const Tensor keys_of_products = both_sides ? steps.present_key * of_query : steps.present_key;
  steps.scores = reshape(matmul(with_grouped_rows(query * of_query, groups), transpose(keys_of_products)), scores);
  weigh(steps, options, softmax_of_rows);
  steps.output = weighted_values(dropped_out(steps.weights, options.dropout), steps.present_value);
  return steps;
}

Tensor weighted_values(const Tensor& weights, const Tensor& value) {
  require(weights.shape().rank() == 4 && value.shape().rank() == 4 && value.shape()[1] > 0 &&
              weights.shape()[1] % value.shape()[1] == 0,
          op, ": weights are ", weights.spec(), ", values ", value.spec(), ": the heads do not fit");
  Shape result = weights.shape();
  result.set(3, value.shape()[3]);
  return reshape(matmul(with_grouped_rows(weights, value.shape()[1]), value), result);
}

namespace {

/// True if nothing but masks stands between the products and the softmax.
bool is_plain(const Options& options, DType t) {
  return options.softcap == 0 && options.dropout == 0 &&
         options.softmax_dtype.value_or(computed_in(t)) == computed_in(t);
}

/// All masks but causality without an offset as one, of four dimensions; empty: none.
Tensor one_mask(Options options, const Shape& scores, DType t) {
  if (!options.past_key.defined() && !options.key_lengths.defined()) options.causal = false;
  const Masks masks = given_mask(options, {t, scores});
  const Tensor allowed = both(masks.allowed, allowed_by_place(options, scores));
  Tensor mask = allowed;
  if (masks.added.defined()) {
    mask = cast(masks.added, computed_in(t));
    if (allowed.defined()) mask = where(allowed, mask, scalar_like(mask, not_allowed, op));
  }
  while (mask.defined() && mask.shape().rank() < 4) mask = expand_dims(mask, 0);
  return mask;
}

/// Products take bf16 as it is.
Tensor with_time_first(const Tensor& x) {
  return cast(transpose(x, {0, 2, 1, 3}), x.dtype() == bf16 ? bf16 : computed_in(x.dtype()));
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value, Options options) {
  const HostFloats floats;
  check_options("scaled_dot_product_attention", options);
  check_operands(query, key, value, options);
  if (!is_plain(options, query.dtype())) return attention_steps(query, key, value, options).output;
  const Tensor keys = after_past(options.past_key, key, "past_key");
  const Tensor values = after_past(options.past_value, value, "past_value");
  const Shape scores{query.shape()[0], query.shape()[1], query.shape()[2], keys.shape()[2]};
  const Tensor mask = one_mask(options, scores, query.dtype());
  Tensors operands{with_time_first(query), with_time_first(keys), with_time_first(values)};
  if (mask.defined()) operands.push_back(mask);
  const bool counted = options.past_key.defined() || options.key_lengths.defined();
  const BlockedAttention attention{
      .scale = scale_of(options, query), .causal = options.causal && !counted, .masked = mask.defined()};
  return transpose(cast(gradus::detail::apply(attention, In(operands)), query.dtype()), {0, 2, 1, 3});
}

Tensor split_heads(const Tensor& x, std::int64_t heads) {
  require(x.shape().rank() == 3 && heads > 0 && x.shape()[2] >= 0 && x.shape()[2] % heads == 0,
          "split_heads: expected [batch, time, width] with a width that is a multiple of ", heads, " heads, got ",
          x.spec());
  const Shape& s = x.shape();
  return transpose(reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}

Tensor join_heads(const Tensor& x) {
  require(x.shape().rank() == 4, "join_heads: expected [batch, heads, time, width], got ", x.spec());
  const Shape& s = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3}), {s[0], s[2], dimension::multiply(s[1], s[3])});
}

namespace {

constexpr std::string_view rotary = "rotary_embedding";

/// A table as [batch or 1, 1, time, half].
Tensor table_of(const Tensor& table, std::string_view which, const Tensor& x, std::int64_t half,
                const Tensor& positions) {
  require(table.dtype() == x.dtype() || table.dtype() == computed_in(x.dtype()), rotary, ": ", which, " is ",
          table.spec(), ", x is ", x.spec(), ": their dtypes differ; cast one of them");
  require(table.shape().rank() >= 2 && table.shape()[-1] == half, rotary, ": ", which, " is ", table.spec(),
          ", expected ", half, " in the last dimension, half the width that turns of ", x.spec());
  if (!positions.defined()) {
    const Tensor t = table.shape().rank() == 2 ? expand_dims(widened(table), 0) : widened(table);
    require(
        t.shape().rank() == 3 && t.shape()[1] == x.shape()[2] && (t.shape()[0] == 1 || t.shape()[0] == x.shape()[0]),
        rotary, ": ", which, " is ", table.spec(), ", expected one row for each place of x, ", x.spec());
    return expand_dims(t, 1);
  }
  require(table.shape().rank() == 2, rotary, ": ", which, " is ", table.spec(), ", expected [places, ", half,
          "] with positions");
  require(is_integer(positions.dtype()) && positions.shape().rank() == 2 && positions.shape()[1] == x.shape()[2] &&
              (positions.shape()[0] == 1 || positions.shape()[0] == x.shape()[0]),
          rotary, ": positions are ", positions.spec(), ", expected integers [batch, time] for x, ", x.spec());
  return expand_dims(gather(widened(table), positions), 1);
}

/// Element `which` (0 or 1) of the pairs: [..., width] -> [..., width / 2].
Tensor part_of_pairs(const Tensor& x, int which, bool interleaved) {
  const std::int64_t half = x.shape()[-1] / 2;
  if (!interleaved) return slice_within(x, -1, which * half, half);
  Shape pairs = x.shape();
  pairs.set(-1, half);
  pairs.push_back(2);
  return squeeze(slice_within(reshape(x, pairs), -1, which, 1), {-1});
}

}  // namespace

Tensor rotary_embedding(const Tensor& x, const Tensor& cosine, const Tensor& sine, RotaryOptions options) {
  check_options("rotary_embedding", options);
  require(is_floating(x.dtype()) && x.shape().rank() == 4, rotary,
          ": expected floats [batch, heads, time, width], got ", x.spec());
  const std::int64_t all = x.shape()[-1], width = options.width ? options.width : all;
  require(all >= 0 && width >= 0 && width <= all && width % 2 == 0, rotary,
          ": the width that turns must be even and "
          "at most that of x, ",
          x.spec(), "; got ", width);
  const Tensor c = table_of(cosine, "cosine", x, width / 2, options.positions);
  const Tensor s = table_of(sine, "sine", x, width / 2, options.positions);
  const Tensor turned = widened(slice_within(x, -1, 0, width));
  const Tensor a = part_of_pairs(turned, 0, options.interleaved), b = part_of_pairs(turned, 1, options.interleaved);
  const std::vector<Tensor> parts{a * c - b * s, b * c + a * s};
  const Tensor wide = options.interleaved ? reshape(stack(parts, -1), turned.shape()) : concat(parts, -1);
  const Tensor front = cast(wide, x.dtype());
  return width == all ? front : concat({front, slice_within(x, -1, width, all - width)}, -1);
}

}  // namespace gradus
