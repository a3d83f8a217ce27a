/// Elementwise ops. Operands broadcast as in NumPy and must agree in dtype: there is no silent promotion
/// (InvalidArgument names both). A bare number takes the dtype of the tensor beside it; a floating number beside
/// integers or booleans is an InvalidArgument, also a whole one such as 2.0, a number that the dtype cannot hold an
/// OutOfRange. Results have the broadcast shape and the dtype of the operands unless another one is said. Comparisons
/// and ops on integers have no gradient.
#pragma once
#include "gradus/ops/constant.h"
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

// ---------------------------------------------------------------- arithmetic of numbers

/// Integers wrap around.
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, Scalar b);
Tensor operator+(Scalar a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, Scalar b);
Tensor operator-(Scalar a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, Scalar b);
Tensor operator*(Scalar a, const Tensor& b);
/// Integers: towards zero as in C++, x / 0 = 0, MIN / -1 = MIN; it never traps.
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, Scalar b);
Tensor operator/(Scalar a, const Tensor& b);
Tensor operator-(const Tensor& x);
/// a - b * floor(a / b): zero, or with the sign of b. Integers: mod(x, 0) = x, as floor_divide(x, 0) = 0.
Tensor mod(const Tensor& a, const Tensor& b);
Tensor mod(const Tensor& a, Scalar b);
Tensor mod(Scalar a, const Tensor& b);
/// floor(a / b), without a gradient. Integers: x / 0 = 0, MIN / -1 = MIN.
Tensor floor_divide(const Tensor& a, const Tensor& b);
Tensor floor_divide(const Tensor& a, Scalar b);
Tensor floor_divide(Scalar a, const Tensor& b);
/// a^b of floats, as IEEE 754 defines it. At a = 0, b = 0 the gradient is 0.
Tensor pow(const Tensor& a, const Tensor& b);
/// An integral exponent of at most 64 is an attribute: a is multiplied with itself (integers too, where the exponent
/// must not be negative; they wrap around). Others are data, for floats alone.
Tensor pow(const Tensor& a, Scalar b);
Tensor pow(Scalar a, const Tensor& b);
/// NaN if an operand is NaN. The gradient at a tie goes to the first operand, at NaN to the second.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, Scalar b);
Tensor maximum(Scalar a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, Scalar b);
Tensor minimum(Scalar a, const Tensor& b);
/// The gradient is 1 within and at the bounds, 0 outside. InvalidArgument if low > high.
Tensor clip_by_value(const Tensor& x, Scalar low, Scalar high);
/// x * norm / max(|x|, norm), |x| the Euclidean norm of all elements. Floats; InvalidArgument unless norm >= 0.
Tensor clip_by_norm(const Tensor& x, double norm);
Tensor square(const Tensor& x);
/// The gradient at 0 is 0, at NaN NaN. Integers wrap at MIN.
Tensor abs(const Tensor& x);
/// -1, 0, 1, NaN of NaN. The gradient is 0.
Tensor sign(const Tensor& x);

// ---------------------------------------------------------------- comparison, choice, logic: boolean results

/// False if an operand is NaN.
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& a, Scalar b);
Tensor operator<(Scalar a, const Tensor& b);
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& a, Scalar b);
Tensor operator>(Scalar a, const Tensor& b);
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& a, Scalar b);
Tensor operator<=(Scalar a, const Tensor& b);
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& a, Scalar b);
Tensor operator>=(Scalar a, const Tensor& b);
/// Any dtype. NaN equals nothing.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, Scalar b);
Tensor equal(Scalar a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, Scalar b);
Tensor not_equal(Scalar a, const Tensor& b);
/// Booleans.
Tensor logical_and(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor logical_or(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor logical_xor(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor logical_not(const Tensor& x);
/// a where the boolean condition holds, else b, in the dtype of a and b. All three broadcast. The operand that is not
/// chosen gets a zero gradient, which stays zero through sqrt, rsqrt, log, / and pow at their poles.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, Scalar b);
Tensor where(const Tensor& condition, Scalar a, const Tensor& b);
/// Of two numbers: bool of two bools, f32 if one is a floating number, else the integer type that C++ makes of both.
template <Element A, Element B> Tensor where(const Tensor& condition, A a, B b) {
  constexpr DType t = detail::dtype_of_numbers<A, B>;
  return where(condition, constant(a, t), constant(b, t));
}
Tensor is_finite(const Tensor& x);
Tensor is_nan(const Tensor& x);
/// One boolean: whether no element is infinite or NaN.
Tensor all_finite(const Tensor& x);

// ---------------------------------------------------------------- functions of floats

Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tan(const Tensor& x);
Tensor erf(const Tensor& x);
/// These three have no gradient.
Tensor floor(const Tensor& x);
Tensor ceil(const Tensor& x);
Tensor round(const Tensor& x);  // half to even

// ---------------------------------------------------------------- activations, of floats

Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);
/// max(x, 0). The gradient at 0 is 0, at NaN 0.
Tensor relu(const Tensor& x);
/// x Phi(x) with the normal distribution function (erf, not its tanh approximation).
Tensor gelu(const Tensor& x);
/// log(1 + exp(x)), without overflow.
Tensor softplus(const Tensor& x);
/// x sigmoid(x)
Tensor silu(const Tensor& x);
/// x, for x < 0 exp(x) - 1.
Tensor elu(const Tensor& x);
/// 1.0507 x, for x < 0 1.0507 * 1.6733 (exp(x) - 1). The gradient at 0 is 1.0507.
Tensor selu(const Tensor& x);
/// x, for x <= 0 alpha x. The gradient at 0 is alpha.
Tensor leaky_relu(const Tensor& x, double alpha = 0.2);
/// x
Tensor linear(const Tensor& x);

// ---------------------------------------------------------------- others

/// x, through which no gradient flows.
Tensor stop_gradient(const Tensor& x);
/// Between any dtypes. Float to integer: towards zero, saturating, NaN gives 0; integer to narrower: wraps; to bool:
/// whether it is not 0. The gradient passes between floats.
Tensor cast(const Tensor& x, DType dtype);
/// For composites that take f16 and bf16: f of x in f32, whose result is rounded once.
template <class F> Tensor in_f32(const Tensor& x, const F& f) { return cast(f(cast(x, f32)), x.dtype()); }

/// The largest |a - b|, NaN if there is one, 0 of nothing; on the host, for tests. Specs must agree.
double max_abs_difference(const Tensor& a, const Tensor& b);
/// Whether specs and all bits agree; on the host, for tests.
bool bitwise_equal(const Tensor& a, const Tensor& b);

}  // namespace gradus
