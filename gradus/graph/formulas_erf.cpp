/// The error function: an odd polynomial near zero, one less the complement elsewhere.
#include "gradus/graph/formulas_parts.h"

namespace gradus::scalar {
namespace {

/// a in [0.92, 4]: 1 - exp(polynomial of degree 7 that is log(erfc(a))).
Value erf_f32(const Value& a) {
  const Value z = a * a;
  const Value near = fma(
      a, polynomial(z, {-0.0005976252324, 0.004990841975, -0.02676546277, 0.1128179957, -0.3761249397, 0.12837915}), a);
  const Value t = min(4.0, a);
  const Value far = 1.0 - exp(polynomial(t, {-2.117340728e-5, 0.0004353496768, -0.004175267139, 0.02513024701,
                                             -0.1082964309, -0.6333324111, -1.129521928, 0.0001761036681}));
  return select(a < 0.92, near, far);
}

/// a in [1, 6]: 1 - exp(-a^2) E(a), where E = exp(a^2) erfc(a) is a polynomial in 1 / (a + 2).
Value erf_f64(const Value& a) {
  const Value z = a * a;
  const Value near = fma(
      a,
      polynomial(z, {-7.80104248594938224e-10, 1.37228942902147925e-8, -1.62091560577787604e-7, 1.64475149557352185e-6,
                     -0.00001492474443111707, 0.00012055295307739072, -0.000854832598924559784, 0.00522397760741348771,
                     -0.0268661706432749255, 0.112837916709452446, -0.376126389031835464, 0.128379167095512567}),
      a);
  const Value t = min(6.0, a);
  const Value v = 1.0 / (t + 2.0);
  const Value e =
      polynomial(v, {49.9547582011660657, -103.021182118589361, 40.1981381847018294, 73.3325257215123691,
                     -92.250952621319713, 38.8487068699815496, -8.59174627369708131, 5.00194144066718883,
                     1.68877338670116324, 1.15289276075328883, 0.562943126853785289, 0.0000285893260914955258});
  return select(a < 1.0, near, fma(-exp(-(t * t)), e, 1.0));
}

}  // namespace

Value erf(const Value& x) {
  const Value a = abs(x);
  return copy_sign(a.type() == f32 ? erf_f32(a) : erf_f64(a), x);
}

}  // namespace gradus::scalar
