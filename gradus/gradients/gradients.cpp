/// Accumulation and clipping.
#include "gradus/gradients/gradients.h"
#include "gradus/base/ranges.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/variable_cell.h"
#include "gradus/gradients/rows_of_shards.h"
#include "gradus/gradients/weighed.h"
#include "gradus/graph/shard_context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shards_ops.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

/// The means, for rows their sums.
std::vector<GradientPart> means_of(const GradientsView& gradients) {
  std::vector<GradientPart> means;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    means.push_back(gradients.mean(i).map([](const Tensor& mean) { return mean; }));
  return means;
}

std::vector<GradientPart> in_full(std::vector<Tensor> tensors) {
  std::vector<GradientPart> parts;
  for (Tensor& tensor : tensors) parts.emplace_back(std::move(tensor));
  return parts;
}

/// Root of the sum of all squares.
Tensor norm_of(const std::vector<GradientPart>& means) {
  Tensor sum;
  for (const GradientPart& part : means) {
    const Tensor mean = part.elements();
    const Tensor squares = reduce_sum(square(widened(mean)));
    sum = sum.defined() ? sum + cast(squares, sum.dtype()) : squares;
  }
  return sum.defined() ? sqrt(sum) : zeros({});
}

/// Over shards; in bf16, where the strategy says so. A strategy of one's own knows the sum by its scope.
Tensor sum_of_gradients(const Variable& variable, const Tensor& own) {
  const NameScope outside(std::uint32_t{0}), scope(text("gradient of ", variable.name()));
  const ShardContext* const shards = shard_context();
  if (!shards || !shards->sums_in_bf16 || own.dtype() != f32) return sum_over_shards(own);
  return cast(over_shards(AnyOp::of(AllReduce{.narrow = true}), cast(own, bf16)), f32);
}

void check_norm(std::string_view op, double norm) {
  check_number(op, "the norm", Allowed::positive("norm"), norm);  // an infinite one would make NaN
}

/// Without any weight gradients are 0, as the loss is.
Tensor divisor(const Tensor& weight) { return where(equal(weight, 0), ones_like(weight), weight); }

bool same_cells(const Variables& a, const Variables& b) { return a.cells() == b.cells(); }

}  // namespace

Tensor GradientsView::operator[](std::size_t i) const { return mean(i).whole(); }

GradientPart GradientsView::mean(std::size_t i) const {
  join_shards();
  return own_mean(i);
}

GradientPart GradientsView::own_mean(std::size_t i) const {
  require<OutOfRange>(i < parts_.size(), "gradient ", i, " of ", parts_.size());
  if (of_total_ ? parts_[i].dtype() == variables_[i].dtype() : !are_sums_) return parts_[i];
  if (of_total_) return parts_[i].map([&](const Tensor& sum) { return cast(sum, variables_[i].dtype()); });
  return parts_[i].map(
      [&](const Tensor& sum) { return cast(sum / cast(divisor(weight_), sum.dtype()), variables_[i].dtype()); });
}

bool GradientsView::is_of_shard() const {
  bool any = weight_.defined() && weight_.node()->varies;
  for (GradientPart& part : parts_)
    part.for_each_tensor([&](const Tensor& x) { any = any || (x.defined() && x.node()->varies); });
  return any;
}

void GradientsView::join_shards() const {
  if (!weight_.defined() || !is_of_shard()) return;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    GradientPart& part = parts_[i];
    const DType wide = computed_in(part.dtype());
    const auto summand = [&](const Tensor& x) {
      return are_sums_ || of_total_ ? cast(x, wide) : weighed(cast(x, wide), weight_);
    };
    if (auto rows = rows_over_shards(part.is_rows() ? part.map(summand) : part)) part = std::move(*rows);
    else part = GradientPart(sum_of_gradients(variables_[i], summand(part.whole())), part.is_of_lookups());
  }
  if (!of_total_) weight_ = sum_over_shards(weight_);
  are_sums_ = true;
}

Tensor GradientsView::operator[](const Variable& variable) const {
  const std::ptrdiff_t i = variables_.find(*variable.cell());
  require(i >= 0, "these gradients have none of variable ", variable.name());
  return (*this)[static_cast<std::size_t>(i)];
}

std::ostream& operator<<(std::ostream& out, const GradientsView& gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i)
    out << (i ? "\n" : "") << printable(gradients.variables()[i].name(), true) << ": " << gradients[i];
  return out;
}

Gradients::Gradients(Variables variables, std::vector<Tensor> means, Tensor weight)
    : Gradients(std::move(variables), in_full(std::move(means)), std::move(weight)) {}

Gradients::Gradients(Variables variables, std::vector<GradientPart> means, Tensor weight) {
  variables_ = std::move(variables);
  parts_ = std::move(means);
  weight_ = std::move(weight);
}

Gradients Gradients::of_sums(Variables variables, std::vector<GradientPart> sums, Tensor weight) {
  Gradients gradients(std::move(variables), std::move(sums), std::move(weight));
  gradients.are_sums_ = true;
  return gradients;
}

Gradients Gradients::of_total(Variables variables, std::vector<GradientPart> parts, Tensor one) {
  Gradients gradients(std::move(variables), std::move(parts), std::move(one));
  gradients.of_total_ = true;
  return gradients;
}

Tensor Gradients::weight() const {
  join_shards();
  return weight_.defined() ? weight_ : zeros({});
}

Gradients& Gradients::operator+=(const Gradients& other) {
  if (!other.weight_.defined()) return *this;
  if (!weight_.defined()) return *this = other;
  require(same_cells(variables_, other.variables_),
          "adding gradients: they belong to different lists of variables, of ", size(), " and ", other.size(),
          "; take both from the same trainable_variables()");
  require(of_total_ == other.of_total_,
          "adding gradients: one of them is of a mean over examples, which has a weight, and the other one of a "
          "Loss::sum; take both of a mean, or both of a sum");
  if (!is_of_shard() || !other.is_of_shard()) {  // one of them is of all shards already
    join_shards();
    other.join_shards();
  }
  const auto sum_of = [](const Gradients& g, std::size_t i) {
    const DType wide = computed_in(g.parts_[i].dtype());
    const bool is_sum = g.are_sums_ || g.of_total_;
    if (is_sum && g.parts_[i].dtype() == wide) return g.parts_[i];
    return g.parts_[i].map(
        [&](const Tensor& part) { return is_sum ? cast(part, wide) : weighed(cast(part, wide), g.weight_); });
  };
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i] = sum_of(*this, i) + sum_of(other, i);
  if (!of_total_) weight_ = weight_ + cast(other.weight_, weight_.dtype());
  are_sums_ = true;
  return *this;
}

Tensor GradientsView::finite_under_scaling() const {
  if (finite_.defined()) return finite_;
  return loss_scale_of(variables_) ? all_finite(*this) : Tensor();
}

ClippedGradients::ClippedGradients(Variables variables, std::vector<GradientPart> means, Tensor finite) {
  variables_ = std::move(variables);
  parts_ = std::move(means);
  finite_ = std::move(finite);
}

ClippedGradients clip_by_global_norm(const Gradients& gradients, double norm) {
  check_norm("clip_by_global_norm", norm);
  std::vector<GradientPart> means = means_of(gradients);
  const Tensor total = norm_of(means);
  // norm * min(1 / total, 1 / norm); total - total is NaN where total is not finite.
  const Tensor scale = minimum(norm / total, 1.0) + (total - total);
  for (GradientPart& part : means)
    part = part.map([&](const Tensor& mean) { return mean * cast(scale, mean.dtype()); });
  return {gradients.variables(), std::move(means), gradients.finite_under_scaling()};
}

ClippedGradients clip_by_norm(const Gradients& gradients, double norm) {
  check_norm("clip_by_norm", norm);
  std::vector<GradientPart> means = means_of(gradients);
  for (GradientPart& part : means)
    part = part.map([&](const Tensor& mean) { return gradus::clip_by_norm(mean, norm); });
  return {gradients.variables(), std::move(means), gradients.finite_under_scaling()};
}

ClippedGradients clip_by_value(const Gradients& gradients, double low, double high) {
  require(low <= high, "clip_by_value: low ", low, " is above high ", high);
  const auto clip = [&](const Tensor& mean) { return gradus::clip_by_value(mean, low, high); };
  const bool keeps_zero = low <= 0 && high >= 0;
  std::vector<GradientPart> means = means_of(gradients);
  for (GradientPart& part : means) part = keeps_zero ? part.map(clip) : GradientPart(clip(part.whole()));
  return {gradients.variables(), std::move(means), gradients.finite_under_scaling()};
}

Tensor global_norm(const GradientsView& gradients) { return norm_of(means_of(gradients)); }

Tensor all_finite(const GradientsView& gradients) {
  Tensor all = fill({}, 1, boolean);
  for (const GradientPart& mean : means_of(gradients)) all = logical_and(all, all_finite(mean.elements()));
  return all;
}

}  // namespace gradus
