/// Loss: a mean over examples that knows its weight, so that parts of a batch add up exactly.
#pragma once
#include <iosfwd>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A mean over examples with its weight: the number of examples, or the sum of their sample weights. In a step that a
/// strategy runs it is of the examples of one shard; what is read of it, value(), sum() and weight(), is of all.
class Loss {
 public:
  /// Empty: sum 0, weight 0. The start of a +=.
  Loss() = default;
  /// The mean of all elements. Its weight is the number of elements of the tensor, such as batch * time. 0 for no
  /// elements. InvalidArgument unless they are floats.
  static Loss mean(const Tensor& per_example);
  /// The weighted mean. Its weight is the sum of sample_weight. 0 if the weights are all 0. A weight of exactly 0 takes
  /// its element out, whatever it is, NaN too: it adds 0, and its gradient is 0. (Ops before the element may turn that
  /// 0 into NaN; the losses of nn/losses.h prevent it up to the prediction.) InvalidArgument unless both are floats of
  /// one spec.
  static Loss mean(const Tensor& per_example, const Tensor& sample_weight);
  template <class... T>
  static Loss weighted_mean(const T&...) = delete;  // a mean with weights is Loss::mean(per_example, weight)
  /// A plain number, with weight 1. InvalidArgument unless it is one float.
  static Loss of(const Tensor& scalar);

  Tensor value() const;   // the mean, sum / weight: a scalar
  Tensor sum() const;     // sum over examples: a scalar
  Tensor weight() const;  // number of examples, or sum of their weights: a scalar
  /// value() on the host.
  double item() const { return value().item(); }
  /// Adds another objective over the same examples: values add. InvalidArgument for another weight, or an empty loss.
  Loss operator+(const Loss& other) const;
  /// Adds a penalty (regularization): value() + penalty, with the same weight. InvalidArgument unless the penalty is a
  /// scalar, and for an empty loss.
  Loss operator+(const Tensor& penalty) const;
  /// The loss times a factor. InvalidArgument for an empty loss.
  Loss operator*(Scalar factor) const;
  /// The loss times a factor.
  friend Loss operator*(Scalar factor, const Loss& loss) { return loss * factor; }
  /// Adds other examples, as parts of a batch: sums and weights add.
  Loss& operator+=(const Loss& other);
  /// Prints the value.
  friend std::ostream& operator<<(std::ostream& out, const Loss& loss);

  // For the rooms of the library.
  /// False for an empty loss.
  bool defined() const { return weight_.defined(); }
  /// value() and weight() of the shard's own examples.
  Tensor own_value() const;
  Tensor own_weight() const;
  /// The loss of the examples of all shards.
  Loss over_shards() const { return defined() ? of_sums(sum(), weight()) : *this; }
  /// A loss from a mean and its weight.
  static Loss of_mean(Tensor mean, Tensor weight) { return {std::move(mean), std::move(weight)}; }
  /// A loss from a sum and its weight.
  static Loss of_sums(Tensor sum, Tensor weight);
  /// Visits every tensor that it holds.
  void for_each_tensor(auto visit) {
    visit(mean_);
    visit(sum_);
    visit(weight_);
  }

 private:
  Tensor own_sum() const;
  bool varies() const;  // from shard to shard
  Loss(Tensor mean, Tensor weight) : mean_(std::move(mean)), weight_(std::move(weight)) {}
  Tensor mean_;  // of one part; empty once parts have been added
  Tensor sum_;   // of several parts
  Tensor weight_;
};

}  // namespace gradus
