/// Running sums, products, maxima: each element combines those up to it along an axis.
#pragma once
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

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
inline Tensor cummax(const Tensor& x, NamedAxis named) { return cummax(x, named.axis); }
/// Running minimum; NaN from the first NaN on. The gradient at a tie goes to the earlier element.
Tensor cummin(const Tensor& x, int axis = 0);
inline Tensor cummin(const Tensor& x, NamedAxis named) { return cummin(x, named.axis); }

}  // namespace gradus
