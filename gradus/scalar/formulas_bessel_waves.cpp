/// Bessel functions of the first and second kind, and modified ones of the second. Orders 0 and 1 are power series near
/// 0; beyond, they are a wave, or exp(-x), times polynomials in 1 / x^2, or 1 / x. Other orders follow by the
/// recurrence. All in f64. Coefficients are those of Chebyshev's series, computed in numbers of 50 digits and written
/// out in powers: relative error below 2e-16.
#include <math.h>  // jn and yn, of POSIX
#include <cmath>
#include <numbers>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::scalar {
namespace {

using std::numbers::pi;

constexpr double wave_from = 5;

/// (x / 2)^n / n! times the sum of y^k n! / (k! (n + k)!) for |y| up to 6.25: J_n(x) of y = -x^2 / 4, I_n(x) of x^2
/// / 4.
Value first_kind(int n, const Value& x, const Value& y) {
  Value sum = y * 0.0 + 1.0, lead = sum;
  for (int k = 24; k > 0; --k) sum = fma(sum * y, 1.0 / (static_cast<double>(k) * (k + n)), 1.0);
  for (int k = 1; k <= n; ++k) lead = lead * x * (0.5 / k);
  return sum * lead;
}

/// J_n(x) = sqrt(2 / (pi x)) (p cos(w) - q sin(w) / x) and Y_n(x) = sqrt(2 / (pi x)) (p sin(w) + q cos(w) / x) with
/// w = x - n pi / 2 - pi / 4, for x^2 = 50 / (t + 1) from 25.
Value p_0(const Value& t) {
  return polynomial(t, {-1.9975016566739445e-12, 3.5736949521760605e-12, 2.411441866647587e-12, -3.5821210474962445e-12,
                        -1.189461787537485e-11, 2.4563632799612557e-11, -3.6990044251542916e-11, 9.74682627637317e-11,
                        -2.843404232046865e-10, 8.561284476621563e-10, -2.870792244429867e-09, 1.105832711236427e-08,
                        -5.086428409883204e-08, 2.975900989096833e-07, -2.4599633242216923e-06, 3.4917305810915766e-05,
                        -0.0013274931272003446, 0.9986347659091991});
}
Value q_0(const Value& t) {
  return polynomial(t,
                    {-5.222334538147709e-12,  8.407447245972002e-12,  1.3633406780516713e-11,  -2.1081528293493824e-11,
                     -2.876663066287588e-11,  4.744412482513226e-11,  -2.8897963164132056e-12, 1.6678461752076892e-11,
                     -1.1522676555173416e-10, 2.5748918322321475e-10, -5.837301243408102e-10,  1.5212036979839156e-09,
                     -4.294872965473153e-09,  1.329785673178523e-08,  -4.639792333561936e-08,  1.8870285034356504e-07,
                     -9.409875233313307e-07,  6.2391131754646214e-06, -6.33871544253684e-05,   0.0013142139729101702,
                     -0.12361496352611864});
}
Value p_1(const Value& t) {
  return polynomial(t, {2.1173575182340737e-12, -3.7946206140880125e-12, -2.530760445033384e-12, 3.749133511692303e-12,
                        1.2711568738317182e-11, -2.6348219236772803e-11, 4.0144908940086184e-11,
                        -1.0618042040803036e-10, 3.1088775918767203e-10, -9.42108465131188e-10, 3.1852202992251782e-09,
                        -1.2402728629933329e-08, 5.791663725419715e-08, -3.4667191185744856e-07, 2.97862110803436e-06,
                        -4.5782806529543783e-05, 0.0022414632139171322, 1.0022906462560661});
}
Value q_1(const Value& t) {
  return polynomial(t,
                    {5.499288063650921e-12,  -8.86347063753487e-12,   -1.4321526134962363e-11, 2.2160827936692544e-11,
                     3.0330329715038467e-11, -5.011071335870982e-11,  3.475677955109186e-12,   -1.854885856511523e-11,
                     1.2375002645863873e-10, -2.7758256253151096e-10, 6.32848600734026e-10,    -1.6567269593951687e-09,
                     4.7033027636616916e-09, -1.4665578811212324e-08, 5.164154996988851e-08,   -2.1266727479894664e-07,
                     1.0798853844438713e-06, -7.369927953913392e-06,  7.898094177972238e-05,   -0.001864849621841231,
                     0.3730474331740802});
}

/// J or Y of orders 0 and 1 from 5.
struct Waves {
  Value order_0, order_1;
};
Waves waves(bool of_second_kind, const Value& x) {
  const Value t = (2 * wave_from * wave_from) / (x * x) - 1.0, size = sqrt(1.0 / (x * pi));
  const Value sine = bounded_sin(x), cosine = bounded_cos(x);
  const Value sum = sine + cosine, difference = sine - cosine;  // sqrt(2) times the cosine and sine of x - pi / 4
  const Value p0 = p_0(t), q0 = q_0(t) / x, p1 = p_1(t), q1 = q_1(t) / x;
  if (of_second_kind) return {size * (p0 * difference + q0 * sum), size * (q1 * difference - p1 * sum)};
  return {size * (p0 * sum - q0 * difference), size * (p1 * difference + q1 * sum)};
}

/// J or Y of any order for x beyond trig_bound: the wave alone, whose phase the first term of q moves.
Value far_wave(bool of_second_kind, int order, const Value& x) {
  const Value shift = (4.0 * order * order - 1.0) / 8.0 / x;
  return far_sin(x, 2 * order + (of_second_kind ? 1 : -1), shift) * std::sqrt(2 / pi) / sqrt(x);
}

/// Sums of y^k / (k! (n + k)!) times the harmonic number of k for n = 0, and digamma(k + 1) + digamma(k + 2) for n = 1.
Value harmonic_0(const Value& y) {
  double coefficients[25] = {}, harmonic = 0, factor = 1;
  for (int k = 1; k < 25; ++k)
    harmonic += 1.0 / k, factor /= static_cast<double>(k) * k, coefficients[24 - k] = harmonic * factor;
  return polynomial(y, coefficients);
}
Value harmonic_1(const Value& y) {
  double coefficients[25] = {}, digammas = 1 - 2 * std::numbers::egamma, factor = 1;
  for (int k = 0; k < 25; ++k) {
    coefficients[24 - k] = digammas * factor;
    digammas += 1.0 / (k + 1) + 1.0 / (k + 2), factor /= (k + 1.0) * (k + 2);
  }
  return polynomial(y, coefficients);
}

/// Near 0, y = -x^2 / 4: pi / 2 Y_0(x) and pi / 2 Y_1(x) + 1 / x; y = x^2 / 4: -K_0(x) and K_1(x) - 1 / x.
Waves second_kind(const Value& x, const Value& y) {
  // Half of x is subnormal for the smallest normal x.
  const Value is_tiny = x < 1e-300, halved = log(select(is_tiny, x, x * 0.5));
  const Value logarithm = select(is_tiny, halved - std::numbers::ln2, halved);
  return {fma(logarithm + std::numbers::egamma, first_kind(0, x, y), -harmonic_0(y)),
          fma(logarithm, first_kind(1, x, y), -(x * 0.25 * harmonic_1(y)))};
}

/// sqrt(x) exp(x) K_0(x) and K_1(x) for x = 4 / (t + 1) from 2.
Value k_0(const Value& t) {
  return polynomial(t,
                    {-6.183509185741941e-11,  1.0806290149518295e-10, 1.7977981899954878e-10,  -3.0539020868001565e-10,
                     -4.506683106759898e-10,  7.977983533091815e-10,  3.233433692180319e-11,   6.837018659348517e-11,
                     -1.8006773523392004e-09, 3.791192703615846e-09,  -7.3618275080282515e-09, 1.7056674605334674e-08,
                     -4.131061283701578e-08,  1.0295120376495239e-07, -2.689135887009184e-07,  7.427807838466459e-07,
                     -2.1911767539401716e-06, 7.002245564109627e-06,  -2.473520464665274e-05,  9.956054742546008e-05,
                     -0.0004797690567629981,  0.0030328918102751935,  -0.031071461824889554,   1.2185953385133905});
}
Value k_1(const Value& t) {
  return polynomial(t,
                    {6.73716173849808e-11,   -1.1801191034535537e-10, -1.948680720152238e-10, 3.3153918291421876e-10,
                     4.921710202548386e-10,  -8.740019154894709e-10,  -2.104015257574649e-11, -1.0584430289297026e-10,
                     2.0346220468711174e-09, -4.313336112817399e-09,  8.49114322410236e-09,   -1.9827457966367164e-08,
                     4.843094038201199e-08,  -1.220284967173793e-07,  3.2298873862640425e-07, -9.067094776630646e-07,
                     2.730040312895642e-06,  -8.961207299463647e-06,  3.284386565057862e-05,  -0.00013959021956830856,
                     0.0007357241549046456,  -0.005566729880074451,   0.10334973775386527,    1.363151890371342});
}

constexpr double decay_from = 2;

}  // namespace

Value bessel_j(int order, const Value& x) {
  if (x.type() != f64) return convert(bessel_j(order, convert(x, f64)), x.type());
  const Value a = abs(x), near = min(a, wave_from), far = max(a, wave_from);
  auto [below, at] = waves(false, far);
  for (int k = 1; k < order; ++k) {
    const Value next = at * (2.0 * k) / far - below;
    below = at;
    at = next;
  }
  const Value wave = select_rarely(a > trig_bound, far_wave(false, order, a), order == 0 ? below : at);
  const Value beyond = select(a == infinity, 0.0, wave);
  const Value size = select(a <= wave_from, first_kind(order, near, near * near * -0.25), beyond);
  return select(x == x, order % 2 == 0 ? size : select(x < 0.0, -size, size), x);
}

Real bessel_j(int order, Real x) { return {std::isinf(x.v) ? 0 : ::jn(order, x.v), x.type}; }

Value bessel_y(int order, const Value& x) {
  if (x.type() != f64) return convert(bessel_y(order, convert(x, f64)), x.type());
  const Value is_near = x <= wave_from, near = min(max(x, 0.0), wave_from), far = max(x, wave_from);
  const auto [near_0, near_1] = second_kind(near, near * near * -0.25);
  const auto [far_0, far_1] = waves(true, far);
  Value below = select(is_near, near_0 * (2 / pi), far_0),
        at = select(is_near, (near_1 - 1.0 / near) * (2 / pi), far_1);
  for (int k = 1; k < order; ++k) {
    const Value next = max(at * (2.0 * k) / x - below, -infinity);  // also where both are infinite
    below = at;
    at = next;
  }
  const Value usual = order == 0 ? below : at;
  const Value y = select_rarely(x > trig_bound, far_wave(true, order, x), usual);
  return select(x == x, select(x <= 0.0, -infinity, select(x == infinity, 0.0, y)), x);
}

Real bessel_y(int order, Real x) {
  if (std::isnan(x.v)) return x;
  return {std::isinf(x.v) && x.v > 0 ? 0 : x.v <= 0 ? -infinity : ::yn(order, x.v), x.type};
}

Value bessel_k(int order, bool scaled, const Value& x) {
  if (x.type() != f64) return convert(bessel_k(order, scaled, convert(x, f64)), x.type());
  const Value is_near = x <= decay_from, near = min(max(x, 0.0), decay_from), far = max(x, decay_from);
  const auto [near_0, near_1] = second_kind(near, near * near * 0.25);
  const Value t = 2 * decay_from / far - 1.0, near_scale = scaled ? exp(near) : Value(1.0);
  const Value far_scale = (scaled ? Value(1.0) : exp(-far)) / sqrt(far);
  Value below = select(is_near, -near_0 * near_scale, k_0(t) * far_scale);
  Value at = select(is_near, (near_1 + 1.0 / near) * near_scale, k_1(t) * far_scale);
  for (int k = 1; k < order; ++k) {
    const Value next = at * (2.0 * k) / x + below;
    below = at;
    at = next;
  }
  return select(x == x, select(x <= 0.0, infinity, order == 0 ? below : at), x);
}

/// libstdc++ has it; where exp(-x) is too small for it, by the asymptotic series.
Real bessel_k(int order, bool scaled, Real x) {
  if (std::isnan(x.v)) return x;
  if (x.v <= 0) return {infinity, x.type};
  if (x.v < 500) return {std::cyl_bessel_k(order, x.v) * (scaled ? std::exp(x.v) : 1), x.type};
  double term = std::sqrt(pi / (2 * x.v)), sum = term;
  for (int k = 1; k < 20; ++k) {
    term *= (4.0 * order * order - (2.0 * k - 1) * (2.0 * k - 1)) / (8.0 * k * x.v);
    sum += term;
  }
  return {scaled ? sum : sum * std::exp(-x.v), x.type};
}

}  // namespace gradus::scalar
