/// The primitives of convolution: three maps, linear in each operand, that are the gradients of one another. So
/// gradients of every order consist of them. They are library kernels: formulas on patches would hold each element in
/// memory once per window over it.
///
/// All share one geometry. Window o along a spatial dimension begins at o * stride - before, and its tap k stands k *
/// dilation further on. Taps outside of the input read zero. Channels are cut into `groups` equal parts: with C
/// channels in and F out, group g maps its C/groups to its F/groups. Each element of a result is one chain of fused
/// multiply-adds from 0 (integers wrap around), over taps in row-major order and channels within them; the gradient by
/// weights goes over examples and windows in row-major order. T is f32, f64, i32 or i64; there are one to three spatial
/// dimensions.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[n, in..., C], w: T[kernel..., C/groups, F] -> T[n, size..., F].
struct Convolution {
  static constexpr auto name = "convolution";
  static constexpr auto library_kernel = "convolution";
  Shape strides = {}, dilations = {}, before = {};
  Shape size = {};  // spatial sizes of the result: any number of windows
  std::int64_t groups = 1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// Transposed convolution, the gradient of a convolution by its input: sums what each input adds to the windows that it
/// stands in. y: T[n, out..., F], w: T[kernel..., F, C/groups] -> T[n, size..., C].
struct TransposedConvolution {
  static constexpr auto name = "transposed_convolution";
  static constexpr auto library_kernel = "transposed_convolution";
  Shape strides = {}, dilations = {}, before = {};
  Shape size = {};  // spatial sizes of the result: of the input of the convolution that this is the transpose of
  std::int64_t groups = 1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// The gradient of a convolution by its weights: x: T[n, in..., C], dy: T[n, out..., F] -> T[size..., C/groups, F].
struct KernelConvolution {
  static constexpr auto name = "kernel_convolution";
  static constexpr auto library_kernel = "kernel_convolution";
  Shape strides = {}, dilations = {}, before = {};
  Shape size = {};  // spatial sizes of the kernel
  std::int64_t groups = 1;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

}  // namespace gradus
