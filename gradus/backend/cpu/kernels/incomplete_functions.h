/// The incomplete gamma and beta functions and Hurwitz's zeta, one number at a time, with their derivatives by the
/// parameters: of order n by one, of orders n and m by two.
#pragma once

namespace gradus::library {

/// The derivative by a of order n of P(a, x) = (integral of t^(a-1) exp(-t) from 0 to x) / gamma(a), or of 1 - P.
/// NaN for a <= 0 or x < 0.
double incomplete_gamma(double a, double x, int n, bool upper);
/// The derivative by a of order n and by b of order m of (integral of t^(a-1) (1-t)^(b-1) from 0 to x) / beta(a, b).
/// NaN unless a > 0, b > 0 and 0 <= x <= 1.
double incomplete_beta(double a, double b, double x, int n, int m);
/// The derivative by s of order n of the sum of (k + q)^-s over k = 0, 1 ...
double hurwitz_zeta(double s, double q, int n);

}  // namespace gradus::library
