/// The oracle of incomplete functions and Hurwitz's zeta: integrals by quadrature, and plain sums.
#pragma once

namespace gradus::reference {

/// The derivative of order n by a of the share of the integral of t^(a-1) exp(-t) that lies below x, or above.
double incomplete_gamma(double a, double x, int n, bool upper);
/// The derivative of orders n and m by a and b of the share of the integral of t^(a-1) (1-t)^(b-1) below x.
double incomplete_beta(double a, double b, double x, int n, int m);
/// The derivative of order n by s of the sum of (q + k)^-s.
double hurwitz_zeta(double s, double q, int n);

}  // namespace gradus::reference
