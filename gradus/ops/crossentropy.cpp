/// Cross entropies by formulas that do not overflow.
#include "gradus/ops/crossentropy.h"
#include <numbers>
#include "gradus/base/floating_point_state.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/logits.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// Labels and logits of one spec.
void check_pair(std::string_view op, const Tensor& labels, const Tensor& logits) {
  require_floating(logits, op);
  require(labels.spec() == logits.spec(), op, ": labels are ", labels.spec(), ", logits are ", logits.spec(),
          "; they must agree");
}

}  // namespace

Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  check_pair("sigmoid_cross_entropy_with_logits", labels, logits);
  return in_computed_dtype(labels, logits, [](const Tensor& z, const Tensor& x) { return sigmoid_crossentropy(x, z); });
}

Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, const NumberOrTensor& positive) {
  constexpr std::string_view op = "weighted_cross_entropy_with_logits";
  const Tensor pos_weight = positive.beside(logits, op);
  check_pair(op, labels, logits);
  require_floating(logits, pos_weight, op);
  const Tensor weight = cast(pos_weight, computed_in(logits.dtype()));
  return in_computed_dtype(labels, logits, [&](const Tensor& z, const Tensor& x) {
    // For very large x only the part that disagrees counts: the other one is 0, which infinity would make NaN.
    const Tensor is_large = abs(x) > 1e30, a = where(is_large, fill_like(x, 0), x);
    const Tensor limit = multiply_no_nan(abs(x), where(x > 0, 1 - z, weight * z));
    return where(is_large, limit, (1 - z) * a + (1 + (weight - 1) * z) * softplus(-a));
  });
}

Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, int axis) {
  check_pair("softmax_cross_entropy_with_logits", labels, logits);
  const int at = checked_axis(logits, axis, "softmax_cross_entropy_with_logits");
  return in_computed_dtype(labels, logits, [&](const Tensor& z, const Tensor& x) {
    return -reduce_sum(multiply_no_nan(log_shares(x, at), z), {.axis = {at}});
  });
}

Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  constexpr std::string_view op = "sparse_softmax_cross_entropy_with_logits";
  require_floating(logits, op);
  const int rank = logits.shape().rank();
  require(rank >= 1 && logits.shape().back() > 0, op, ": logits are ", logits.spec(),
          ", expected classes, whose number is known, along the last axis");
  Shape examples = logits.shape();
  examples.erase(-1);
  require(is_integer(labels.dtype()) && labels.shape() == examples, op, ": labels are ", labels.spec(),
          ", expected integers ", examples, " for logits ", logits.spec());
  const Tensor x = widened(logits);
  const LogitRows rows(x);
  const Tensor right = take_along_axis(rows.shifted, expand_dims(labels, -1), -1);
  return cast(squeeze(rows.log_sum - right, {-1}), logits.dtype());
}

Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input, bool compute_full_loss) {
  check_pair("log_poisson_loss", targets, log_input);
  return in_computed_dtype(targets, log_input, [&](const Tensor& z, const Tensor& x) {
    const Tensor is_limit = logical_and(x > 1e4, is_finite(z));  // exp(x) is infinite: x * z is small beside it
    const Tensor loss = exp(x) - multiply_no_nan(where(is_limit, fill_like(x, 0), x), z);
    if (!compute_full_loss) return loss;
    const Tensor is_large = z > 1;
    const Tensor large = where(is_large, z, 1);
    const Tensor stirling = large * log(large) - large + log(large * (2 * std::numbers::pi)) * 0.5;
    return loss + where(is_large, stirling, 0);
  });
}

Tensor l2_loss(const Tensor& x) {
  require_floating(x, "l2_loss");
  const Tensor w = widened(x);
  return cast(reduce_sum(square(w)) * 0.5, x.dtype());
}

Tensor bias_add(const Tensor& value, const Tensor& bias) {
  require(value.shape().rank() >= 2 && bias.shape() == Shape{value.shape().back()} && bias.dtype() == value.dtype(),
          "bias_add: the value is ", value.spec(), ", the bias ", bias.spec(),
          "; expected [..., channels] and [channels] of one dtype");
  return value + bias;
}

Tensor crelu(const Tensor& x, int axis) { return concat({relu(x), relu(-x)}, axis); }

Tensor embedding_lookup(const Tensor& params, const Tensor& ids, double max_norm) {
  require(params.shape().rank() >= 1 && is_integer(ids.dtype()), "embedding_lookup: the table is ", params.spec(),
          ", the ids are ", ids.spec(), "; expected rows and integers");
  require(max_norm >= 0, "embedding_lookup: max_norm must not be negative, got ", max_norm);
  const Tensor rows = gather(params, ids);
  if (max_norm == 0) return rows;
  require_floating(params, "embedding_lookup");
  std::vector<int> axes;
  for (int i = ids.shape().rank(); i < rows.shape().rank(); ++i) axes.push_back(i);
  const Tensor wide = widened(rows);
  const Tensor length = axes.empty() ? abs(wide) : norm(wide, {.axis = axes, .keepdims = true});
  return cast(wide * max_norm / maximum(length, max_norm), rows.dtype());
}

Tensor dropout(const Tensor& x, double rate) {
  const HostFloats floats;
  require_floating(x, "dropout");
  require(rate >= 0 && rate < 1, "dropout: the rate must be at least 0 and below 1, got ", rate);
  if (rate == 0) return x;
  const Tensor drawn = random::uniform(x.shape(), {.dtype = computed_in(x.dtype())});
  return where(drawn < rate, fill_like(x, 0), x * (1 / (1 - rate)));
}

Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions, std::int64_t num_classes,
                        const Tensor& weights) {
  constexpr std::string_view op = "confusion_matrix";
  require(is_integer(labels.dtype()) && labels.shape().rank() == 1 && is_integer(predictions.dtype()) &&
              predictions.shape() == labels.shape(),
          op, ": labels are ", labels.spec(), ", predictions are ", predictions.spec(), "; expected integers [n]");
  require(num_classes > 0, op, ": num_classes must be positive, got ", num_classes);
  require(!weights.defined() || weights.shape() == labels.shape(), op, ": labels are ", labels.spec(), ", weights are ",
          weights.defined() ? weights.spec() : labels.spec(), "; expected one for each");
  if (!weights.defined()) require_held(op, i32, labels.shape()[0]);
  const Tensor count = weights.defined() ? weights : fill(labels.shape(), 1, i32);
  const Tensor places = stack({cast(labels, i64), cast(predictions, i64)}, 1);
  return scatter_nd(places, count, {num_classes, num_classes});
}

Tensor invert_permutation(const Tensor& x) {
  require(is_integer(x.dtype()) && x.shape().rank() == 1, "invert_permutation: expected integers [n], got ", x.spec());
  return scatter_nd(expand_dims(x, 1), iota(x.shape(), x.dtype()), x.shape());
}

}  // namespace gradus
