/// Weights of classes, as Keras's class_weight: in training the loss of an example is multiplied by the weight of its
/// class.
#pragma once
#include <cstdint>
#include <map>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A weight for each class: {{0, 1}, {1, 8}}.
using ClassWeights = std::map<std::int64_t, double>;

namespace detail {

/// InvalidArgument unless the classes are 0, 1, ... and each weight is finite and not negative.
void check_class_weights(const ClassWeights& weights);
/// The weights of the examples, f32 in the shape of the labels. y holds labels [...] for a prediction [..., classes],
/// one-hot labels of the prediction's shape, or the labels 0 and 1 of a prediction with a last axis of 1. `mask`, which
/// may be empty, leaves out labels that need not be classes; a negative label counts as class 0. InvalidArgument unless
/// there is one weight for each class of the prediction. A label beyond the classes is an OutOfRange when the value is
/// observed.
Tensor weights_of_examples(const ClassWeights& weights, const Tensor& y, const Tensor& prediction, const Tensor& mask);

}  // namespace detail
}  // namespace gradus
