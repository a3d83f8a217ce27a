/// Layers that make one tensor of several: fields of a model's struct, called with the tensors or a list of them. They
/// have no variables. Tensors broadcast and agree in dtype. Masks of the tensors are joined as Keras does: a place
/// counts that counts in one of them, if all have masks.
#pragma once
#include <array>
#include <concepts>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace merging {
Tensor add(const std::vector<Tensor>& inputs);
Tensor subtract(const std::vector<Tensor>& inputs);
Tensor multiply(const std::vector<Tensor>& inputs);
Tensor average(const std::vector<Tensor>& inputs);
Tensor maximum(const std::vector<Tensor>& inputs);
Tensor minimum(const std::vector<Tensor>& inputs);
}  // namespace merging

template <Tensor (*merge)(const std::vector<Tensor>&)> struct MergingLayer {
  /// InvalidArgument of no tensor.
  Tensor operator()(const std::vector<Tensor>& inputs) const { return merge(inputs); }
  template <std::same_as<Tensor>... T> Tensor operator()(const Tensor& first, const T&... others) const {
    return merge({first, others...});
  }
};

using Add = MergingLayer<merging::add>;
using Subtract = MergingLayer<merging::subtract>;  // of two
using Multiply = MergingLayer<merging::multiply>;
using Average = MergingLayer<merging::average>;  // of floats
using Maximum = MergingLayer<merging::maximum>;
using Minimum = MergingLayer<merging::minimum>;

/// One after the other along `axis`.
struct Concatenate {
  int axis = -1;
  Tensor operator()(const std::vector<Tensor>& inputs) const;
  template <std::same_as<Tensor>... T> Tensor operator()(const Tensor& first, const T&... others) const {
    return (*this)(std::vector<Tensor>{first, others...});
  }
};

/// Sums of products over axes[0] of a and axes[1] of b, example by example: [batch, others of a..., others of b...], or
/// [batch, 1] of vectors. `normalize`: of both divided by their lengths along the axis, which gives cosines.
struct Dot {
  std::array<int, 2> axes = {-1, -1};
  bool normalize = false;
  Tensor operator()(const Tensor& a, const Tensor& b) const;
};

}  // namespace gradus
