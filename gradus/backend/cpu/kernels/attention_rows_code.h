/// Functions of rows of attention, compiled for each instruction set (vector_bytes.h). Neighbours in memory are
/// queries, and each has a lane of its own, so the bits do not depend on the vectors' length.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif
#include <iterator>
#include <type_traits>
#include "gradus/backend/cpu/kernels/attention_rows.h"
#include "gradus/backend/cpu/kernels/vector_bytes.h"

namespace gradus::library::attention {
namespace {

constexpr std::int64_t lanes = 16, row_run = 512, row_block = 32768;  // constants of a row reduction

template <class T> struct Exponential;
template <> struct Exponential<float> {
  using Bits = std::uint32_t;  // which wrap
  static constexpr int mantissa = 23;
  static constexpr Bits one = 0x3f800000;
  static constexpr float low = -88, round = 12582912.0f;
  static constexpr float ln2_high = static_cast<float>(0.693147182464599609375),
                         ln2_low = static_cast<float>(-1.904654299957768e-9);
  static constexpr double terms[] = {0.0001990659133, 0.001393373337, 0.008333287511,
                                     0.04166646417,   0.1666666675,   0.5000000014};
};
template <> struct Exponential<double> {
  using Bits = std::uint64_t;  // which wrap
  static constexpr int mantissa = 52;
  static constexpr Bits one = 0x3ff0000000000000;
  static constexpr double low = -709, round = 6755399441055744.0;
  static constexpr double ln2_high = 0.693147180559945286227, ln2_low = 2.3190468138462996e-17;
  static constexpr double terms[] = {2.09212070756161889e-9,
                                     2.51053134845733862e-8,
                                     2.75572540665913157e-7,
                                     2.7557255167956542e-6,
                                     0.0000248015873461200463,
                                     0.000198412698750041241,
                                     0.00138888888888749244,
                                     0.0083333333333260825,
                                     0.041666666666666683,
                                     0.16666666666666671,
                                     0.5};
};

/// Vectors written out: the loops below are too much for the compiler to find them itself.
template <class T> using Vector [[gnu::vector_size(vector_bytes), gnu::may_alias]] = T;
template <class T> constexpr std::int64_t vector_lanes = vector_bytes / sizeof(T);

template <class T> [[gnu::always_inline]] inline Vector<T> multiply_add(Vector<T> a, Vector<T> b, Vector<T> c) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>) return _mm512_fmadd_ps(a, b, c);
  else return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) return _mm256_fmadd_ps(a, b, c);
  else return _mm256_fmadd_pd(a, b, c);
#else
  if constexpr (std::is_same_v<T, float>) return Vector<T>(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
  else return Vector<T>(vfmaq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
#endif
}

/// a > b ? a : b.
template <class T> [[gnu::always_inline]] inline Vector<T> larger(Vector<T> a, Vector<T> b) {
#ifdef __AVX512F__
  constexpr __mmask16 every = 0xffff;  // GCC 12 warns of _mm512_max_ps's undefined lanes
  if constexpr (std::is_same_v<T, float>) return _mm512_maskz_max_ps(every, a, b);
  else return _mm512_maskz_max_pd(0xff, a, b);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) return _mm256_max_ps(a, b);
  else return _mm256_max_pd(a, b);
#else
  return a > b ? a : b;  // an instruction for maxima would make NaN of one NaN
#endif
}

template <class T> [[gnu::always_inline]] inline Vector<T> all(double number) {
  return Vector<T>{} + static_cast<T>(number);
}

/// exp(x) for x <= 0, instruction for instruction as scalar::exp records it (scalar/formulas_exp.cpp), so that the bits
/// agree. The part about overflow is left out.
template <class T> [[gnu::always_inline]] inline Vector<T> exponential(Vector<T> x) {
  using E = Exponential<T>;
  using Integers [[gnu::vector_size(vector_bytes)]] = typename E::Bits;
  x = larger<T>(all<T>(E::low), x);
  const Vector<T> rounded = multiply_add<T>(x, all<T>(1.44269504088896340736), all<T>(E::round));
  const Vector<T> n = rounded - E::round;
  const Vector<T> first = multiply_add<T>(n, all<T>(-E::ln2_high), x), second = n * -E::ln2_low;
  const Vector<T> r = first + second, r_low = (first - r) + second;
  const auto power = reinterpret_cast<Vector<T>>((reinterpret_cast<Integers>(rounded) << E::mantissa) + E::one);
  Vector<T> polynomial = all<T>(E::terms[0]);
  for (std::size_t i = 1; i < sizeof E::terms / sizeof E::terms[0]; ++i)
    polynomial = multiply_add<T>(polynomial, r, all<T>(E::terms[i]));
  const Vector<T> sum = r + T(1), lost = ((T(1) - sum) + r) + r_low;
  return (sum + multiply_add<T>(r * r, polynomial, lost)) * power;
}

/// One number for each query of a block. Rows of scores are as long; numbers of queries that a block lacks are computed
/// with and never read.
template <class T> struct PerQuery {
  static constexpr std::int64_t vectors = block_queries / vector_lanes<T>;
  Vector<T> of[std::size_t{vectors}];
};
/// The lanes of a sum along keys: those of key j are j modulo 16.
template <class T> struct Sums {
  PerQuery<T> lane[lanes];
  void clear() {
    for (PerQuery<T>& each : lane) each = {};
  }
  void add(std::int64_t l, const PerQuery<T>& x) {
    for (std::int64_t q = 0; q < PerQuery<T>::vectors; ++q) lane[l].of[q] += x.of[q];
  }
  void add(const Sums& run) {
    for (std::int64_t l = 0; l < lanes; ++l) add(l, run.lane[l]);
  }
  PerQuery<T> combined() {
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t l = 0; l < half; ++l) add(l, lane[l + half]);
    return lane[0];
  }
};

/// bf16 to nearest even, of numbers that are not subnormal.
[[gnu::always_inline]] inline void store_rounded(Vector<float> x, std::uint16_t* target) {
  using Narrow [[gnu::vector_size(vector_bytes / 2), gnu::aligned(2), gnu::may_alias]] = std::uint16_t;
#ifdef __AVX512BF16__
  *reinterpret_cast<Narrow*>(target) = reinterpret_cast<Narrow>(_mm512_cvtneps_pbh(x));
#else
  using Integers [[gnu::vector_size(vector_bytes)]] = std::uint32_t;
  const auto bits = reinterpret_cast<Integers>(x);
  const Integers rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, quiet = (bits >> 16) | 0x40;
  *reinterpret_cast<Narrow*>(target) = __builtin_convertvector(x == x ? rounded : quiet, Narrow);
#endif
}
/// Calls visit(j, first) for each key j of [begin, end). Queries before vector `first` do not see key j; query q sees
/// the keys up to diagonal + q. `first` is known to be 0 for most keys.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_each_key(std::int64_t begin, std::int64_t end, std::int64_t diagonal,
                                                const Visit& visit) {
  const std::int64_t near = diagonal + vector_lanes<T>, seen_by_all = end < near ? end : near;
  std::int64_t j = begin;
  for (; j < seen_by_all; ++j) visit(j, std::integral_constant<std::int64_t, 0>());
  for (; j < end; ++j) {
    const std::int64_t first = (j - diagonal) / vector_lanes<T>;
    visit(j, first < PerQuery<T>::vectors ? first : PerQuery<T>::vectors);
  }
}
template <class T, class Visit>
[[gnu::always_inline]] inline void for_each_key(std::int64_t keys, std::int64_t diagonal, const Visit& visit) {
  for_each_key<T>(0, keys, diagonal, visit);
}

/// The sum along keys for each query, in the order of a row reduction. `visit(lane, j, first)` adds the terms of key j.
/// The results of blocks form one run: up to 512 blocks, 16,777,216 keys.
template <class T, class Visit>
[[gnu::always_inline]] inline PerQuery<T> sum_along_keys(std::int64_t keys, std::int64_t diagonal, const Visit& visit) {
  Sums<T> run, runs, blocks;
  for (std::int64_t begin = 0; begin < keys; begin += row_run) {
    const std::int64_t end = begin + row_run < keys ? begin + row_run : keys;
    run.clear();
    for_each_key<T>(begin, end, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline)) {
      visit(run.lane[j % lanes], j, first);
    });
    if (keys <= row_run) return run.combined();
    if (begin % row_block == 0) runs = run;
    else runs.add(run);
    if (end % row_block != 0 && end != keys) continue;
    const PerQuery<T> block = runs.combined();
    if (keys <= row_block) return block;
    if (end == row_block) blocks.clear();
    blocks.add((end - 1) / row_block % lanes, block);
    if (end == keys) return blocks.combined();
  }
  return {};
}

/// Row j of `rows`; `rounds`: rows of bf16 take the place of those of T; row j and those before it are read no more.
template <class T>
[[gnu::always_inline]] inline void store_row(const PerQuery<T>& row, PerQuery<T>* rows, std::int64_t j, bool rounds) {
  if constexpr (std::is_same_v<T, float>)
    if (rounds) {
      auto* target = reinterpret_cast<std::uint16_t*>(rows) + j * block_queries;
      for (std::int64_t q = 0; q < PerQuery<T>::vectors; ++q) store_rounded(row.of[q], target + q * vector_lanes<T>);
      return;
    }
  rows[j] = row;
}

template <class T, bool narrow>
void soften(T* of_keys, std::int64_t keys, std::int64_t diagonal, T factor, bool rounds) {
  auto* const scores = reinterpret_cast<PerQuery<T>*>(of_keys);
  constexpr std::int64_t vectors = PerQuery<T>::vectors;
  PerQuery<T> most;
  for (Vector<T>& x : most.of) x = Vector<T>{} - static_cast<T>(__builtin_inf());
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline)) {
    for (std::int64_t q = first; q < vectors; ++q) most.of[q] = larger<T>(scores[j].of[q], most.of[q]);
  });
  for (Vector<T>& x : most.of)
    if constexpr (narrow) x *= factor;  // which keeps their order
  const auto exponentials = [&](PerQuery<T>& lane, std::int64_t j, auto first) __attribute__((always_inline)) {
    for (std::int64_t q = first; q < vectors; ++q) {
      Vector<T> x = scores[j].of[q];
      if constexpr (narrow) x *= factor;
      scores[j].of[q] = exponential<T>(x - most.of[q]);
      lane.of[q] += scores[j].of[q];
    }
  };
  PerQuery<T> sum = sum_along_keys<T>(keys, diagonal, exponentials);
  for (Vector<T>& x : sum.of)
    if constexpr (narrow) x = T(1) / x;
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline)) {
    PerQuery<T> row = {};
    for (std::int64_t q = first; q < vectors; ++q)
      row.of[q] = narrow ? scores[j].of[q] * sum.of[q] : scores[j].of[q] / sum.of[q];
    store_row<T>(row, scores, j, rounds);
  });
}

/// The lanes of a sum along a row: those of place j are j modulo 16.
template <class T> struct RowSums {
  Vector<T> of[lanes / vector_lanes<T>] = {};
  void add(const RowSums& other) {
    for (std::size_t v = 0; v < std::size(of); ++v) of[v] += other.of[v];
  }
};
template <class T> T combined(const T* given) {
  T lane[lanes];
  for (std::int64_t l = 0; l < lanes; ++l) lane[l] = given[l];
  for (std::int64_t half = lanes / 2; half > 0; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}
template <class T> T combined(const RowSums<T>& sums) { return combined(reinterpret_cast<const T*>(sums.of)); }

/// The sum along a row in the order of a row reduction. visit(sums, j) adds the terms of 16 places from j on.
template <class T, class Visit> [[gnu::always_inline]] inline T sum_along_row(std::int64_t n, const Visit& visit) {
  RowSums<T> runs;
  T blocks[lanes] = {};
  for (std::int64_t begin = 0; begin < n; begin += row_run) {
    const std::int64_t end = begin + row_run < n ? begin + row_run : n;
    RowSums<T> run;
    for (std::int64_t j = begin; j < end; j += lanes) visit(run, j);
    if (n <= row_run) return combined(run);
    if (begin % row_block == 0) runs = run;
    else runs.add(run);
    if (end % row_block != 0 && end != n) continue;
    const T block = combined(runs);
    if (n <= row_block) return block;
    blocks[(end - 1) / row_block % lanes] += block;
  }
  return combined(blocks);
}

template <class T> void soften_row(T* scores, std::int64_t keys) {
  auto* const rows = reinterpret_cast<Vector<T>*>(scores);
  constexpr std::int64_t vectors = lanes / vector_lanes<T>;
  const std::int64_t past = (keys + lanes - 1) / lanes * lanes;
  for (std::int64_t j = keys; j < past; ++j) scores[j] = -static_cast<T>(__builtin_inf());
  Vector<T> mosts = Vector<T>{} - static_cast<T>(__builtin_inf());
  for (std::int64_t v = 0; v < past / vector_lanes<T>; ++v) mosts = larger<T>(rows[v], mosts);
  T most = mosts[0];
  for (std::int64_t l = 1; l < vector_lanes<T>; ++l) most = mosts[l] > most ? mosts[l] : most;
  const auto exponentials = [&](RowSums<T>& sums, std::int64_t j) __attribute__((always_inline)) {
    Vector<T>* const terms = rows + j / vector_lanes<T>;
    for (std::int64_t v = 0; v < vectors; ++v) terms[v] = exponential<T>(terms[v] - most);
    for (std::int64_t i = keys; i < j + lanes; ++i) scores[i] = 0;  // past the last key
    for (std::int64_t v = 0; v < vectors; ++v) sums.of[v] += terms[v];
  };
  const T sum = sum_along_row<T>(keys, exponentials);
  for (std::int64_t v = 0; v < past / vector_lanes<T>; ++v) rows[v] /= sum;
}

template <class T, bool narrow>
void differentiate(T* weights_of_keys, T* gradients_of_keys, std::int64_t keys, std::int64_t diagonal, T factor) {
  auto* const weights = reinterpret_cast<PerQuery<T>*>(weights_of_keys);
  auto* const gradients = reinterpret_cast<PerQuery<T>*>(gradients_of_keys);
  constexpr std::int64_t vectors = PerQuery<T>::vectors;
  const auto products = [&](PerQuery<T>& lane, std::int64_t j, auto first) __attribute__((always_inline)) {
    for (std::int64_t q = first; q < vectors; ++q) lane.of[q] += gradients[j].of[q] * weights[j].of[q];
  };
  const PerQuery<T> sum = sum_along_keys<T>(keys, diagonal, products);
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline)) {
    PerQuery<T> row = {};
    for (std::int64_t q = first; q < vectors; ++q) {
      row.of[q] = weights[j].of[q] * (gradients[j].of[q] - sum.of[q]);
      if constexpr (narrow) row.of[q] *= factor;
    }
    store_row<T>(row, gradients, j, narrow);
    if constexpr (narrow) store_row<T>(PerQuery<T>(weights[j]), weights, j, true);
  });
}

void round_row(const float* row, std::int64_t width, std::uint16_t* target) {
  using Loaded [[gnu::vector_size(vector_bytes), gnu::aligned(4), gnu::may_alias]] = float;
  std::int64_t w = 0;
  for (; w + vector_lanes<float> <= width; w += vector_lanes<float>)
    store_rounded(*reinterpret_cast<const Loaded*>(row + w), target + w);
  if (w == width) return;
  float last[vector_lanes<float>] = {};
  std::uint16_t rounded[vector_lanes<float>];
  for (std::int64_t i = w; i < width; ++i) last[i - w] = row[i];
  store_rounded(*reinterpret_cast<const Loaded*>(last), rounded);
  for (std::int64_t i = w; i < width; ++i) target[i] = rounded[i - w];
}

constexpr RowFunctions functions{soften<float, false>,
                                 soften<double, false>,
                                 soften<float, true>,
                                 soften_row<float>,
                                 soften_row<double>,
                                 differentiate<float, false>,
                                 differentiate<double, false>,
                                 differentiate<float, true>,
                                 round_row};

}  // namespace
}  // namespace gradus::library::attention
