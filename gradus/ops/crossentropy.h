/// The losses of tf.nn, one number an example, and small helpers of networks that live beside them. Composites; floats
/// alone unless they say otherwise. Narrow floats are computed in f32 and rounded once.
#pragma once
#include <cstdint>
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// max(x, 0) - x z + log(1 + exp(-|x|)) of each element, z the label from 0 to 1 and x the logit: the shapes agree.
Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
/// The same where the positive class counts pos_weight, which broadcasts, times.
Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, const NumberOrTensor& pos_weight);
/// -sum(labels * log_softmax(logits)) along `axis`, which goes. Labels are probabilities of the shape of logits; they
/// get a gradient too.
Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, int axis = -1);
/// -log_softmax(logits)[label]: labels are integers of the shape of logits without its last axis. A label that is no
/// class is an OutOfRange when the value is observed.
Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits);
/// exp(log_input) - targets * log_input, to which Stirling's approximation of log(targets!) is added where targets > 1
/// if compute_full_loss.
Tensor log_poisson_loss(const Tensor& targets, const Tensor& log_input, bool compute_full_loss = false);
/// sum(x^2) / 2, a scalar.
Tensor l2_loss(const Tensor& x);

/// value + bias along the last axis. bias: [channels]; any number type.
Tensor bias_add(const Tensor& value, const Tensor& bias);
/// relu(x) and relu(-x) one after the other along `axis`.
Tensor crelu(const Tensor& x, int axis = -1);
/// Rows of a table [n, ...]; `ids` are integers of any shape. max_norm > 0: rows whose Euclidean norm is larger are
/// scaled down to it.
Tensor embedding_lookup(const Tensor& params, const Tensor& ids, double max_norm = 0);
/// Each element is 0 with probability `rate`, else divided by 1 - rate. InvalidArgument outside [0, 1).
Tensor dropout(const Tensor& x, double rate);

/// How often label i (row) was predicted as j (column): i32 [num_classes, num_classes]. Integers [n]; others than
/// classes are an OutOfRange when the value is observed. `weights`, if given, [n], are summed in their own dtype.
Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions, std::int64_t num_classes,
                        const Tensor& weights = {});
/// y with y[x[i]] = i for a permutation x of 0 ... n - 1, integers. What is no permutation gives something, or an
/// OutOfRange when the value is observed.
Tensor invert_permutation(const Tensor& x);

}  // namespace gradus
