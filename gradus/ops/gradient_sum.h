/// The sum of what a gradient is made of, term by term: for walks back, and for gradients of variables.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// Terms of one spec, added up in the order in which they come. Narrow floats are added in f32 and rounded once,
/// however many terms there are; what slices of one tensor give back is laid side by side (disjoint_sum.h).
class GradientSum {
 public:
  void add(const Tensor& term);
  bool defined() const { return value_.defined(); }
  /// Of the terms' spec; empty before the first.
  const Tensor& value() const { return value_; }
  /// The same before it is rounded: f32, once several terms of a narrow type have been added.
  const Tensor& unrounded() const { return wide_.defined() ? wide_ : value_; }

 private:
  Tensor value_, wide_;
};

}  // namespace gradus
