/// The primitives of convolution: three maps, linear in each operand, that are the gradients of one another, so that
/// gradients of every order are made of them. They are calls of the backend, since as formulas on patches they would
/// have to stand in memory with every element as often as there are windows over it.
///
/// One geometry for all: window o along a spatial dimension begins at o * stride - before, and its tap k stands
/// k * dilation further on. Taps outside of the input read zero. Channels are cut into `groups` equal parts: with
/// C channels in and F out, group g maps its C/groups to its F/groups. Each element of a result is one chain of fused
/// multiply-adds from 0 (integers wrap around): of taps in row-major order and channels within them; for the weights of
/// examples and windows in row-major order. T is f32, f64, i32 or i64; there are one to three spatial dimensions.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[n, in..., C], w: T[kernel..., C/groups, F] -> T[n, size..., F].
struct Convolution {
  static constexpr auto name = "convolution";
  static constexpr auto library_kernel = "convolution";
  Shape strides = {}, dilations = {}, before = {};
  Shape size = {};  // of the result: as many windows as one likes
  std::int64_t groups = 1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// What each input adds to the windows that it stands in, the gradient of a convolution by its input:
/// y: T[n, out..., F], w: T[kernel..., F, C/groups] -> T[n, size..., C].
struct TransposedConvolution {
  static constexpr auto name = "transposed_convolution";
  static constexpr auto library_kernel = "transposed_convolution";
  Shape strides = {}, dilations = {}, before = {};
  Shape size = {};  // of the result: the input of the convolution that this is the transpose of
  std::int64_t groups = 1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// The gradient of a convolution by its weights: x: T[n, in..., C], dy: T[n, out..., F] ->
/// T[size..., C/groups, F].
struct KernelConvolution {
  static constexpr auto name = "kernel_convolution";
  static constexpr auto library_kernel = "kernel_convolution";
  Shape strides = {}, dilations = {}, before = {};
  Shape size = {};  // of the kernel
  std::int64_t groups = 1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

}  // namespace gradus
