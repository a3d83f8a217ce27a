/// Parts of activations and special functions, and of their gradients, whose own composition would cancel or overflow.
/// f32 and f64. All have gradients of every order.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// x with the largest finite numbers in place of infinities, so that 0 * x is 0; at_least_lowest leaves +infinity.
Tensor finite_part(const Tensor& x);
Tensor at_least_lowest(const Tensor& x);

/// 1 + erf(x / sqrt(2)), and the derivative of erf at x / sqrt(2): 2 / sqrt(pi) exp(-x^2 / 2).
Tensor twice_normal_cdf(const Tensor& x);
Tensor erf_slope(const Tensor& x);
/// x / 2 (1 + tanh(u)), of one shape; 1 + tanh(x), and its derivative 1 - tanh(x)^2.
Tensor tanh_gate(const Tensor& x, const Tensor& u);
Tensor one_plus_tanh(const Tensor& x);
Tensor one_plus_tanh_slope(const Tensor& x);
/// 1 / (1 + |x|)^2, the derivative of softsign.
Tensor softsign_slope(const Tensor& x);
/// sqrt(x^2 + b), b > 0.
Tensor root_of_square(const Tensor& x, double b);
/// cos(pi x^2 / 2) or its sine, the derivatives of Fresnel's integrals, and the derivative of dawsn.
Tensor fresnel_slope(const Tensor& x, bool sine);
Tensor dawsn_slope(const Tensor& x);

}  // namespace gradus
