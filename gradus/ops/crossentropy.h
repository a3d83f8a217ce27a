/// The losses of tf.nn, one number per example, and small network ops beside them. Composites; floats alone unless they
/// say otherwise. Narrow floats are computed in f32 and rounded once.
#pragma once
#include <cstdint>
#include "gradus/ops/named_axis.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// max(x, 0) - x z + log(1 + exp(-|x|)) per element, with z the label from 0 to 1 and x the logit. The shapes must
/// agree.
Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
/// sigmoid_cross_entropy_with_logits with the positive class weighted by pos_weight, which broadcasts.
Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, const NumberOrTensor& pos_weight);
/// -sum(labels * log_softmax(logits)) along `axis`, which is removed. Labels are probabilities in the shape of logits,
/// and get a gradient, too.
Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, int axis = -1);
inline Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, NamedAxis named) {
  return softmax_cross_entropy_with_logits(labels, logits, named.axis);
}
/// -log_softmax(logits)[label]. Labels are integers in the shape of logits without its last axis. A label outside of
/// the classes is an OutOfRange when the value is observed.
Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
/// exp(log_input) - targets * log_input. With compute_full_loss, Stirling's approximation of log(targets!) is added
/// where targets > 1.
Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input, bool compute_full_loss = false);
/// sum(x^2) / 2, a scalar.
Tensor l2_loss(const Tensor& x);

/// value + bias along the last axis. bias: [channels]; any number type.
Tensor bias_add(const Tensor& value, const Tensor& bias);
/// relu(x) and relu(-x), concatenated along `axis`.
Tensor crelu(const Tensor& x, int axis = -1);
inline Tensor crelu(const Tensor& x, NamedAxis named) { return crelu(x, named.axis); }
/// Rows of a table [n, ...], chosen by `ids`, integers of any shape. With max_norm > 0, rows of a larger Euclidean norm
/// are scaled down to it.
Tensor embedding_lookup(const Tensor& params, const Tensor& ids, double max_norm = 0);
/// Dropout: each element becomes 0 with probability `rate`, else it is divided by 1 - rate. InvalidArgument for a rate
/// outside [0, 1).
Tensor dropout(const Tensor& x, double rate);

/// The numbers of examples with label i (row) and prediction j (column): i32 [num_classes, num_classes]. labels and
/// predictions: integers [n]; a number that is no class is an OutOfRange when the value is observed. `weights` [n], if
/// given, are summed instead, in their own dtype.
Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions, std::int64_t num_classes,
                        const Tensor& weights = {});
/// The inverse y of a permutation x of 0 ... n - 1, integers: y[x[i]] = i. For an x that is no permutation, the result
/// is arbitrary, or an OutOfRange when it is observed.
Tensor invert_permutation(const Tensor& x);

}  // namespace gradus
