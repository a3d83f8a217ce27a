/// The primitives of pooling: choosing the largest element of a window, reading the chosen elements, adding to them,
/// and patches. The geometry is that of conv_ops.h: window o begins at o * stride - before, tap k stands k * dilation
/// further on. Taps are numbered in row-major order. x is [n, in..., C] with one to three spatial dimensions.
///
/// Choice and reading are separate, so that reading is linear: its gradient adds to the chosen elements, and the
/// gradient of that reads them again. These are library kernels, since patches would hold every element several times.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// x: T[n, in..., C] -> i32[n, size..., C]: the tap of the largest element, the first among equals; the first NaN if
/// there is one; -1 for a window without elements. T is a number type. No gradient.
struct WindowArgmax {
  static constexpr auto name = "window_argmax";
  static constexpr auto library_kernel = "window_argmax";
  Shape window = {}, strides = {}, dilations = {}, before = {};
  Shape size = {};  // spatial sizes of the result
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// x: T[n, in..., C], taps: i32[n, out..., C] -> T[n, out..., C]: the elements at these taps; 0 where there is none.
struct WindowSelect {
  static constexpr auto name = "window_select";
  static constexpr auto library_kernel = "window_select";
  Shape window = {}, strides = {}, dilations = {}, before = {};
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// y: T[n, out..., C], taps: i32[n, out..., C] -> T[n, size..., C]: zeros, to which each y is added at its tap. Windows
/// that chose the same element add in the order of taps.
struct WindowDeposit {
  static constexpr auto name = "window_deposit";
  static constexpr auto library_kernel = "window_deposit";
  Shape window = {}, strides = {}, dilations = {}, before = {};
  Shape size = {};  // spatial sizes of the result
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

/// x: T[n, in..., C] -> T[n, size..., window..., C], read in place. Windows lie within x.
struct Patches {
  static constexpr auto name = "patches";
  static constexpr auto takes = Takes::anything;
  Shape window = {}, strides = {}, dilations = {};
  Shape size = {};  // numbers of windows
  Spec infer(Specs in) const;
  View view(const Shape& in, const Shape& out) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// Gradient of Patches: p: T[n, out..., window..., C] -> T[n, size..., C]. Each element is the sum over the windows
/// that contain it, in the order of taps. T is a number type.
struct Fold {
  static constexpr auto name = "fold";
  static constexpr auto library_kernel = "fold";
  Shape strides = {}, dilations = {};
  Shape size = {};
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int axis) const;
};

}  // namespace gradus
