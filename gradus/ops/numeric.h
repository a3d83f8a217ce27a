/// What NumPy and keras.ops have beyond TensorFlow's own names: functions of floats, statistics by order, products of
/// vectors, and places. Composites of other ops. Operands broadcast and agree in dtype, as in
/// gradus/ops/elementwise.h; floats alone unless they say otherwise.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// sqrt(a^2 + b^2) without overflow. The gradient at (0, 0) is 0.
Tensor hypot(const NumberOrTensor& a, const NumberOrTensor& b);
/// log2(2^a + 2^b), without overflow.
Tensor logaddexp2(const NumberOrTensor& a, const NumberOrTensor& b);
/// sin(pi x) / (pi x), 1 at 0; gradients of every order are right there too.
Tensor sinc(const Tensor& x);
/// 0 for x < 0, `at_zero` at 0, 1 for x > 0. Only `at_zero` has a gradient.
Tensor heaviside(const NumberOrTensor& x, const NumberOrTensor& at_zero);
/// The larger, and the smaller; of a number and NaN the number. Any number type.
Tensor fmax(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor fmin(const NumberOrTensor& a, const NumberOrTensor& b);
struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = {}, neginf = {};  // else the largest and lowest number of the dtype
};
/// x with NaN and infinities replaced; what was replaced gets no gradient.
Tensor nan_to_num(const Tensor& x, NanToNumOptions options = {});
/// x * 2^exponent of integers `exponent`, rounded once where that is subnormal, which is 0. They broadcast.
Tensor ldexp(const Tensor& x, const NumberOrTensor& exponent);
/// Between degrees and radians.
Tensor deg2rad(const Tensor& x);
Tensor rad2deg(const Tensor& x);

struct IsCloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  static constexpr auto ranges() { return std::array{Allowed{"rtol atol", 0}}; }
};
/// Boolean: |a - b| <= atol + rtol |b|; equal infinities are close.
Tensor isclose(const NumberOrTensor& a, const NumberOrTensor& b, IsCloseOptions options = {});

/// a / b in floats, as tf.math.truediv: integers of 8 and 16 bits are computed in f32, others in f64.
Tensor truediv(const NumberOrTensor& a, const NumberOrTensor& b);
/// a / b of integers, cut off towards zero; of floats too.
Tensor truncatediv(const NumberOrTensor& a, const NumberOrTensor& b);
/// Between any number types, where what is beyond the range of the other becomes its end; NaN gives 0 for integers.
Tensor saturate_cast(const Tensor& x, DType dtype);

/// The cross product of vectors of three along the last axis. Any number type.
Tensor cross(const Tensor& a, const Tensor& b);
/// a: [m...], b: [n...], read flat -> [m, n]. Any number type.
Tensor outer(const Tensor& a, const Tensor& b);
/// Kronecker's product of tensors of one rank, at most 4: block (i, j) is a[i, j] b. Any number type.
Tensor kron(const Tensor& a, const Tensor& b);
/// Vandermonde's matrix of a vector [m]: [m, n] with the powers n - 1 ... 0 of each element, or 0 ... n - 1. n is m if
/// not given. Any number type. The gradients are exact at 0 too.
Tensor vander(const Tensor& x, std::optional<std::int64_t> n = {}, bool increasing = false);

/// Differences of neighbours along `axis`, `n` times; each time one element less. Any number type.
Tensor diff(const Tensor& x, int n = 1, int axis = -1);
/// The area below the points of a line `dx` apart: sums of trapezoids along `axis`, which goes.
Tensor trapezoid(const Tensor& y, double dx = 1, int axis = -1);
/// sum(x * weights) / sum(weights) along `axis`, or over all; weights have the shape of x, or are one vector along
/// `axis`.
Tensor average(const Tensor& x, const Tensor& weights, std::optional<int> axis = {});

enum class QuantileMethod { linear, lower, higher, midpoint, nearest };
struct QuantileOptions {
  std::vector<int> axis = {};  // none: all
  QuantileMethod method = QuantileMethod::linear;
  bool keepdims = false;
};
/// What a share q in [0, 1] of the elements is below: between neighbours in order as `method` says (nearest: halves to
/// even). NaN where an element is NaN. The gradient goes to the neighbours. Sizes along the axes must be known and not
/// 0.
Tensor quantile(const Tensor& x, double q, QuantileOptions options = {});
/// The middle element in order, the mean of the two middle ones.
Tensor median(const Tensor& x, QuantileOptions options = {});

/// Dimension `source` at place `destination`, the others in order. Any dtype.
Tensor moveaxis(const Tensor& x, int source, int destination);
/// Dimensions a and b exchanged. Any dtype.
Tensor swapaxes(const Tensor& x, int a, int b);
/// `n` numbers from base^first to base^last, and from first to last, at equal ratios; the latter hits both ends.
/// InvalidArgument without a number, of a dtype that is no float, of a base that is not positive and of ends that have
/// not one sign.
Tensor logspace(double first, double last, std::int64_t n, double base = 10, DType dtype = f32);
Tensor geomspace(double first, double last, std::int64_t n, DType dtype = f32);
/// Flat row-major indices within `dims` as positions: integers [...] -> [k, ...], k = rank of dims. Indices outside
/// give something.
Tensor unravel_index(const Tensor& indices, const Shape& dims);

}  // namespace gradus
