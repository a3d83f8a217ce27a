/// Sums, weights, and the rules of addition.
#include "gradus/gradients/loss.h"
#include "gradus/gradients/shard_target.h"
#include "gradus/gradients/weighed.h"
#include "gradus/graph/shard_context.h"
#include "gradus/graph/same_value.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/special.h"
#include "gradus/ops/summands.h"
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

void check_scalar(std::string_view what, const Tensor& x) {
  check_floating(what, x);
  require(x.shape().size() == 1, what, ": expected a scalar, got ", x.spec(), "; Loss::mean takes examples");
}

/// This shard's part of a value that is the same on all shards.
Tensor share_of(const Tensor& x) {
  const int shards = number_of_shards();
  return shards > 1 ? x / static_cast<double>(shards) : x;
}

/// The sum of two sums over shards: if only one of them is the same on all shards, it counts once.
Tensor sum_of_totals(const Tensor& a, const Tensor& b) {
  const bool of_shard = a.node()->varies || b.node()->varies;
  const auto part = [&](const Tensor& x) { return of_shard && !x.node()->varies ? share_of(x) : x; };
  return part(a) + part(b);
}

bool is_surely_zero(const Tensor& x) {
  if (const auto filled = known_fill(x)) return *filled == 0;
  return !x.is_symbolic() && x.item() == 0;
}

/// Refuses terms that are the same on all shards: they would add up as well, and may not be meant to.
void check_own_terms(const Tensor& scalar) {
  if (!differs_by_shard(scalar) || scalar.shape().rank() > 0) return;
  const Tensor common =
      find_term(scalar, [](const Tensor& term) { return !term.node()->varies && !is_surely_zero(term); });
  require(!common.defined(), "Loss::sum: a term of this sum is the same on all shards of the batch, and would count ",
          "once for each; add it as a penalty, which counts once: Loss::sum(reduce_sum(per_example) / global_batch) + "
          "penalty");
}

/// The body of a loop does not know the shards, and adds up parts of a batch.
bool is_part_of_batch(const Tensor& x) {
  const ShardContext* const shards = shard_context();
  return x.node()->varies && shards && (shards->count > 0 || !shards->place);
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

Loss Loss::sum(const Tensor& scalar) {
  check_scalar("Loss::sum", scalar);
  check_own_terms(scalar);
  return of_total(reduce_sum(widened(scalar)));
}

Loss Loss::of(const Tensor& scalar) {
  check_scalar("Loss::of", scalar);
  require(!is_part_of_batch(scalar), "Loss::of: ", scalar.spec(), loss_for_shards);
  const Tensor wide = widened(scalar);
  return {reduce_sum(wide), fill({}, 1, wide.dtype())};
}

Loss Loss::of_total(Tensor total, bool has_penalty) {
  const DType type = total.dtype();
  Loss loss(std::move(total), fill({}, 1, type));
  loss.is_sum_ = true;
  loss.has_penalty_ = has_penalty;
  return loss;
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
  if (is_sum_) return sum();
  const Tensor own = own_value();
  return varies() ? divide_or_zero(sum(), weight()) : own;
}
Tensor Loss::own_sum() const { return is_sum_ ? mean_ : sum_.defined() ? sum_ : weighed(mean_, weight_); }
bool Loss::varies() const {
  return defined() && (weight_.node()->varies || (sum_.defined() ? sum_ : mean_).node()->varies);
}
Tensor Loss::sum() const {
  if (!defined()) return zeros({});
  return varies() ? sum_over_shards(own_sum()) : own_sum();
}
Tensor Loss::weight() const {
  if (!defined()) return zeros({});
  return varies() && !is_sum_ ? sum_over_shards(weight_) : weight_;
}
Loss Loss::over_shards() const {
  if (!defined()) return *this;
  return is_sum_ ? of_total(sum(), has_penalty_) : of_sums(sum(), weight());
}

Loss Loss::operator+(const Loss& other) const {
  require(defined() && other.defined(), "adding losses: one of them is empty");
  require(is_sum_ == other.is_sum_,
          "adding losses: one of them is a mean over examples, which has a weight, and the "
          "other one a Loss::sum; make both Loss::mean, or both Loss::sum");
  if (is_sum_) return of_total(sum_of_totals(mean_, other.mean_), has_penalty_ || other.has_penalty_);
  require(
      same_weight(weight_, other.weight_),
      "adding losses: they have different weights, or weights that cannot be shown to be equal; add the per-example "
      "losses and take one Loss::mean, or use += for parts of a batch");
  return {own_value() + other.own_value(), weight_};
}

Loss Loss::operator+(const Tensor& penalty) const {
  require(defined(), "adding a penalty to an empty Loss");
  require(penalty.shape().size() == 1, "adding a penalty to a Loss: expected a scalar, got ", penalty.spec());
  require(!differs_by_shard(penalty), "adding a penalty to a Loss: ", penalty.spec(), loss_for_shards,
          "; losses over the same examples can be added, as in Loss::mean(errors) + Loss::mean(penalties)");
  if (!is_sum_) return {own_value() + reduce_sum(penalty), weight_};
  return of_total(sum_of_totals(mean_, reduce_sum(penalty)), true);
}

Loss Loss::plus_part(const Tensor& part) const {
  if (!differs_by_shard(part)) return *this + part;
  if (is_sum_) return of_total(sum_of_totals(mean_, part), has_penalty_);
  return of_sums(own_sum() + weight() * part, weight_);
}

/// If the weights are numbers of rows, or of elements of rows, the mean over rows is weighted by them.
Loss Loss::plus_mean_of_rows(const Tensor& mean, std::int64_t rows) const {
  if (!differs_by_shard(mean)) return *this + mean;
  if (!is_sum_ && known_fill(weight_)) return {own_value() + mean, weight_};
  const Tensor own = extent(rows, mean.dtype());
  return plus_part(mean * (own / sum_over_shards(own)));
}

Loss Loss::operator*(Scalar factor) const {
  require(defined(), "scaling an empty Loss");
  return is_sum_ ? of_total(mean_ * factor, has_penalty_) : Loss(own_value() * factor, weight_);
}

/// A loss that is the same on all shards counts once when it is added to one that differs.
void Loss::add_means(const Loss& other) {
  const bool is_mixed = varies() != other.varies() && number_of_shards() > 1;
  const auto part = [&](const Loss& loss, const Tensor& x) { return is_mixed && !loss.varies() ? share_of(x) : x; };
  const Tensor sum = part(*this, own_sum()) + part(other, other.own_sum());
  weight_ = part(*this, weight_) + part(other, other.weight_);
  sum_ = sum;
  mean_ = {};
}

Loss& Loss::operator+=(const Loss& other) {
  if (!other.defined()) return *this;
  if (!defined()) return *this = other;
  require(
      is_sum_ == other.is_sum_,
      "adding parts of a batch: one is a mean over examples, which has a weight, and the other one a Loss::sum; make "
      "both Loss::mean, or both Loss::sum");
  has_penalty_ = has_penalty_ || other.has_penalty_;
  if (is_sum_) mean_ = sum_of_totals(mean_, other.mean_);
  else add_means(other);
  return *this;
}

std::ostream& operator<<(std::ostream& out, const Loss& loss) { return out << loss.value(); }

}  // namespace gradus
