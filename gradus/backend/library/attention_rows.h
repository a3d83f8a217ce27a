/// Rows of scores, weights and their gradients: [keys, block_queries], so that neighbours in memory are queries, and
/// maxima and sums of all queries of a block advance together. Sums are in the contract's order for rows of up to
/// 32,768 keys.
#pragma once
#include <immintrin.h>
#include <limits>
#include <type_traits>
#include "gradus/backend/library/attention.h"

namespace gradus::library::attention {

constexpr std::int64_t lanes = 16;  // of a row reduction

template <class T> struct Exponential;
template <> struct Exponential<float> {
  using Bits = std::uint32_t;  // which wrap
  static constexpr int mantissa = 23;
  static constexpr Bits one = 0x3f800000;
  static constexpr float low = -88, high = 89, round = 12582912.0f, limit = 127;
  static constexpr float ln2_high = static_cast<float>(0.693147182464599609375),
                         ln2_low = static_cast<float>(-1.904654299957768e-9);
  static constexpr double terms[] = {0.0001990659133, 0.001393373337, 0.008333287511,
                                     0.04166646417,   0.1666666675,   0.5000000014};
};
template <> struct Exponential<double> {
  using Bits = std::uint64_t;  // which wrap
  static constexpr int mantissa = 52;
  static constexpr Bits one = 0x3ff0000000000000;
  static constexpr double low = -709, high = 710, round = 6755399441055744.0, limit = 1023;
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
template <class T> using Vector [[gnu::vector_size(32), gnu::may_alias]] = T;
template <class T> constexpr std::int64_t vector_lanes = 32 / sizeof(T);

template <class T>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline Vector<T> multiply_add(Vector<T> a, Vector<T> b, Vector<T> c) {
  if constexpr (std::is_same_v<T, float>) return _mm256_fmadd_ps(a, b, c);
  else return _mm256_fmadd_pd(a, b, c);
}

template <class T> [[gnu::target("avx2,fma"), gnu::always_inline]] inline Vector<T> all(double number) {
  return Vector<T>{} + static_cast<T>(number);
}

/// Instruction for instruction what scalar::exp records (graph/formulas_exp.cpp), so that the bits agree.
template <class T> [[gnu::target("avx2,fma"), gnu::always_inline]] inline Vector<T> exponential(Vector<T> x) {
  using E = Exponential<T>;
  using Integers [[gnu::vector_size(32)]] = typename E::Bits;
  x = x < all<T>(E::low) ? all<T>(E::low) : x;
  x = x > all<T>(E::high) ? all<T>(E::high) : x;
  const Vector<T> rounded = multiply_add<T>(x, all<T>(1.44269504088896340736), all<T>(E::round));
  const Vector<T> n = rounded - E::round;
  const Vector<T> first = multiply_add<T>(n, all<T>(-E::ln2_high), x), second = n * -E::ln2_low;
  const Vector<T> r = first + second, r_low = (first - r) + second;
  const Vector<T> last = all<T>(E::round + E::limit);
  const auto bits = reinterpret_cast<Integers>(rounded > last ? last : rounded);
  const auto power = reinterpret_cast<Vector<T>>((bits << E::mantissa) + E::one);
  Vector<T> polynomial = all<T>(E::terms[0]);
  for (std::size_t i = 1; i < std::size(E::terms); ++i)
    polynomial = multiply_add<T>(polynomial, r, all<T>(E::terms[i]));
  const Vector<T> sum = r + T(1), lost = ((T(1) - sum) + r) + r_low;
  const Vector<T> y = (sum + multiply_add<T>(r * r, polynomial, lost)) * power;
  return rounded > last ? y + y : y;
}

/// One number for each query of a block. Rows of scores are as long, and what stands there for queries that a block
/// lacks is computed with and never read.
template <class T> struct PerQuery {
  static constexpr std::int64_t vectors = block_queries / vector_lanes<T>;
  Vector<T> of[vectors];
};
/// The lanes of a sum along keys: those of key j are j modulo 16.
template <class T> struct Sums {
  PerQuery<T> lane[lanes] = {};
  [[gnu::target("avx2,fma")]] void combine() {
    for (std::int64_t half = lanes / 2; half > 0; half /= 2)
      for (std::int64_t l = 0; l < half; ++l)
        for (std::int64_t q = 0; q < PerQuery<T>::vectors; ++q) lane[l].of[q] += lane[l + half].of[q];
  }
};

/// bf16 to nearest even, of numbers that are not subnormal.
[[gnu::target("avx2,fma"), gnu::always_inline]] inline __m256i rounded_bits(Vector<float> x) {
  using Integers [[gnu::vector_size(32)]] = std::uint32_t;
  const auto bits = reinterpret_cast<Integers>(x);
  const Integers rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16, not_a_number = Integers{} + 0x7fc0;
  return reinterpret_cast<__m256i>(x == x ? rounded : not_a_number);
}
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void store_rounded(const Vector<float>* pair,
                                                                          std::uint16_t* target) {
  const __m256i packed = _mm256_packus_epi32(rounded_bits(pair[0]), rounded_bits(pair[1]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm256_permute4x64_epi64(packed, 0xd8));
}
/// visit(j, first) for each key j, of which the queries before vector `first` see nothing, where query q sees the keys
/// up to diagonal + q. Of most keys `first` is known to be 0.
template <class T, class Visit>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void for_each_key(std::int64_t keys, std::int64_t diagonal,
                                                                         const Visit& visit) {
  const std::int64_t seen_by_all = std::min(keys, diagonal + vector_lanes<T>);
  for (std::int64_t j = 0; j < seen_by_all; ++j) visit(j, std::integral_constant<std::int64_t, 0>());
  for (std::int64_t j = seen_by_all; j < keys; ++j)
    visit(j, std::min(PerQuery<T>::vectors, (j - diagonal) / vector_lanes<T>));
}

/// Row j of `rows`; `rounds`: of rows of bf16 that take the place of those of T, of which row j and those before it are
/// read no more.
template <class T>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void store_row(const PerQuery<T>& row, PerQuery<T>* rows,
                                                                      std::int64_t j, bool rounds) {
  if constexpr (std::is_same_v<T, float>)
    if (rounds) {
      auto* target = reinterpret_cast<std::uint16_t*>(rows) + j * block_queries;
      for (std::int64_t q = 0; q < PerQuery<T>::vectors; q += 2)
        store_rounded(&row.of[q], target + q * vector_lanes<T>);
      return;
    }
  rows[j] = row;
}

/// Of [keys, block_queries] scores: their exponentials relative to each query's largest, divided by the sum of these.
/// `narrow`: first they are multiplied by `factor`, which is above 0, and instead of dividing multiplied by the sum's
/// reciprocal. `rounds`: the results become rows of bf16.
template <class T, bool narrow = false>
[[gnu::target("avx2,fma")]] void soften(PerQuery<T>* scores, std::int64_t keys, std::int64_t diagonal, T factor = 1,
                                        bool rounds = false) {
  constexpr std::int64_t vectors = PerQuery<T>::vectors;
  PerQuery<T> most;
  for (Vector<T>& x : most.of) x = Vector<T>{} - std::numeric_limits<T>::infinity();
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline, target("avx2,fma"))) {
    for (std::int64_t q = first; q < vectors; ++q)
      most.of[q] = scores[j].of[q] > most.of[q] ? scores[j].of[q] : most.of[q];
  });
  for (Vector<T>& x : most.of)
    if constexpr (narrow) x *= factor;  // which keeps their order
  Sums<T> sums;
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline, target("avx2,fma"))) {
    for (std::int64_t q = first; q < vectors; ++q) {
      Vector<T> x = scores[j].of[q];
      if constexpr (narrow) x *= factor;
      scores[j].of[q] = exponential<T>(x - most.of[q]);
      sums.lane[j % lanes].of[q] += scores[j].of[q];
    }
  });
  sums.combine();
  PerQuery<T>& sum = sums.lane[0];
  for (Vector<T>& x : sum.of)
    if constexpr (narrow) x = T(1) / x;
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline, target("avx2,fma"))) {
    PerQuery<T> row = {};
    for (std::int64_t q = first; q < vectors; ++q)
      row.of[q] = narrow ? scores[j].of[q] * sum.of[q] : scores[j].of[q] / sum.of[q];
    store_row<T>(row, scores, j, rounds);
  });
}

/// The gradients by weights become those by scores: p (dp - sum(dp p)). `narrow`: times the factor, and they and the
/// weights become rows of bf16.
template <class T, bool narrow = false>
[[gnu::target("avx2,fma")]] void differentiate(PerQuery<T>* weights, PerQuery<T>* gradients, std::int64_t keys,
                                               std::int64_t diagonal, T factor = 1) {
  constexpr std::int64_t vectors = PerQuery<T>::vectors;
  Sums<T> sums;
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline, target("avx2,fma"))) {
    for (std::int64_t q = first; q < vectors; ++q) sums.lane[j % lanes].of[q] += gradients[j].of[q] * weights[j].of[q];
  });
  sums.combine();
  const PerQuery<T> sum = sums.lane[0];
  for_each_key<T>(keys, diagonal, [&](std::int64_t j, auto first) __attribute__((always_inline, target("avx2,fma"))) {
    PerQuery<T> row = {};
    for (std::int64_t q = first; q < vectors; ++q) {
      row.of[q] = weights[j].of[q] * (gradients[j].of[q] - sum.of[q]);
      if constexpr (narrow) row.of[q] *= factor;
    }
    store_row<T>(row, gradients, j, narrow);
    if constexpr (narrow) store_row<T>(PerQuery<T>(weights[j]), weights, j, true);
  });
}

}  // namespace gradus::library::attention
