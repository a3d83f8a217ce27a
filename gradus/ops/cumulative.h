/// Running sums, products, maxima: each element is made of those up to it along an axis.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of running sums and products.
struct CumulativeOptions {
  int axis = 0;            // axis along which they run
  bool exclusive = false;  // leave out the element itself
  bool reverse = false;    // run from the end
};

/// Running sums. With `exclusive` the first is 0.
Tensor cumsum(const Tensor& x, CumulativeOptions options);
/// Running products; integers wrap around. With `exclusive` the first is 1. Gradients of every order are exact where
/// elements are 0.
Tensor cumprod(const Tensor& x, int axis = 0);
Tensor cumprod(const Tensor& x, CumulativeOptions options);
/// log(cumsum(exp(x))), without overflow. With `exclusive` the first is -infinity.
Tensor cumulative_logsumexp(const Tensor& x, int axis = 0);
Tensor cumulative_logsumexp(const Tensor& x, CumulativeOptions options);
/// Running maximum; NaN from the first NaN on. The gradient at a tie goes to the earlier element.
Tensor cummax(const Tensor& x, int axis = 0);
/// Running minimum; NaN from the first NaN on. The gradient at a tie goes to the earlier element.
Tensor cummin(const Tensor& x, int axis = 0);

// For the rooms of the library.

/// First-order linear recurrence. a, b: T[outer, n, inner] -> y of the same shape along `axis`, which counts from the
/// end: y[0] = b[0], y[t] = a[t] y[t-1] + b[t], in ascending order of t. The product and the sum are rounded once each.
/// a[0] is not read (with `reverse`, the last one). T is a number type; half-precision carries y in f32.
struct LinearRecurrence {
  static constexpr auto name = "linear_recurrence";
  static constexpr auto library_kernel = "linear_recurrence";
  int axis = -1;         // counts from the end
  bool reverse = false;  // run from the end
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// x shifted by one place along `axis` towards higher indices (with `reverse`: lower). `first` fills the gap.
Tensor moved_by_one(const Tensor& x, int axis, scalar::Literal first, bool reverse);

}  // namespace gradus
