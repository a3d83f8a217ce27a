/// Gradients together with the variables that they belong to. What is complete can be clipped; what is clipped cannot
/// be accumulated.
#pragma once
#include <iosfwd>
#include "gradus/function/variable.h"
#include "gradus/gradients/gradient_part.h"

namespace gradus {

/// What Gradients and ClippedGradients have in common: reading.
class GradientsView {
 public:
  std::size_t size() const { return variables_.size(); }
  /// The mean, of the variable's spec. What the gradient of a large table that was gathered from is kept as, the rows
  /// that it has, is written into zeros of that spec by each call. OutOfRange past the last one.
  Tensor operator[](std::size_t i) const;
  /// InvalidArgument for a variable that is not among them.
  Tensor operator[](const Variable& variable) const;
  const Variables& variables() const { return variables_; }
  friend std::ostream& operator<<(std::ostream& out, const GradientsView& gradients);

  // For the rooms of the library.
  void for_each_tensor(auto visit) {
    for (GradientPart& part : parts_) part.for_each_tensor(visit);
    visit(weight_);
  }
  /// The mean as it is kept.
  GradientPart mean(std::size_t i) const;
  /// Under loss scaling, whether all were finite before clipping: one boolean. Empty otherwise.
  Tensor finite_under_scaling() const;

 protected:
  GradientsView() = default;
  Variables variables_;
  std::vector<GradientPart> parts_;  // means of one part, or sums of several
  Tensor weight_;
  Tensor finite_;  // known before clipping
  bool are_sums_ = false;
};

class ClippedGradients;

class Gradients : public GradientsView {
 public:
  /// Nothing yet; the first += sets the variables.
  Gradients() = default;
  /// Accumulation: sums and weights add; another list of variables is an InvalidArgument.
  Gradients& operator+=(const Gradients& other);
  Gradients& operator+=(const ClippedGradients& other) = delete;  // add them up first, clip the sum
  Tensor weight() const;

  // For the rooms of the library: means over examples of this joint weight.
  Gradients(Variables variables, std::vector<GradientPart> means, Tensor weight);
  Gradients(Variables variables, std::vector<Tensor> means, Tensor weight);
  /// Sums over examples of this joint weight.
  static Gradients of_sums(Variables variables, std::vector<GradientPart> sums, Tensor weight);
};

class ClippedGradients : public GradientsView {
 public:
  // For the rooms of the library.
  ClippedGradients(Variables variables, std::vector<GradientPart> means, Tensor finite = {});
};

/// Scales all by norm / max(global norm, norm): keeps the direction. A norm that is not finite makes every gradient
/// NaN; of one that is kept as rows, these rows. InvalidArgument unless `norm` is positive.
ClippedGradients clip_by_global_norm(const Gradients& gradients, double norm);
/// Each variable on its own: turns the direction. InvalidArgument unless `norm` is positive.
ClippedGradients clip_by_norm(const Gradients& gradients, double norm);
/// Each element to within `low` and `high`. InvalidArgument unless low <= high.
ClippedGradients clip_by_value(const Gradients& gradients, double low, double high);
/// Root of the sum of squares of all elements: a scalar.
Tensor global_norm(const GradientsView& gradients);
/// One boolean.
Tensor all_finite(const GradientsView& gradients);

}  // namespace gradus
