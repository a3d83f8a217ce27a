/// sin, cos and tan: x = n pi/2 + r with |r| <= pi/4. Arguments of f32 are reduced in f64, where the whole computation
/// is exact enough to round once. Arguments of f64 are reduced by pi/2 in three parts, which fma makes exact up to
/// 2^43. Beyond, the product with 2/pi is taken modulo 4 in integers (Payne and Hanek 1983).
#include <algorithm>
#include <vector>
#include "gradus/scalar/formulas_parts.h"
#include "gradus/base/numbered.h"

namespace gradus::scalar {
namespace {

constexpr double half_pi[] = {1.5707963267948965580, 6.1232339957367660359e-17, -1.4973849048591698e-33};
constexpr double bound = trig_bound;

struct Quadrant {
  Value bits;    // n in its low bits
  Value r, low;  // r + low is the reduced argument
};

/// `wide` is f64. `precise` asks for the low part, else it is 0.
Quadrant reduce(const Value& wide, bool precise) {
  const Value x = min(bound, max(-bound, wide));
  const Value rounded = fma(x, 0.63661977236758134308, format_f64.round);
  const Value n = -(rounded - format_f64.round);
  const Value bits = bitcast(rounded, i64);
  const Value first = fma(n, half_pi[0], x);  // exact
  if (!precise) return {bits, fma(n, half_pi[1], first), 0.0};
  const Value second = n * half_pi[1];
  const Value second_low = fma(n, half_pi[1], -second);
  const Value r = first + second;
  const Value part = r - first;
  const Value lost = (first - (r - part)) + (second - part);
  return {bits, r, lost + fma(n, half_pi[2], second_low)};
}

// ---------------------------------------------------------------- beyond the bound

/// 2/pi in binary, after 64 zeros.
constexpr std::uint64_t two_over_pi[] = {0,
                                         0xa2f9836e4e441529,
                                         0xfc2757d1f534ddc0,
                                         0xdb6295993c439041,
                                         0xfe5163abdebbc561,
                                         0xb7246e3a424dd2e0,
                                         0x06492eea09d1921c,
                                         0xfe1deb1cb129a73e,
                                         0xe88235f52ebb4484,
                                         0xe99c7026b45f7e41,
                                         0x3991d639835339f4,
                                         0x9c845f8bbdf9283b,
                                         0x1ff897ffde05980f,
                                         0xef2f118b5a0a6d1f,
                                         0x6d367ecf27cb09b7,
                                         0x4f463f669e5fea2d,
                                         0x7527bac7ebe5f17b,
                                         0x3d0739f78a5292ea,
                                         0x6bfb5fb11f8d5d08,
                                         0x56033046fc7b6bab};

Value low_half(const Value& x) { return x & std::int64_t{0xffffffff}; }
Value high_half(const Value& x) { return shift_right_logical(x, 32); }

/// 192 bits of 2/pi from bit `place` of the table on, as three words.
std::vector<Value> bits_from(const Value& place, bool single) {
  std::vector<Value> words;
  const int count = single ? 6 : 20;  // words that a finite x of this type can reach
  for (int i = 0; i < count; ++i)
    words.push_back(constant_like(place, Literal(static_cast<std::int64_t>(two_over_pi[i]))));
  const Value word = shift_right_logical(place, 6), shift = place & std::int64_t{63};
  for (int step = single ? 2 : 16; step > 0; step /= 2) {
    const Value skips = (word & std::int64_t{step}) == std::int64_t{step};
    const auto size = static_cast<int>(words.size()), wanted = std::min(size, 3 + step);
    for (int i = 0; i < wanted; ++i)
      if (i + step < size) words[at(i)] = select(skips, words[at(i + step)], words[at(i)]);
    words.erase(words.begin() + wanted, words.end());
  }
  std::vector<Value> shifted;
  for (int i = 0; i < 3; ++i) {
    const Value next = shift_right_logical(words[at(i + 1)], 1);
    shifted.push_back(shift_left(words[at(i)], shift) | shift_right_logical(next, std::int64_t{63} - shift));
  }
  return shifted;
}

/// |x| 2/pi modulo 4, as a number of 128 bits, two of them before the point. With x = m 2^e, only the bits of 2/pi
/// matter that 2^e moves below 4. Columns of 32 bits are summed.
struct Turns {
  Value high, low;
};
Turns turns_of(const Value& wide, bool single) {
  const Value bits = bitcast(abs(wide), i64);
  const Value m = (bits & ((std::int64_t{1} << 52) - 1)) | (std::int64_t{1} << 52);
  const std::vector<Value> window = bits_from(shift_right_logical(bits, 52) - std::int64_t{1013}, single);
  std::vector<Value> by_low, by_high;  // the products with the halves of m, least significant first
  for (int i = 0; i < 6; ++i) {
    const Value& word = window[at(2 - i / 2)];
    const Value half = i % 2 == 0 ? low_half(word) : high_half(word);
    by_low.push_back(low_half(m) * half);
    by_high.push_back(high_half(m) * half);
  }
  Value carry = high_half(by_high[0]);
  std::vector<Value> columns;
  for (int i = 2; i < 6; ++i) {
    const Value own = i == 5 ? by_low[5] : low_half(by_low[at(i)]);
    columns.push_back(own + high_half(by_low[at(i - 1)]) + by_high[at(i - 1)] + carry);
    carry = high_half(columns.back());
  }
  return {shift_left(columns[3], 32) | low_half(columns[2]), shift_left(columns[1], 32) | low_half(columns[0])};
}

Quadrant reduced(const Turns& turns) {
  const Value bits = shift_right_logical(turns.high + (std::int64_t{1} << 61), 62);
  const Value rest = turns.high - shift_left(bits, 62);  // within half a quadrant, signed
  const Value middle = shift_left(low_half(rest), 21) | shift_right_logical(turns.low, 43);
  const Value first = convert(shift_right(rest, 32), f64) * 0x1p-30, second = convert(middle, f64) * 0x1p-83;
  const Value third = convert(turns.low & ((std::int64_t{1} << 43) - 1), f64) * 0x1p-126;
  const Value sum = first + second, tail = (second - (sum - first)) + third;
  const Value f = sum + tail, f_low = tail - (f - sum);
  const Value r = f * half_pi[0];
  return {bits, r, fma(f, half_pi[0], -r) + fma(f, half_pi[1], f_low * half_pi[0])};
}

/// Reduces |x| beyond the bound.
Quadrant reduce_far(const Value& wide, bool single) { return reduced(turns_of(wide, single)); }

// ---------------------------------------------------------------- within a quadrant

struct SineCosine {
  Value sine, cosine;
};

/// For f32: relative error below 2^-35.
SineCosine short_kernels(const Value& r) {
  const Value z = r * r;
  const Value s = polynomial(
      z, {2.72493849762038517e-6, -0.000198400826703363396, 0.00833333186748369159, -0.166666666638379996, 1.0});
  const Value c = polynomial(z, {-2.73004993336850788e-7, 0.0000248005969058315514, -0.00138888876658035745,
                                 0.0416666666643061492, -0.5, 1.0});
  return {r * s, c};
}

SineCosine long_kernels(const Value& r, const Value& low) {
  const Value z = r * r;
  const Value s = polynomial(z, {1.59178609609323507e-10, -2.50511281361830451e-8, 2.75573160848556848e-6,
                                 -0.000198412698367247121, 0.00833333333333092633, -0.166666666666666646});
  const Value c = polynomial(z, {-1.13824636920178271e-11, 2.08761439348306302e-9, -2.75573172605866566e-7,
                                 0.0000248015872987443448, -0.00138888888888873833, 0.0416666666666666654});
  const Value half = z * 0.5;
  const Value near_one = 1.0 - half;
  const Value sine = r + fma(r * z, s, low * near_one);
  const Value cosine = near_one + (((1.0 - near_one) - half) + fma(z * z, c, -(r * low)));
  return {sine, cosine};
}

/// Sine and cosine of the reduced argument, f64, with the quadrant.
struct Circle {
  SineCosine at;
  Value bits;
};
Circle circle(const Quadrant& q, bool precise) {
  return {precise ? long_kernels(q.r, q.low) : short_kernels(q.r), q.bits};
}

/// function(circle) of x, and far(function(circle), x) for |x| beyond the bound.
template <class Function, class Far> Value by_circle(const Value& x, Function function, Far far) {
  const bool precise = x.type() == f64;
  const Value wide = convert(x, f64);
  const Value usual = function(circle(reduce(wide, precise), precise));
  const Value rare = far(function(circle(reduce_far(wide, !precise), precise)), wide);
  return select_rarely(abs(x) > bound, rare, usual);
}

/// The odd function's value at x, from y, its value at |x|.
Value with_sign_of(const Value& y, const Value& x) {
  return bitcast(bitcast(y, i64) ^ (bitcast(x, i64) & format_f64.sign), f64);
}

Value is_odd(const Value& bits) { return (bits & std::int64_t{1}) == std::int64_t{1}; }

/// y, negated in the quadrants whose second bit is set.
Value signed_by(const Value& bits, const Value& y) {
  return bitcast(bitcast(y, i64) ^ (shift_left(bits, 62) & format_f64.sign), f64);
}

/// The result in the type of x; NaN unless x is finite.
Value finished(const Value& x, const Value& y) {
  return select(abs(x) < infinity, convert(y, x.type()), std::numeric_limits<double>::quiet_NaN());
}

/// Odd functions are their argument near zero, -0 included.
Value odd_near_zero(const Value& x, const Value& y) { return select(abs(x) < 1e-9, x, y); }

Value sine_of(const Circle& c) { return signed_by(c.bits, select(is_odd(c.bits), c.at.cosine, c.at.sine)); }

Value cosine_of(const Circle& c) {
  const Value next = c.bits + std::int64_t{1};
  return signed_by(next, select(is_odd(next), c.at.cosine, c.at.sine));
}

/// The circle for |x| up to the bound.
Circle near_circle(const Value& x) {
  const bool precise = x.type() == f64;
  return circle(reduce(convert(x, f64), precise), precise);
}

}  // namespace

Value bounded_sin(const Value& x) { return odd_near_zero(x, finished(x, sine_of(near_circle(x)))); }
Value bounded_cos(const Value& x) { return finished(x, cosine_of(near_circle(x))); }

Value far_sin(const Value& x, int eighths, const Value& shift) {
  Turns turns = turns_of(x, false);
  turns.high = turns.high - static_cast<std::int64_t>(static_cast<std::uint64_t>(eighths) << 61);
  const Quadrant q = reduced(turns);
  const Value r = q.r + shift;
  return sine_of(circle({q.bits, r, q.low + (shift - (r - q.r))}, true));
}

Value sin(const Value& x) { return odd_near_zero(x, finished(x, by_circle(x, sine_of, with_sign_of))); }

Value cos(const Value& x) {
  return finished(x, by_circle(x, cosine_of, [](const Value& y, const Value&) { return y; }));
}

Value tan(const Value& x) {
  const auto tangent = [](const Circle& c) {
    const Value odd = is_odd(c.bits);
    return select(odd, c.at.cosine, c.at.sine) / select(odd, -c.at.sine, c.at.cosine);
  };
  return odd_near_zero(x, finished(x, by_circle(x, tangent, with_sign_of)));
}

}  // namespace gradus::scalar
