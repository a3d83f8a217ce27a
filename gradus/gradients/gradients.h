/// Gradients together with the variables that they belong to. What is complete can be clipped; what is clipped cannot
/// be accumulated.
#pragma once
#include <iosfwd>
#include "gradus/function/variable.h"

namespace gradus {

/// What Gradients and ClippedGradients have in common: reading.
class GradientsView {
 public:
  std::size_t size() const { return variables_.size(); }
  /// The mean, of the variable's spec.
  Tensor operator[](std::size_t i) const;
  Tensor operator[](const Variable& variable) const;
  const Variables& variables() const { return variables_; }
  friend std::ostream& operator<<(std::ostream& out, const GradientsView& gradients);

  // For the rooms of the library.
  void for_each_tensor(auto visit) {
    for (Tensor& part : parts_) visit(part);
    visit(weight_);
  }
  /// Under loss scaling, whether all were finite before clipping: one boolean. Empty otherwise.
  Tensor finite_under_scaling() const;

 protected:
  GradientsView() = default;
  Variables variables_;
  std::vector<Tensor> parts_;  // means of one part, or sums of several
  Tensor weight_;
  Tensor finite_;  // known before clipping
  bool are_sums_ = false;
};

class Gradients : public GradientsView {
 public:
  /// Nothing yet; the first += sets the variables.
  Gradients() = default;
  /// Accumulation: sums and weights add; another list of variables is an InvalidArgument.
  Gradients& operator+=(const Gradients& other);
  Tensor weight() const;

  // For the rooms of the library: means over examples of this joint weight.
  Gradients(Variables variables, std::vector<Tensor> means, Tensor weight);
  /// Sums over examples of this joint weight.
  static Gradients of_sums(Variables variables, std::vector<Tensor> sums, Tensor weight);
};

class ClippedGradients : public GradientsView {
 public:
  // For the rooms of the library.
  ClippedGradients(Variables variables, std::vector<Tensor> means, Tensor finite = {});
};

/// Scales all by norm / max(global norm, norm): keeps the direction. A norm that is not finite makes every gradient
/// NaN.
ClippedGradients clip_by_global_norm(const Gradients& gradients, double norm);
/// Each variable on its own: turns the direction.
ClippedGradients clip_by_norm(const Gradients& gradients, double norm);
ClippedGradients clip_by_value(const Gradients& gradients, double low, double high);
/// Root of the sum of squares of all elements: a scalar.
Tensor global_norm(const GradientsView& gradients);
/// One boolean.
Tensor all_finite(const GradientsView& gradients);

}  // namespace gradus
