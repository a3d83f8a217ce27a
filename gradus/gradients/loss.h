/// Loss: a mean over examples that knows its weight, or a sum, so that parts of a batch add up exactly.
#pragma once
#include <iosfwd>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The error message for parts of a batch that each have the penalty.
inline constexpr const char* penalty_of_parts =
    "the loss of each part of the batch is a Loss::sum with a penalty, which would count once for each part; take "
    "Loss::mean, whose parts share a penalty by their weights, or add the penalty as a regularizer of a layer";

/// A mean over examples with its weight: the number of examples, or the sum of their sample weights. Or a sum, which
/// has no weight: parts of a batch add up. In a step that a strategy runs, a Loss covers the examples of one shard,
/// while value(), sum() and weight() are those of all shards.
class Loss {
 public:
  /// Empty: sum 0, weight 0. The start of a +=.
  Loss() = default;
  /// The mean of all elements. Its weight is the number of elements of the tensor, such as batch * time. 0 for no
  /// elements. InvalidArgument unless they are floats.
  static Loss mean(const Tensor& per_example);
  /// The weighted mean. Its weight is the sum of sample_weight. 0 if the weights are all 0. A weight of exactly 0
  /// removes its element, even if that is NaN: it adds 0, and its gradient is 0. (Ops before the element may turn that
  /// 0 into NaN; the losses of nn/losses.h prevent it up to the prediction.) InvalidArgument unless both are floats of
  /// one spec.
  static Loss mean(const Tensor& per_example, const Tensor& sample_weight);
  template <class... T>
  static Loss weighted_mean(const T&...) = delete;  // a mean with weights is Loss::mean(per_example, weight)
  /// A sum over examples, such as reduce_sum(per_example) / global_batch. The sums of a batch's shards, and of parts
  /// joined by +=, add up. A sum that is the same on all shards counts once. value() and sum() are that number, and
  /// weight() is 1. InvalidArgument unless it is one float, and if one of its terms is the same on all shards, as a
  /// penalty on weights is: add that to the Loss.
  static Loss sum(const Tensor& scalar);
  /// A plain number, with weight 1. InvalidArgument unless it is one float, and if it differs from shard to shard of
  /// the batch in a step that a strategy runs: use Loss::sum or Loss::mean there.
  static Loss of(const Tensor& scalar);

  Tensor value() const;   // the mean, sum / weight: a scalar
  Tensor sum() const;     // sum over examples: a scalar
  Tensor weight() const;  // number of examples, or sum of their weights: a scalar
  /// value() on the host.
  double item() const { return value().item(); }
  /// Adds another objective over the same examples: values add. InvalidArgument if the weights differ, if one side is a
  /// mean and the other a sum, or for an empty loss.
  Loss operator+(const Loss& other) const;
  /// Adds a penalty (regularization): value() + penalty, with the same weight. InvalidArgument unless the penalty is a
  /// scalar, for an empty loss, and if it differs from shard to shard of the batch.
  Loss operator+(const Tensor& penalty) const;
  /// The loss times a factor. InvalidArgument for an empty loss.
  Loss operator*(Scalar factor) const;
  /// The loss times a factor.
  friend Loss operator*(Scalar factor, const Loss& loss) { return loss * factor; }
  /// Adds other examples, as parts of a batch: sums and weights add. InvalidArgument if one side is a mean and the
  /// other a sum. A penalty on each of several sums counts once for each.
  Loss& operator+=(const Loss& other);
  /// Prints the value.
  friend std::ostream& operator<<(std::ostream& out, const Loss& loss);

  // For the rooms of the library.
  /// False for an empty loss.
  bool defined() const { return weight_.defined(); }
  /// True for a sum, which has no weight.
  bool is_sum() const { return is_sum_; }
  /// True for a sum to which a penalty was added. It has no weight that would make parts of a batch share the penalty.
  bool is_sum_with_penalty() const { return has_penalty_; }
  /// value(), sum() and weight() of the shard's own examples.
  Tensor own_value() const;
  Tensor own_sum() const;
  Tensor own_weight() const;
  /// The loss of the examples of all shards.
  Loss over_shards() const;
  /// value() + `part`; the parts of all shards add up.
  Loss plus_part(const Tensor& part) const;
  /// Adds a mean over `rows` rows of this shard; value() of all then contains the mean over the rows of all shards.
  Loss plus_mean_of_rows(const Tensor& mean, std::int64_t rows) const;
  /// A loss from a mean and its weight.
  static Loss of_mean(Tensor mean, Tensor weight) { return {std::move(mean), std::move(weight)}; }
  /// A loss from a sum and its weight.
  static Loss of_sums(Tensor sum, Tensor weight);
  /// Loss::sum of a scalar that belongs to the shard, or to all shards.
  static Loss of_total(Tensor total, bool has_penalty = false);
  /// Visits every tensor that it holds.
  void for_each_tensor(auto visit) {
    visit(mean_);
    visit(sum_);
    visit(weight_);
  }

 private:
  bool varies() const;  // from shard to shard
  void add_means(const Loss& other);
  Loss(Tensor mean, Tensor weight) : mean_(std::move(mean)), weight_(std::move(weight)) {}
  Tensor mean_;  // of one part; empty once parts have been added
  Tensor sum_;   // of several parts
  Tensor weight_;
  bool is_sum_ = false;       // mean_ is a sum
  bool has_penalty_ = false;  // of a sum
};

}  // namespace gradus
