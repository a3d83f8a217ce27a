/// Sums, weights, and the rules of addition.
#include "gradus/gradients/loss.h"
#include "gradus/gradients/weighed.h"
#include "gradus/graph/context.h"
#include "gradus/graph/same_value.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/special.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

bool same_weight(const Tensor& a, const Tensor& b) {
  if (are_surely_equal(*a.node(), *b.node())) return true;
  return !a.is_symbolic() && !b.is_symbolic() && a.item() == b.item();
}

Tensor divide_or_zero(const Tensor& sum, const Tensor& weight) {
  return where(equal(weight, 0), zeros_like(sum), sum / where(equal(weight, 0), ones_like(weight), weight));
}

void check_floating(std::string_view what, const Tensor& x) {
  require(is_floating(x.dtype()), what, " is ", x.spec(), ", expected a floating type; cast it first");
}

}  // namespace

Loss Loss::mean(const Tensor& per_example) {
  check_floating("Loss::mean: per_example", per_example);
  const Tensor wide = widened(per_example), weight = element_count(wide, wide.dtype());
  if (SizeChoice::choose(per_example.shape().size() > 0)) return {reduce_mean(wide), weight};
  return {reduce_sum(wide) / maximum(weight, 1), weight};  // there may be none: 0
}

Loss Loss::mean(const Tensor& per_example, const Tensor& sample_weight) {
  check_floating("Loss::mean: per_example", per_example);
  require(sample_weight.spec() == per_example.spec(), "Loss::mean: sample_weight is ", sample_weight.spec(),
          ", expected that of the losses, ", per_example.spec());
  const Tensor weights = widened(sample_weight), weight = reduce_sum(weights);
  return {divide_or_zero(reduce_sum(multiply_no_nan(widened(per_example), weights)), weight), weight};
}

Loss Loss::of(const Tensor& scalar) {
  check_floating("Loss::of: scalar", scalar);
  require(scalar.shape().size() == 1, "Loss::of: expected a scalar, got ", scalar.spec(),
          "; Loss::mean takes examples");
  const Tensor wide = widened(scalar);
  return {reduce_sum(wide), fill({}, 1, wide.dtype())};
}

Loss Loss::of_sums(Tensor sum, Tensor weight) {
  Loss loss;
  loss.sum_ = std::move(sum);
  loss.weight_ = std::move(weight);
  return loss;
}

Tensor weighed(const Tensor& mean, const Tensor& weight) {
  const bool surely_counts = known_fill(weight).value_or(0) != 0;
  const Tensor factor = cast(weight, mean.dtype());
  return SizeChoice::choose(surely_counts) ? mean * factor : multiply_no_nan(mean, factor);
}

Tensor Loss::own_value() const {
  if (!defined()) return zeros({});
  return sum_.defined() ? divide_or_zero(sum_, weight_) : mean_;
}
Tensor Loss::own_weight() const { return defined() ? weight_ : zeros({}); }

Tensor Loss::value() const {
  const Tensor own = own_value();
  return varies() ? divide_or_zero(sum(), weight()) : own;
}
Tensor Loss::own_sum() const { return sum_.defined() ? sum_ : weighed(mean_, weight_); }
bool Loss::varies() const {
  return defined() && (weight_.node()->varies || (sum_.defined() ? sum_ : mean_).node()->varies);
}
Tensor Loss::sum() const {
  if (!defined()) return zeros({});
  return varies() ? sum_over_shards(own_sum()) : own_sum();
}
Tensor Loss::weight() const {
  if (!defined()) return zeros({});
  return varies() ? sum_over_shards(weight_) : weight_;
}

Loss Loss::operator+(const Loss& other) const {
  require(defined() && other.defined(), "adding losses: one of them is empty");
  require(
      same_weight(weight_, other.weight_),
      "adding losses: they have different weights, or weights that cannot be shown to be equal; add the per-example "
      "losses and take one Loss::mean, or use += for parts of a batch");
  return {own_value() + other.own_value(), weight_};
}

Loss Loss::operator+(const Tensor& penalty) const {
  require(defined(), "adding a penalty to an empty Loss");
  require(penalty.shape().size() == 1, "adding a penalty to a Loss: expected a scalar, got ", penalty.spec());
  return {own_value() + reduce_sum(penalty), weight_};
}

Loss Loss::operator*(Scalar factor) const {
  require(defined(), "scaling an empty Loss");
  return {own_value() * factor, weight_};
}

Loss& Loss::operator+=(const Loss& other) {
  if (!other.defined()) return *this;
  if (!defined()) return *this = other;
  sum_ = own_sum() + other.own_sum();
  weight_ = weight_ + other.weight_;
  mean_ = {};
  return *this;
}

std::ostream& operator<<(std::ostream& out, const Loss& loss) { return out << loss.value(); }

}  // namespace gradus
