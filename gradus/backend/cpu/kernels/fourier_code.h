/// Stages of Fourier transforms by vectors: along neighbouring points of one stride, and in the first stage, whose
/// stride is 1, along neighbouring groups. Real and imaginary parts lie apart.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include "gradus/backend/cpu/kernels/fourier.h"
#include "gradus/backend/cpu/kernels/vector_bytes.h"

namespace gradus::library::fourier {
namespace {

template <class T, int bytes> struct VectorOf {
  typedef T type __attribute__((vector_size(bytes)));
};
template <class T> struct VectorOf<T, 0> {
  using type = T;
};
template <class V, class T> constexpr std::int64_t lanes_of = sizeof(V) / sizeof(T);

template <class V, class T> [[gnu::always_inline]] inline V load(const T* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class V, class T> [[gnu::always_inline]] inline void store(T* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}
template <class V, class T> [[gnu::always_inline]] inline V all(T number) {
  if constexpr (std::is_same_v<V, T>) return number;
  else return number - V{};  // less 0 it is itself, -0 included
}

template <class V> struct Complex {
  V re, im;
  [[gnu::always_inline]] friend inline Complex operator+(const Complex& a, const Complex& b) {
    return {a.re + b.re, a.im + b.im};
  }
  [[gnu::always_inline]] friend inline Complex operator-(const Complex& a, const Complex& b) {
    return {a.re - b.re, a.im - b.im};
  }
  [[gnu::always_inline]] friend inline Complex operator*(const Complex& a, const Complex& b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  [[gnu::always_inline]] inline Complex times(const V& number) const { return {re * number, im * number}; }
  /// Times -i.
  [[gnu::always_inline]] inline Complex turned() const { return {im, -re}; }
};

/// The parts of points, apart.
template <class T> struct Parts {
  T *re, *im;
};

// ---------------------------------------------------------------- transforms of one radix, in place

template <class T, class V> [[gnu::always_inline]] inline void transform_two(Complex<V>& a, Complex<V>& b) {
  const Complex<V> sum = a + b;
  b = a - b;
  a = sum;
}

template <class T, class V>
[[gnu::always_inline]] inline void transform_four(Complex<V>& a, Complex<V>& b, Complex<V>& c, Complex<V>& d) {
  const Complex<V> sum = a + c, difference = a - c, sum_of_odd = b + d, turned = (b - d).turned();
  a = sum + sum_of_odd;
  b = difference + turned;
  c = sum - sum_of_odd;
  d = difference - turned;
}

template <int radix, class T, class V> [[gnu::always_inline]] inline void transform_points(Complex<V>* x) {
  if constexpr (radix == 2) {
    transform_two<T>(x[0], x[1]);
  } else if constexpr (radix == 3) {
    const V half = all<V>(T(0.5)), sine = all<V>(T(0.86602540378443864676));
    const Complex<V> sum = x[1] + x[2], turned = (x[1] - x[2]).turned().times(sine), rest = x[0] - sum.times(half);
    x[0] = x[0] + sum;
    x[1] = rest + turned;
    x[2] = rest - turned;
  } else if constexpr (radix == 4) {
    transform_four<T>(x[0], x[1], x[2], x[3]);
  } else if constexpr (radix == 5) {
    const V c1 = all<V>(T(0.30901699437494742410)), c2 = all<V>(T(-0.80901699437494742410));
    const V s1 = all<V>(T(0.95105651629515357212)), s2 = all<V>(T(0.58778525229247312917));
    const Complex<V> outer = x[1] + x[4], inner = x[2] + x[3];
    const Complex<V> turned_outer = (x[1] - x[4]).turned(), turned_inner = (x[2] - x[3]).turned();
    const Complex<V> first = x[0] + outer.times(c1) + inner.times(c2),
                     second = x[0] + outer.times(c2) + inner.times(c1);
    const Complex<V> of_first = turned_outer.times(s1) + turned_inner.times(s2);
    const Complex<V> of_second = turned_outer.times(s2) - turned_inner.times(s1);
    x[0] = x[0] + outer + inner;
    x[1] = first + of_first;
    x[4] = first - of_first;
    x[2] = second + of_second;
    x[3] = second - of_second;
  } else {
    static_assert(radix == 8);
    const V root = all<V>(T(0.70710678118654752440));
    transform_four<T>(x[0], x[2], x[4], x[6]);
    transform_four<T>(x[1], x[3], x[5], x[7]);
    // The odd ones, turned by an eighth of a turn each.
    const Complex<V> a = x[1], b = (x[3] + x[3].turned()).times(root), c = x[5].turned(),
                     d = (x[7].turned() - x[7]).times(root);
    const Complex<V> even[4] = {x[0], x[2], x[4], x[6]};
    const Complex<V> odd[4] = {a, b, c, d};
    for (int k = 0; k < 4; ++k) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    }
  }
}

// ---------------------------------------------------------------- stages

/// Eight vectors of eight numbers as the columns of a matrix, whose rows follow each other in memory.
template <class V, class T> [[gnu::always_inline]] inline void store_columns(const V* x, T* to) {
  V pairs[8], fours[8];
  for (int k = 0; k < 8; k += 2) {
    pairs[k] = __builtin_shufflevector(x[k], x[k + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    pairs[k + 1] = __builtin_shufflevector(x[k], x[k + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int k = 0; k < 8; k += 4)
    for (int i = 0; i < 2; ++i) {
      fours[k + 2 * i] = __builtin_shufflevector(pairs[k + i], pairs[k + i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[k + 2 * i + 1] = __builtin_shufflevector(pairs[k + i], pairs[k + i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int k = 0; k < 4; ++k) {
    store(to + 8 * k, __builtin_shufflevector(fours[k], fours[k + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    store(to + 8 * (k + 4), __builtin_shufflevector(fours[k], fours[k + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

/// Points that lie apart, or whose parts follow each other in memory (`exchanged`: the imaginary part first).
template <class T> struct ApartPoints {
  Parts<const T> x;
  template <class V> [[gnu::always_inline]] Complex<V> at(std::int64_t place) const {
    return {load<V>(x.re + place), load<V>(x.im + place)};
  }
};
template <class T, bool exchanged> struct PairedPoints {
  const T* x;
  template <class V> [[gnu::always_inline]] Complex<V> at(std::int64_t place) const {
    const T* const from = x + 2 * place;
    Complex<V> point;
    if constexpr (std::is_same_v<V, T>) {
      point = {from[0], from[1]};
    } else {
      const V low = load<V>(from), high = load<V>(from + lanes_of<V, T>);
      if constexpr (lanes_of<V, T> == 8)
        point = {__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14),
                 __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15)};
      else point = {__builtin_shufflevector(low, high, 0, 2, 4, 6), __builtin_shufflevector(low, high, 1, 3, 5, 7)};
    }
    return exchanged ? Complex<V>{point.im, point.re} : point;
  }
};

/// Groups from p on of a stage of stride 1, by vectors of groups; the first group that is left.
template <int radix, class V, class T, class Points>
std::int64_t first_stage(const Stage& stage, const T* table, const Points& x, Parts<T> y, std::int64_t p) {
  constexpr std::int64_t lanes = lanes_of<V, T>;
  const std::int64_t rest = stage.rest;
  const T* const turns = table + stage.turns;
  for (; p + lanes <= rest; p += lanes) {
    Complex<V> points[std::size_t{radix}];
    for (int k = 0; k < radix; ++k) points[k] = x.template at<V>(p + k * rest);
    transform_points<radix, T>(points);
    for (int k = 1; k < radix; ++k)
      points[k] =
          points[k] * Complex<V>{load<V>(turns + (2 * k - 2) * rest + p), load<V>(turns + (2 * k - 1) * rest + p)};
    if constexpr (radix == 8 && lanes == 8) {
      V re[8], im[8];
      for (int k = 0; k < 8; ++k) re[k] = points[k].re, im[k] = points[k].im;
      store_columns<V>(re, y.re + p * radix);
      store_columns<V>(im, y.im + p * radix);
    } else {
      T re[std::size_t{radix}][std::size_t{lanes}], im[std::size_t{radix}][std::size_t{lanes}];
      for (int k = 0; k < radix; ++k) store(re[k], points[k].re), store(im[k], points[k].im);
      for (std::int64_t l = 0; l < lanes; ++l)
        for (int k = 0; k < radix; ++k) {
          y.re[(p + l) * radix + k] = re[k][l];
          y.im[(p + l) * radix + k] = im[k][l];
        }
    }
  }
  return p;
}
template <int radix, class T, class Points>
void run_first_stage(const Stage& stage, const T* table, const Points& x, Parts<T> y) {
  const std::int64_t p = first_stage<radix, typename VectorOf<T, 32>::type>(stage, table, x, y, 0);
  first_stage<radix, T>(stage, table, x, y, p);
}

/// A stage whose stride is a multiple of the vector.
template <int radix, class V, class T>
void later_stage(const Stage& stage, const T* table, Parts<const T> x, Parts<T> y) {
  constexpr std::int64_t lanes = lanes_of<V, T>;
  const std::int64_t rest = stage.rest, stride = stage.stride;
  for (std::int64_t p = 0; p < rest; ++p) {
    Complex<V> turns[std::size_t{radix}];
    for (int k = 1; k < radix; ++k)
      turns[k] = {all<V>(table[stage.turns + (2 * k - 2) * rest + p]),
                  all<V>(table[stage.turns + (2 * k - 1) * rest + p])};
    for (std::int64_t q = 0; q < stride; q += lanes) {
      const std::int64_t from = q + stride * p, to = q + stride * radix * p;
      Complex<V> points[std::size_t{radix}];
      for (int k = 0; k < radix; ++k)
        points[k] = {load<V>(x.re + from + k * rest * stride), load<V>(x.im + from + k * rest * stride)};
      transform_points<radix, T>(points);
      for (int k = 0; k < radix; ++k) {
        if (k > 0) points[k] = points[k] * turns[k];
        store(y.re + to + k * stride, points[k].re);
        store(y.im + to + k * stride, points[k].im);
      }
    }
  }
}

template <int radix, class T> void run_stage(const Stage& stage, const T* table, Parts<const T> x, Parts<T> y) {
  using Longest = typename VectorOf<T, vector_bytes>::type;
  using Half = typename VectorOf<T, 32>::type;
  using Quarter = typename VectorOf<T, 16>::type;
  if (stage.stride == 1) {
    run_first_stage<radix>(stage, table, ApartPoints<T>{x}, y);
  } else if (stage.stride % lanes_of<Longest, T> == 0) {
    later_stage<radix, Longest>(stage, table, x, y);
  } else if (stage.stride % lanes_of<Half, T> == 0) {
    later_stage<radix, Half>(stage, table, x, y);
  } else if (stage.stride % lanes_of<Quarter, T> == 0) {
    later_stage<radix, Quarter>(stage, table, x, y);
  } else {
    later_stage<radix, T>(stage, table, x, y);
  }
}

/// A radix without formulas of its own: sums of products with its roots.
template <class T> void run_any_stage(const Stage& stage, const T* table, Parts<const T> x, Parts<T> y) {
  const std::int64_t radix = stage.radix, rest = stage.rest, stride = stage.stride;
  const T *const roots = table + stage.roots, *const turns = table + stage.turns;
  for (std::int64_t p = 0; p < rest; ++p)
    for (std::int64_t q = 0; q < stride; ++q)
      for (std::int64_t k = 0; k < radix; ++k) {
        Complex<T> sum{x.re[q + stride * p], x.im[q + stride * p]};
        for (std::int64_t t = 1, root = k; t < radix; ++t, root = root + k < radix ? root + k : root + k - radix) {
          const std::int64_t from = q + stride * (p + rest * t);
          sum = sum + Complex<T>{x.re[from], x.im[from]} * Complex<T>{roots[root], roots[radix + root]};
        }
        if (k > 0) sum = sum * Complex<T>{turns[(2 * k - 2) * rest + p], turns[(2 * k - 1) * rest + p]};
        y.re[q + stride * (radix * p + k)] = sum.re;
        y.im[q + stride * (radix * p + k)] = sum.im;
      }
}

template <class T> void run(const Stage& stage, const T* table, Parts<const T> x, Parts<T> y) {
  switch (stage.roots >= 0 ? 0 : stage.radix) {
    case 2: return run_stage<2>(stage, table, x, y);
    case 3: return run_stage<3>(stage, table, x, y);
    case 4: return run_stage<4>(stage, table, x, y);
    case 5: return run_stage<5>(stage, table, x, y);
    case 8: return run_stage<8>(stage, table, x, y);
    default: return run_any_stage(stage, table, x, y);
  }
}

// ---------------------------------------------------------------- rows

/// Parts side by side in memory become parts apart, and back. The inverse is the transform of exchanged parts.
template <class T> void take_apart(const T* __restrict from, T* __restrict re, T* __restrict im, std::int64_t points) {
  for (std::int64_t k = 0; k < points; ++k) {
    re[k] = from[2 * k];
    im[k] = from[2 * k + 1];
  }
}
template <class T>
void put_together(const T* __restrict re, const T* __restrict im, T* __restrict to, std::int64_t points) {
  for (std::int64_t k = 0; k < points; ++k) {
    to[2 * k] = re[k];
    to[2 * k + 1] = im[k];
  }
}

/// The spectrum of n real numbers from that of their pairs as n / 2 complex ones: of the even and the odd numbers it
/// has the half sum and the half difference of z[k] and the conjugate of z[points - k].
template <class T>
void take_pairs_apart(const T* __restrict re, const T* __restrict im, const T* __restrict turns, T* __restrict to,
                      std::int64_t points) {
  to[0] = re[0] + im[0];
  to[1] = 0;
  to[2 * points] = re[0] - im[0];
  to[2 * points + 1] = 0;
  for (std::int64_t k = 1; k < points; ++k) {
    const T even_re = T(0.5) * (re[k] + re[points - k]), even_im = T(0.5) * (im[k] - im[points - k]);
    const T odd_re = T(0.5) * (im[k] + im[points - k]), odd_im = T(0.5) * (re[points - k] - re[k]);
    const T cosine = turns[k], sine = turns[points + k];
    to[2 * k] = even_re + (odd_re * cosine - odd_im * sine);
    to[2 * k + 1] = even_im + (odd_re * sine + odd_im * cosine);
  }
}

/// The stages from `first` on, between two buffers; `from` has the points; gives the one with the result.
template <class T> Parts<T> run_stages(const Transform& t, std::size_t first, Parts<T> from, Parts<T> to) {
  for (std::size_t i = first; i < t.stages.size(); ++i) {
    run<T>(t.stages[i], t.table<T>(), {from.re, from.im}, to);
    std::swap(from, to);
  }
  return from;
}

/// The first stage of points whose parts follow each other; false if its radix has no formulas.
template <class T, bool exchanged> bool begin(const Transform& t, const T* x, Parts<T> y) {
  const PairedPoints<T, exchanged> points{x};
  if (t.stages.empty() || t.stages[0].roots >= 0) return false;
  const Stage& stage = t.stages[0];
  const T* const table = t.table<T>();
  switch (stage.radix) {
    case 2: run_first_stage<2>(stage, table, points, y); break;
    case 3: run_first_stage<3>(stage, table, points, y); break;
    case 4: run_first_stage<4>(stage, table, points, y); break;
    case 5: run_first_stage<5>(stage, table, points, y); break;
    default: run_first_stage<8>(stage, table, points, y);
  }
  return true;
}

/// The transform of one row, parts apart, in one of the buffers.
template <class T> Parts<T> transformed(const Transform& t, const T* x, Parts<T> a, Parts<T> b) {
  const std::int64_t n = t.points;
  if (t.is_real && !t.is_packed) {
    std::memcpy(a.re, x, static_cast<std::size_t>(n) * sizeof(T));
    std::memset(a.im, 0, static_cast<std::size_t>(n) * sizeof(T));
    return run_stages(t, 0, a, b);
  }
  if (t.inverse ? begin<T, true>(t, x, b) : begin<T, false>(t, x, b)) return run_stages(t, 1, b, a);
  take_apart(x, t.inverse ? a.im : a.re, t.inverse ? a.re : a.im, n);
  return run_stages(t, 0, a, b);
}

template <class T> void rows_of(const Transform& t, const T* x, T* y, T* scratch, std::int64_t rows) {
  const std::int64_t n = t.points, part = n + apart;
  const Parts<T> a{scratch, scratch + part}, b{scratch + 2 * part, scratch + 3 * part};
  for (; rows > 0; --rows, x += t.given, y += t.made) {
    const Parts<T> result = transformed(t, x, a, b);
    if (t.is_packed) take_pairs_apart(result.re, result.im, t.table<T>() + t.real_turns, y, n);
    else put_together(t.inverse ? result.im : result.re, t.inverse ? result.re : result.im, y, t.made / 2);
  }
}

}  // namespace
}  // namespace gradus::library::fourier
