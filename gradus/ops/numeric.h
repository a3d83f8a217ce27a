/// Functions of NumPy and keras.ops that TensorFlow does not have under its own names: functions of floats, order
/// statistics, products of vectors, positions. Composites of other ops. Operands broadcast and agree in dtype, as in
/// gradus/ops/elementwise.h. Floats alone unless they say otherwise.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/ops/named_axis.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// sqrt(a^2 + b^2) without overflow; infinite if an operand is, also beside NaN. The gradient at (0, 0) is 0.
Tensor hypot(const NumberOrTensor& a, const NumberOrTensor& b);
/// log2(2^a + 2^b), without overflow.
Tensor logaddexp2(const NumberOrTensor& a, const NumberOrTensor& b);
/// sin(pi x) / (pi x), 1 at 0. Gradients of every order are right there, too.
Tensor sinc(const Tensor& x);
/// 0 for x < 0, `at_zero` at 0, 1 for x > 0. Only `at_zero` has a gradient.
Tensor heaviside(const NumberOrTensor& x, const NumberOrTensor& at_zero);
/// The larger of a and b; if one is NaN, the other. Any number type.
Tensor fmax(const NumberOrTensor& a, const NumberOrTensor& b);
/// The smaller of a and b; if one is NaN, the other. Any number type.
Tensor fmin(const NumberOrTensor& a, const NumberOrTensor& b);
/// Options of nan_to_num.
struct NanToNumOptions {
  double nan = 0;  // replaces NaN
  std::optional<double> posinf = {},
                        neginf =
                            {};  // replace the infinities; none: the largest and lowest finite numbers of the dtype
};
/// x with NaN and infinities replaced. Replaced elements get no gradient.
Tensor nan_to_num(const Tensor& x, NanToNumOptions options = {});
/// x * 2^exponent, with integers `exponent`. Rounded once where the result would be subnormal, which is 0. They
/// broadcast.
Tensor ldexp(const Tensor& x, const NumberOrTensor& exponent);
/// Degrees to radians.
Tensor deg2rad(const Tensor& x);
/// Radians to degrees.
Tensor rad2deg(const Tensor& x);

/// Options of isclose.
struct IsCloseOptions {
  double rtol = 1e-5, atol = 1e-8;  // relative and absolute tolerance
  bool equal_nan = false;           // NaN is close to NaN
  static constexpr auto ranges() { return std::array{Allowed{"rtol atol", 0}}; }
};
/// True where |a - b| <= atol + rtol |b|. Equal infinities are close.
Tensor isclose(const NumberOrTensor& a, const NumberOrTensor& b, IsCloseOptions options = {});

/// a / b in floats, as tf.math.truediv. Integers of 8 and 16 bits are computed in f32, others in f64.
Tensor truediv(const NumberOrTensor& a, const NumberOrTensor& b);
/// a / b of integers, truncated towards zero; of floats, too.
Tensor truncatediv(const NumberOrTensor& a, const NumberOrTensor& b);
/// Converts between any number types. Values beyond the range of the new type become its end; NaN gives 0 for integers.
Tensor saturate_cast(const Tensor& x, DType dtype);

/// The cross product of vectors of three along the last axis. Any number type.
Tensor cross(const Tensor& a, const Tensor& b);
/// The outer product. a: [m...], b: [n...], both flattened -> [m, n]. Any number type.
Tensor outer(const Tensor& a, const Tensor& b);
/// The Kronecker product of tensors of one rank, at most 4: block (i, j) is a[i, j] b. Any number type.
Tensor kron(const Tensor& a, const Tensor& b);
/// The Vandermonde matrix of a vector [m]: [m, n], with the powers n - 1 ... 0 of each element, or 0 ... n - 1 if
/// `increasing`. The default n is m. Any number type. The gradients are exact at 0, too.
Tensor vander(const Tensor& x, std::optional<std::int64_t> n = {}, bool increasing = false);

/// Differences of neighbours along `axis`, taken `n` times; each time removes one element. Any number type.
Tensor diff(const Tensor& x, int n = 1, int axis = -1);
/// Options of diff.
struct DiffOptions {
  int n = 1;      // times that differences are taken
  int axis = -1;  // axis of the neighbours
};
inline Tensor diff(const Tensor& x, DiffOptions options) { return diff(x, options.n, options.axis); }
/// The integral by the trapezoidal rule, for points `dx` apart along `axis`, which is removed.
Tensor trapezoid(const Tensor& y, double dx = 1, int axis = -1);
/// Options of trapezoid.
struct TrapezoidOptions {
  double dx = 1;  // distance of points
  int axis = -1;  // axis of the points
};
inline Tensor trapezoid(const Tensor& y, TrapezoidOptions options) { return trapezoid(y, options.dx, options.axis); }
/// sum(x * weights) / sum(weights) along `axis`, or over all. Weights have the shape of x, or are one vector along
/// `axis`.
Tensor average(const Tensor& x, const Tensor& weights, std::optional<int> axis = {});
inline Tensor average(const Tensor& x, const Tensor& weights, NamedAxis named) {
  return average(x, weights, named.axis);
}

/// Value of a quantile that lies between two neighbours.
enum class QuantileMethod { linear, lower, higher, midpoint, nearest };
/// Options of quantile and median.
struct QuantileOptions {
  std::vector<int> axis = {};                      // axes to reduce; none: all
  QuantileMethod method = QuantileMethod::linear;  // value between two neighbours
  bool keepdims = false;                           // keep reduced dimensions as 1
};
/// The q-quantile, q in [0, 1]: a share q of the elements is below it. `method` chooses the value between two
/// neighbours in order (nearest: halves to even). NaN where an element is NaN. The gradient goes to the neighbours.
/// Sizes along the axes must be known and not 0.
Tensor quantile(const Tensor& x, double q, QuantileOptions options = {});
/// The middle element in order, or the mean of the two middle ones.
Tensor median(const Tensor& x, QuantileOptions options = {});

/// Moves dimension `source` to position `destination`; the others keep their order. Any dtype.
Tensor moveaxis(const Tensor& x, int source, int destination);
/// Exchanges dimensions a and b. Any dtype.
Tensor swapaxes(const Tensor& x, int a, int b);
/// `n` numbers from base^first to base^last, at equal ratios. InvalidArgument without a number, for a dtype that is no
/// float, and for a base that is not positive.
Tensor logspace(double first, double last, std::int64_t n, double base = 10, DType dtype = f32);
/// `n` numbers from first to last, at equal ratios; hits both ends. InvalidArgument without a number, for a dtype that
/// is no float, and for ends that do not have one sign.
Tensor geomspace(double first, double last, std::int64_t n, DType dtype = f32);
/// Flat row-major indices within `dims` as positions: integers [...] -> [k, ...], with k the rank of dims. For indices
/// outside the result is arbitrary.
Tensor unravel_index(const Tensor& indices, const Shape& dims);

}  // namespace gradus
