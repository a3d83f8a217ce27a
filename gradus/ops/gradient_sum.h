/// The sum of the terms of a gradient: for reverse walks, and for gradients of variables.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// A sum of terms of one spec, added in the order in which they come. Narrow floats are added in f32 and rounded once,
/// however many terms there are. Gradients of slices of one tensor are laid side by side (disjoint_sum.h).
class GradientSum {
 public:
  void add(const Tensor& term);
  bool defined() const { return value_.defined(); }
  /// The sum in the terms' spec; empty before the first term.
  const Tensor& value() const { return value_; }
  /// The sum before it is rounded: f32, once several terms of a narrow type have been added.
  const Tensor& unrounded() const { return wide_.defined() ? wide_ : value_; }

 private:
  Tensor value_, wide_;
};

}  // namespace gradus
