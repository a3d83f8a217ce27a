/// Regularized incomplete gamma and beta functions, and Hurwitz's zeta function. Operands are floats of one dtype that
/// broadcast; narrow ones are computed in f64. Every argument has a gradient. Gradients by the parameters exist up to
/// order 5 each; a higher order is an InvalidArgument.
#pragma once
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// P(a, x) = (integral of t^(a-1) exp(-t) from 0 to x) / gamma(a). NaN for a <= 0 or x < 0.
Tensor igamma(const NumberOrTensor& a, const NumberOrTensor& x);
/// 1 - P(a, x), exact also where the result is small.
Tensor igammac(const NumberOrTensor& a, const NumberOrTensor& x);
/// (integral of t^(a-1) (1-t)^(b-1) from 0 to x) / beta(a, b). NaN unless a > 0, b > 0 and 0 <= x <= 1. In f64 the
/// relative error, of gradients too, is about 10^-16 times the larger of a and b (10^-11 at 10^5, 10^-8 at 10^8).
Tensor betainc(const NumberOrTensor& a, const NumberOrTensor& b, const NumberOrTensor& x);
/// Hurwitz's zeta function: the sum of (k + q)^-x over k = 0, 1 ... It is infinite at x = 1, NaN below. At whole q <= 0
/// it is infinite for even x and else NaN. At other q < 0 it is defined for whole x, and has no derivative by x.
Tensor zeta(const NumberOrTensor& x, const NumberOrTensor& q);
/// The derivative of order `a` of digamma at x. NaN unless a is a whole number >= 0. No gradient by a.
Tensor polygamma(const NumberOrTensor& a, const NumberOrTensor& x);

}  // namespace gradus
