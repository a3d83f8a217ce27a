/// Gradients together with the variables that they belong to. Complete gradients can be clipped; clipped ones cannot be
/// accumulated.
#pragma once
#include <iosfwd>
#include "gradus/function/variable.h"
#include "gradus/gradients/gradient_part.h"

namespace gradus {

/// The reading interface that Gradients and ClippedGradients share. In a step that a strategy runs they cover the
/// examples of one shard; the first reading extends them to all shards.
class GradientsView {
 public:
  /// The number of variables.
  std::size_t size() const { return variables_.size(); }
  /// The mean, in the variable's spec. The gradient of a large table that was gathered from is kept as rows; each call
  /// writes them into zeros of that spec. OutOfRange past the last one.
  Tensor operator[](std::size_t i) const;
  /// The gradient of `variable`, as above. InvalidArgument for a variable that is not among them.
  Tensor operator[](const Variable& variable) const;
  /// The variables, in the order of the gradients.
  const Variables& variables() const { return variables_; }
  /// Prints variables and gradients.
  friend std::ostream& operator<<(std::ostream& out, const GradientsView& gradients);

  // For the rooms of the library.
  /// Visits every tensor that it holds.
  void for_each_tensor(auto visit) {
    for (detail::GradientPart& part : parts_) part.for_each_tensor(visit);
    visit(weight_);
  }
  /// The mean as it is kept, in full or as rows.
  detail::GradientPart mean(std::size_t i) const;
  /// mean() of the shard's own examples.
  detail::GradientPart own_mean(std::size_t i) const;
  /// Under loss scaling one boolean: true if all were finite before clipping. Empty otherwise.
  Tensor finite_under_scaling() const;

 protected:
  GradientsView() = default;
  /// True if they differ from shard to shard.
  bool is_of_shard() const;
  /// From now on these are of the examples of all shards.
  void join_shards() const;

  Variables variables_;
  mutable std::vector<detail::GradientPart> parts_;  // means for one part, or sums for several
  mutable Tensor weight_;
  Tensor finite_;  // known before clipping
  mutable bool are_sums_ = false;
  bool of_total_ = false;  // true for a Loss::sum: parts add up, and weight_ is 1
};

class ClippedGradients;

/// Gradients that may still be accumulated: means over examples, with their weight.
class Gradients : public GradientsView {
 public:
  /// Empty; the first += sets the variables.
  Gradients() = default;
  /// Accumulation: adds sums and weights. InvalidArgument if the variables differ, or if one side is of a mean and the
  /// other of a Loss::sum.
  Gradients& operator+=(const Gradients& other);
  Gradients& operator+=(const ClippedGradients& other) = delete;  // add them up first, clip the sum
  /// The number of examples, or the sum of their weights, over which the means were taken: a scalar. 1 for a Loss::sum.
  Tensor weight() const;

  /// The gradients of the examples of all shards. For the rooms of the library.
  const Gradients& over_shards() const {
    join_shards();
    return *this;
  }
  /// Means over examples of this joint weight. For the rooms of the library.
  Gradients(Variables variables, std::vector<detail::GradientPart> means, Tensor weight);
  /// Means over examples of this joint weight, in full. For the rooms of the library.
  Gradients(Variables variables, std::vector<Tensor> means, Tensor weight);
  /// Sums over examples of this joint weight.
  static Gradients of_sums(Variables variables, std::vector<detail::GradientPart> sums, Tensor weight);
  /// The gradients of a Loss::sum, whose weight is 1.
  static Gradients of_total(Variables variables, std::vector<detail::GradientPart> parts, Tensor one);
};

/// Gradients after clipping. They cannot be accumulated.
class ClippedGradients : public GradientsView {
 public:
  /// For the rooms of the library.
  ClippedGradients(Variables variables, std::vector<detail::GradientPart> means, Tensor finite = {});
};

/// Scales all gradients by norm / max(global norm, norm), which keeps the direction. If the global norm is not finite,
/// every gradient becomes NaN; of a gradient that is kept as rows, only these rows. InvalidArgument unless `norm` is
/// positive.
ClippedGradients clip_by_global_norm(const Gradients& gradients, double norm);
/// Scales the gradient of each variable by its own norm, which changes the direction. InvalidArgument unless `norm` is
/// positive.
ClippedGradients clip_by_norm(const Gradients& gradients, double norm);
/// Clips each element to [low, high]. InvalidArgument unless low <= high.
ClippedGradients clip_by_value(const Gradients& gradients, double low, double high);
/// The root of the sum of squares of all elements: a scalar.
Tensor global_norm(const GradientsView& gradients);
/// One boolean: true if all elements are finite.
Tensor all_finite(const GradientsView& gradients);

}  // namespace gradus
