/// What runs along an axis, each element made of those up to it.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// `exclusive`: without the element itself; `reverse`: from the end.
struct CumulativeOptions {
  int axis = 0;
  bool exclusive = false;
  bool reverse = false;
};

/// Running sums. The first of an exclusive one is 0.
Tensor cumsum(const Tensor& x, CumulativeOptions options);
/// Running products; integers wrap around. The first of an exclusive one is 1. The gradients of every order are exact
/// where elements are 0.
Tensor cumprod(const Tensor& x, int axis = 0);
Tensor cumprod(const Tensor& x, CumulativeOptions options);
/// log(cumsum(exp(x))), without overflow. The first of an exclusive one is -infinity.
Tensor cumulative_logsumexp(const Tensor& x, int axis = 0);
Tensor cumulative_logsumexp(const Tensor& x, CumulativeOptions options);
/// Running maximum and minimum; NaN from the first one on. The gradient at a tie goes to the earlier element.
Tensor cummax(const Tensor& x, int axis = 0);
Tensor cummin(const Tensor& x, int axis = 0);

// For the rooms of the library.

/// a, b: T[outer, n, inner] -> y of the same shape along `axis`, which counts from the end: y[0] = b[0],
/// y[t] = a[t] y[t-1] + b[t], one rounding for the product and one for the sum, in ascending order of t; `reverse`:
/// from the end. a[0] (of a reverse one the last) is not read. T is a number type; half-precision carries y in f32.
struct LinearRecurrence {
  static constexpr auto name = "linear_recurrence";
  static constexpr auto library_kernel = "linear_recurrence";
  int axis = -1;
  bool reverse = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// x moved by one place along `axis` towards higher indices (`reverse`: lower), with `first` where nothing moves in.
Tensor moved_by_one(const Tensor& x, int axis, scalar::Literal first, bool reverse);

}  // namespace gradus
