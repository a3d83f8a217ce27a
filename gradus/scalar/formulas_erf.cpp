/// The error function: an odd polynomial near zero, one minus the complement elsewhere. And the complement itself, with
/// the functions of the normal distribution made of both.
#include <cmath>
#include <numbers>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

/// erf(a) for a < 0.92.
Value near_f32(const Value& a) {
  return fma(
      a, polynomial(a * a, {-0.0005976252324, 0.004990841975, -0.02676546277, 0.1128179957, -0.3761249397, 0.12837915}),
      a);
}

/// erf(a) for a < 1.
Value near_f64(const Value& a) {
  return fma(a,
             polynomial(a * a, {-7.80104248594938224e-10, 1.37228942902147925e-8, -1.62091560577787604e-7,
                                1.64475149557352185e-6, -0.00001492474443111707, 0.00012055295307739072,
                                -0.000854832598924559784, 0.00522397760741348771, -0.0268661706432749255,
                                0.112837916709452446, -0.376126389031835464, 0.128379167095512567}),
             a);
}

/// erf(a), the complement 1 - erf(a) that it is made of, which holds from 1 on, and exp(-square), a factor of it in
/// f64.
struct ErfParts {
  Value erf, complement;
  Value square = 0.0, decay = 0.0;  // the square of a, rounded
};

/// a in [0.92, 4]: the complement is exp(polynomial of degree 7 that is log(erfc(a))).
ErfParts erf_f32(const Value& a) {
  const Value t = min(4.0, a);
  const Value complement = exp(polynomial(t, {-2.117340728e-5, 0.0004353496768, -0.004175267139, 0.02513024701,
                                              -0.1082964309, -0.6333324111, -1.129521928, 0.0001761036681}));
  return {select(a < 0.92, near_f32(a), 1.0 - complement), complement};
}

/// a from 1 on: the complement is exp(-a^2) E(a), where E = exp(a^2) erfc(a) is a polynomial in 1 / (a + 2). It is 0
/// beside 1 from 6 on.
ErfParts erf_f64(const Value& a) {
  const Value t = min(27.0, a), square = t * t;
  const Value v = 1.0 / (t + 2.0);
  const Value e =
      polynomial(v, {49.9547582011660657, -103.021182118589361, 40.1981381847018294, 73.3325257215123691,
                     -92.250952621319713, 38.8487068699815496, -8.59174627369708131, 5.00194144066718883,
                     1.68877338670116324, 1.15289276075328883, 0.562943126853785289, 0.0000285893260914955258});
  const Value decay = exp(-square);
  return {select(a < 1.0, near_f64(a), fma(-decay, e, 1.0)), decay * e, square, decay};
}

ErfParts erf_parts(const Value& x) {
  const Value a = abs(x);
  const ErfParts parts = a.type() == f32 ? erf_f32(a) : erf_f64(a);
  return {copy_sign(parts.erf, x), parts.complement, parts.square, parts.decay};
}

/// exp(a^2) erfc(a) (1 + 2a) for a in [0.5, 10.2], f64 with the precision that f32 needs, and for a in [0.5, 27.5]: a
/// polynomial in (a - k) / (a + k) (Shepherd and Laframboise 1981).
Value scaled_erfc_short(const Value& a) {
  return polynomial((a - 2.5) / (a + 2.5),
                    {0.000533387647358465858, 0.000411479648169194046, -0.00434757098928924619, 0.000958376026925003303,
                     0.0327552964222853009, -0.102970649154440245, 0.15763031644215989, -0.099024368970954916,
                     -0.12235677172370183, 1.26483818308047596});
}
Value scaled_erfc_long(const Value& a) {
  return polynomial((a - 3.0) / (a + 3.0), {7.71783739921216028e-9,  7.23684321955771303e-8,   -8.21271844788828524e-8,
                                            -5.86887832895579209e-7, 3.01016896545257882e-7,   3.45548819328931292e-6,
                                            -7.00172237610293191e-7, -2.00947020448176137e-5,  4.93846967998016286e-6,
                                            0.000125098084358149408, -0.000105157355751531677, -0.000779832103016600319,
                                            0.00188869002481475909,  0.00252939180274894457,   -0.0237705148921314941,
                                            0.0683080273445459022,   -0.119273663416383028,    0.129645158702749598,
                                            -0.0475622943534338115,  -0.135621106124581108,    1.25300805826972961});
}

/// Below complement_below 1 + erf(x / sqrt(2)) has lost three bits: it is the complement itself. Below tail_below a
/// formula of the tail takes its place. One element of a normal distribution in 30,000 needs it in f32, and one in 700
/// in f64: at -2.5 it would be one in 160, hence every tenth vector of 16.
constexpr double complement_below = -2;
double tail_below(DType type) { return type == f32 ? -4 : -3; }
constexpr double sqrt_half = std::numbers::sqrt2 / 2, slope_at_0 = 2 * std::numbers::inv_sqrtpi;

/// exp(-z^2 / 2) with the rounding error of the square, which amounts to a factor of up to 1 + 100 ulp.
Value gaussian(const Value& z) {
  const Value square = z * z;
  return exp_of_sum(square * -0.5, fma(z, z, -square) * -0.5);
}

/// -x for x below tail_below, as far as the result is not 0.
Value tail_place(const Value& x) { return min(x.type() == f32 ? 15.0 : 38.2, -x); }

/// exp(z^2 / 2) erfc(z / sqrt(2)) for z in [2, 15], in f64 up to 38.
Value scaled_tail(const Value& z) {
  if (z.type() == f32) {
    const Value v = 1.0 / (z + 1.6);
    return v * polynomial(v, {-33.89327833, 32.99284151, -2.737240984, -6.148114948, -0.299242963, 1.22197925,
                              1.277612418, 0.7978669533});
  }
  const Value a = z * sqrt_half;
  return scaled_erfc_long(a) / (a + a + 1.0);
}

/// 1 + erf(x / sqrt(2)), from tail_below() on; and for x below it as a product: exp(-x^2 / 2) times scaled_tail.
struct NormalCdf {
  explicit NormalCdf(const Value& x) : parts(erf_parts(x * sqrt_half)), z(tail_place(x)), scaled(scaled_tail(z)) {}
  Value usual(const Value& x) const { return select(x < complement_below, parts.complement, parts.erf + 1.0); }
  /// In f64 the decay that erf is made of, with what its exponent lost.
  Value decay() const {
    if (z.type() == f32) return gaussian(z);
    const Value square = z * z, lost = parts.square - square * 0.5 - fma(z, z, -square) * 0.5;
    return fma(parts.decay, lost, parts.decay);
  }
  ErfParts parts;
  Value z, scaled;
};

}  // namespace

Value gelu(const Value& x) {
  const NormalCdf phi(x);
  const Value usual = x * 0.5 * phi.usual(x);
  return select_rarely(x < tail_below(x.type()), -(phi.z * 0.5 * phi.scaled) * phi.decay(), usual);
}

Value twice_normal_cdf(const Value& x) {
  const NormalCdf phi(x);
  const Value usual = phi.usual(x);
  return select_rarely(x < tail_below(x.type()), phi.scaled * phi.decay(), usual);
}

Value erf_slope(const Value& x) {
  const Value u = x * sqrt_half;
  return select_rarely(x < tail_below(x.type()), gaussian(tail_place(x)) * slope_at_0, exp(-(u * u)) * slope_at_0);
}

Real twice_normal_cdf(Real x) { return {std::erfc(-x.v * sqrt_half), x.type}; }
Real gelu(Real x) {
  const double phi = twice_normal_cdf(x).v;
  return {phi == 0 ? -0.0 : x.v * 0.5 * phi, x.type};
}
Real erf_slope(Real x) { return {std::exp(-x.v * x.v / 2) * slope_at_0, x.type}; }

Value erf(const Value& x) { return erf_parts(x).erf; }

Value erfc(const Value& x) {
  const bool single = x.type() == f32;
  const Value magnitude = abs(x);
  const Value a = min(single ? 10.2 : 27.5, convert(magnitude, f64));
  const Value square = a * a;
  // The rounding error of the square is a factor of up to 1 + 750 * 2^-53.
  const Value decay = single ? exp(-square) : exp_of_sum(-square, -fma(a, a, -square));
  const Value tail = decay * (single ? scaled_erfc_short(a) : scaled_erfc_long(a)) / (a + a + 1.0);
  const Value far = convert(select(convert(x, f64) < 0.0, 2.0 - tail, tail), x.type());
  const Value near = 1.0 - copy_sign(single ? near_f32(magnitude) : near_f64(magnitude), x);
  return select(magnitude < 0.5, near, far);
}

}  // namespace gradus::scalar
