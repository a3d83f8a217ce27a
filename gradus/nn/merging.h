/// Layers that merge several tensors into one: fields of a model's struct, called with the tensors or a list of them.
/// They have no variables. Tensors broadcast and agree in dtype. Masks are joined as in Keras: if all tensors have
/// masks, an element counts if it counts in one of them.
#pragma once
#include <array>
#include <concepts>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace merging {
/// Sum of the tensors.
Tensor add(const std::vector<Tensor>& inputs);
/// Difference of two tensors.
Tensor subtract(const std::vector<Tensor>& inputs);
/// Product of the tensors, elementwise.
Tensor multiply(const std::vector<Tensor>& inputs);
/// Mean of the tensors; floats.
Tensor average(const std::vector<Tensor>& inputs);
/// Largest of the tensors, elementwise.
Tensor maximum(const std::vector<Tensor>& inputs);
/// Smallest of the tensors, elementwise.
Tensor minimum(const std::vector<Tensor>& inputs);
}  // namespace merging

/// A layer that applies `merge` to its inputs.
template <Tensor (*merge)(const std::vector<Tensor>&)> struct MergingLayer {
  /// The merged tensor. InvalidArgument without a tensor.
  Tensor operator()(const std::vector<Tensor>& inputs) const { return merge(inputs); }
  template <std::same_as<Tensor>... T> Tensor operator()(const Tensor& first, const T&... others) const {
    return merge({first, others...});
  }
};

using Add = MergingLayer<merging::add>;            // a + b + ...
using Subtract = MergingLayer<merging::subtract>;  // a - b; two tensors
using Multiply = MergingLayer<merging::multiply>;  // a * b * ..., elementwise
using Average = MergingLayer<merging::average>;    // mean; floats
using Maximum = MergingLayer<merging::maximum>;    // largest, elementwise
using Minimum = MergingLayer<merging::minimum>;    // smallest, elementwise

/// Concatenation along `axis`.
struct Concatenate {
  int axis = -1;  // axis of the concatenation
  /// The inputs, one after the other along the axis.
  Tensor operator()(const std::vector<Tensor>& inputs) const;
  template <std::same_as<Tensor>... T> Tensor operator()(const Tensor& first, const T&... others) const {
    return (*this)(std::vector<Tensor>{first, others...});
  }
};

/// Sums of products over axes[0] of a and axes[1] of b, example by example: [batch, others of a..., others of b...], or
/// [batch, 1] for vectors. With `normalize` both are divided by their lengths along the axis first, which gives
/// cosines.
struct Dot {
  std::array<int, 2> axes = {-1, -1};  // axes to sum over, of a and of b
  bool normalize = false;              // give cosines
  /// The sums of products.
  Tensor operator()(const Tensor& a, const Tensor& b) const;
};

}  // namespace gradus
