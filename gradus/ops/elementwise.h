/// Elementwise ops. Operands broadcast as in NumPy and must agree in dtype: there is no silent promotion
/// (InvalidArgument names both). A bare number takes the dtype of the tensor beside it. A floating number beside
/// integers or booleans is an InvalidArgument, also a whole one such as 2.0. A number that the dtype cannot hold is an
/// OutOfRange. Results have the broadcast shape, and the dtype of the operands unless another one is named. Comparisons
/// and ops on integers have no gradient.
#pragma once
#include "gradus/ops/constant.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

// ---------------------------------------------------------------- arithmetic of numbers

/// a + b. Integers wrap around.
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, Scalar b);
Tensor operator+(Scalar a, const Tensor& b);
/// a - b. Integers wrap around.
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, Scalar b);
Tensor operator-(Scalar a, const Tensor& b);
/// a * b, elementwise. Integers wrap around.
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, Scalar b);
Tensor operator*(Scalar a, const Tensor& b);
/// a / b. Integers: truncated towards zero as in C++, x / 0 = 0, MIN / -1 = MIN; never traps.
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, Scalar b);
Tensor operator/(Scalar a, const Tensor& b);
Tensor operator-(const Tensor& x);
/// a - b * floor(a / b), rounded once: zero, or with the sign of b. It is b itself for a small a of the other sign, as
/// in NumPy: mod(-1e-20, 1) = 1. Integers: mod(x, 0) = x, floor_divide(x, 0) = 0.
Tensor mod(const Tensor& a, const Tensor& b);
Tensor mod(const Tensor& a, Scalar b);
Tensor mod(Scalar a, const Tensor& b);
/// floor(a / b), without a gradient. Integers: x / 0 = 0, MIN / -1 = MIN.
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, Scalar b);
Tensor floor_divide(Scalar a, const Tensor& b);
/// a^b of floats, as IEEE 754 defines it. The gradient at a = 0, b = 0 is 0. Integers wrap around and have no gradient;
/// a negative exponent of integers is an OutOfRange when the value is observed (integer_pow accepts it).
Tensor pow(const Tensor& a, const Tensor& b);
/// a^b. An integral exponent of at most 64 is an attribute: a is multiplied by itself. That works for integers, too;
/// they wrap around, and the exponent must not be negative. Other exponents are data, for floats alone.
Tensor pow(const Tensor& a, Scalar b);
Tensor pow(Scalar a, const Tensor& b);
/// The larger of a and b; NaN if an operand is NaN. The gradient at a tie goes to the first operand, at NaN to the
/// second.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, Scalar b);
Tensor maximum(Scalar a, const Tensor& b);
/// The smaller of a and b; NaN if an operand is NaN. The gradient at a tie goes to the first operand, at NaN to the
/// second.
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, Scalar b);
Tensor minimum(Scalar a, const Tensor& b);
/// x clipped to [low, high]. The gradient is 1 within and at the bounds, 0 outside. InvalidArgument if low > high.
Tensor clip_by_value(const Tensor& x, Scalar low, Scalar high);
/// x * norm / max(|x|, norm), with |x| the Euclidean norm of all elements. Floats; InvalidArgument unless norm >= 0.
Tensor clip_by_norm(const Tensor& x, double norm);
/// x * x. Integers wrap around.
Tensor square(const Tensor& x);
/// |x|. The gradient is 0 at 0, and NaN at NaN. Integers wrap at MIN.
Tensor abs(const Tensor& x);
/// -1, 0 or 1; NaN for NaN. The gradient is 0.
Tensor sign(const Tensor& x);

// ---------------------------------------------------------------- comparison, choice, logic: boolean results

/// a < b. False if an operand is NaN.
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, Scalar b);
Tensor operator<(Scalar a, const Tensor& b);
/// a > b. False if an operand is NaN.
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, Scalar b);
Tensor operator>(Scalar a, const Tensor& b);
/// a <= b. False if an operand is NaN.
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, Scalar b);
Tensor operator<=(Scalar a, const Tensor& b);
/// a >= b. False if an operand is NaN.
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, Scalar b);
Tensor operator>=(Scalar a, const Tensor& b);
/// True where a equals b. Any dtype. NaN equals nothing.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, Scalar b);
Tensor equal(Scalar a, const Tensor& b);
/// True where a differs from b. Any dtype. NaN differs from everything.
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, Scalar b);
Tensor not_equal(Scalar a, const Tensor& b);
/// a and b, of booleans.
Tensor logical_and(const NumberOrTensor& a, const NumberOrTensor& b);
/// a or b, of booleans.
Tensor logical_or(const NumberOrTensor& a, const NumberOrTensor& b);
/// True where exactly one of a and b is true; booleans.
Tensor logical_xor(const NumberOrTensor& a, const NumberOrTensor& b);
/// not x, of booleans.
Tensor logical_not(const Tensor& x);
/// a where the boolean condition holds, else b, in the dtype of a and b. All three broadcast. The operand that is not
/// chosen gets a zero gradient, which stays zero through sqrt, rsqrt, log, / and pow at their poles.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
/// where() of two numbers. The dtype is bool for two bools, f32 if one is a floating number, else C++'s common type of
/// both integers.
template <Element A, Element B> Tensor where(const Tensor& condition, A a, B b) {
  constexpr DType t = detail::dtype_of_numbers<A, B>;
  return where(condition, constant(a, t), constant(b, t));
}
/// True where x is neither infinite nor NaN.
Tensor is_finite(const Tensor& x);
/// True where x is NaN.
Tensor is_nan(const Tensor& x);
/// One boolean: true if no element is infinite or NaN.
Tensor all_finite(const Tensor& x);

// ---------------------------------------------------------------- functions of floats

/// e^x.
Tensor exp(const Tensor& x);
/// e^x - 1, exact also where x is small.
Tensor expm1(const Tensor& x);
/// The natural logarithm.
Tensor log(const Tensor& x);
/// log(1 + x), exact also where x is small.
Tensor log1p(const Tensor& x);
/// The square root.
Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x).
Tensor rsqrt(const Tensor& x);
/// The sine of x in radians.
Tensor sin(const Tensor& x);
/// The cosine of x in radians.
Tensor cos(const Tensor& x);
/// The tangent of x in radians.
Tensor tan(const Tensor& x);
/// The error function.
Tensor erf(const Tensor& x);
/// x rounded down. No gradient.
Tensor floor(const Tensor& x);
/// x rounded up. No gradient.
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // x rounded to the nearest integer, half to even; no gradient

// ---------------------------------------------------------------- activations, of floats

/// The hyperbolic tangent.
Tensor tanh(const Tensor& x);
/// 1 / (1 + exp(-x)).
Tensor sigmoid(const Tensor& x);
/// max(x, 0). The gradient is 0 at 0 and at NaN.
Tensor relu(const Tensor& x);
/// Gaussian error linear unit: x Phi(x), with the normal distribution function Phi (by erf and erfc, not its tanh
/// approximation); 0 at -infinity.
Tensor gelu(const Tensor& x);
/// log(1 + exp(x)), without overflow.
Tensor softplus(const Tensor& x);
/// x sigmoid(x); 0 at -infinity.
Tensor silu(const Tensor& x);
/// x for x >= 0, else exp(x) - 1.
Tensor elu(const Tensor& x);
/// 1.0507 x for x > 0, else 1.0507 * 1.6733 (exp(x) - 1). The gradient at 0 is 1.0507.
Tensor selu(const Tensor& x);
/// x for x > 0, else alpha x. The gradient at 0 is alpha.
Tensor leaky_relu(const Tensor& x, double alpha = 0.2);
/// x itself: the linear activation.
Tensor linear(const Tensor& x);

// ---------------------------------------------------------------- others

/// x, with a gradient of 0.
Tensor stop_gradient(const Tensor& x);
/// x in another dtype. Float to integer: towards zero, saturating, NaN gives 0. Integer to narrower: wraps. To bool:
/// true if not 0. The gradient passes between floats.
Tensor cast(const Tensor& x, DType dtype);
/// For composites that take f16 and bf16: f of x in f32, rounded once at the end.
template <class F> Tensor in_f32(const Tensor& x, const F& f) { return cast(f(cast(x, f32)), x.dtype()); }

/// The largest |a - b|: NaN if one is NaN, 0 for empty tensors. Computed on the host, for tests. Specs must agree.
double max_abs_difference(const Tensor& a, const Tensor& b);
/// True if specs and all bits agree. Computed on the host, for tests.
bool bitwise_equal(const Tensor& a, const Tensor& b);

}  // namespace gradus
