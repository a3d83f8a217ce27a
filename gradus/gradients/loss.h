/// Loss: a mean over examples that knows its weight, so that parts of a batch add up exactly.
#pragma once
#include <iosfwd>
#include "gradus/graph/tensor.h"

namespace gradus {

class Loss {
 public:
  /// Empty: sum 0, weight 0; the start of a +=.
  Loss() = default;
  /// Weight: the number of elements of the tensor given, such as batch * time. Of none: 0. InvalidArgument unless they
  /// are floats.
  static Loss mean(const Tensor& per_example);
  /// The weighted mean; weight: the sum of sample_weight. Of no weight at all: 0. A weight of exactly 0 takes its
  /// element out, whatever it is, NaN too: it adds 0, and its gradient is 0. (What it was made of may make NaN of that
  /// 0; the losses of nn/losses.h see to it up to the prediction.) InvalidArgument unless both are floats of one spec.
  static Loss mean(const Tensor& per_example, const Tensor& sample_weight);
  /// A plain number: weight 1. InvalidArgument unless it is one float.
  static Loss of(const Tensor& scalar);

  Tensor value() const;  // sum / weight
  Tensor sum() const;
  Tensor weight() const;
  /// value() on the host.
  double item() const { return value().item(); }
  /// Another objective over the same examples: values add; another weight, or an empty loss, is an InvalidArgument.
  Loss operator+(const Loss& other) const;
  /// value() + penalty, of the same weight (regularisation). InvalidArgument unless the penalty is a scalar, and of an
  /// empty loss.
  Loss operator+(const Tensor& penalty) const;
  /// InvalidArgument of an empty loss.
  Loss operator*(Scalar factor) const;
  friend Loss operator*(Scalar factor, const Loss& loss) { return loss * factor; }
  /// Other examples, as parts of a batch: sums and weights add.
  Loss& operator+=(const Loss& other);
  friend std::ostream& operator<<(std::ostream& out, const Loss& loss);

  // For the rooms of the library.
  bool defined() const { return weight_.defined(); }
  static Loss of_mean(Tensor mean, Tensor weight) { return {std::move(mean), std::move(weight)}; }
  static Loss of_sums(Tensor sum, Tensor weight);
  void for_each_tensor(auto visit) {
    visit(mean_);
    visit(sum_);
    visit(weight_);
  }

 private:
  Loss(Tensor mean, Tensor weight) : mean_(std::move(mean)), weight_(std::move(weight)) {}
  Tensor mean_;  // of one part; empty once parts have been added
  Tensor sum_;   // of several parts
  Tensor weight_;
};

}  // namespace gradus
