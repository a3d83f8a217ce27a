/// Vectors of the instruction set that the including file is compiled for, whose lanes round as elements do. For the
/// `*_code.h` of factorizations alone (vector_bytes.h).
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif
#include <cstdint>
#include <type_traits>
#include "gradus/backend/cpu/kernels/vector_bytes.h"

namespace gradus::library::factors {
namespace {

/// A vector of so many bytes; of 0 bytes a single element.
template <class T, int bytes> struct Lanes {
  typedef T type __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
  static constexpr std::int64_t count = bytes / sizeof(T);
};
template <class T> struct Lanes<T, 0> {
  using type = T;
  static constexpr std::int64_t count = 1;
};
template <class T, int bytes> using Of = typename Lanes<T, bytes>::type;

template <class T, int bytes> [[gnu::always_inline]] inline Of<T, bytes>& at(T* x) {
  return *reinterpret_cast<Of<T, bytes>*>(x);
}
template <class T, int bytes> [[gnu::always_inline]] inline const Of<T, bytes>& at(const T* x) {
  return *reinterpret_cast<const Of<T, bytes>*>(x);
}

/// Not by a function of vectors, which would forget that these lie anywhere.
template <class T, int bytes> [[gnu::always_inline]] inline void exchange(T* x, T* y) {
  const Of<T, bytes> kept = at<T, bytes>(x);
  at<T, bytes>(x) = at<T, bytes>(y);
  at<T, bytes>(y) = kept;
}

template <class T, int bytes> [[gnu::always_inline]] inline Of<T, bytes> spread(T x) {
  using V = Of<T, bytes>;
  constexpr bool is_float = std::is_same_v<T, float>;
  if constexpr (bytes == 0) return x;
#ifdef __AVX512F__
  else if constexpr (bytes == 64 && is_float) return V(_mm512_set1_ps(x));
  else if constexpr (bytes == 64) return V(_mm512_set1_pd(x));
#endif
#ifdef __AVX2__
  else if constexpr (bytes == 32 && is_float) return V(_mm256_set1_ps(x));
  else if constexpr (bytes == 32) return V(_mm256_set1_pd(x));
  else if constexpr (is_float) return V(_mm_set1_ps(x));
  else return V(_mm_set1_pd(x));
#else
  else if constexpr (is_float) return V(vdupq_n_f32(x));
  else return V(vdupq_n_f64(x));
#endif
}

/// sum -= a * b, rounded once.
template <class T, int bytes>
[[gnu::always_inline]] inline void subtract_product(Of<T, bytes>& sum, const Of<T, bytes>& a, const Of<T, bytes>& b) {
  using V = Of<T, bytes>;
  constexpr bool is_float = std::is_same_v<T, float>;
  if constexpr (bytes == 0 && is_float) sum = __builtin_fmaf(-a, b, sum);
  else if constexpr (bytes == 0) sum = __builtin_fma(-a, b, sum);
#ifdef __AVX512F__
  else if constexpr (bytes == 64 && is_float) sum = V(_mm512_fnmadd_ps(__m512(a), __m512(b), __m512(sum)));
  else if constexpr (bytes == 64) sum = V(_mm512_fnmadd_pd(__m512d(a), __m512d(b), __m512d(sum)));
#endif
#ifdef __AVX2__
  else if constexpr (bytes == 32 && is_float) sum = V(_mm256_fnmadd_ps(__m256(a), __m256(b), __m256(sum)));
  else if constexpr (bytes == 32) sum = V(_mm256_fnmadd_pd(__m256d(a), __m256d(b), __m256d(sum)));
  else if constexpr (is_float) sum = V(_mm_fnmadd_ps(__m128(a), __m128(b), __m128(sum)));
  else sum = V(_mm_fnmadd_pd(__m128d(a), __m128d(b), __m128d(sum)));
#else
  else if constexpr (is_float) sum = V(vfmsq_f32(float32x4_t(sum), float32x4_t(a), float32x4_t(b)));
  else sum = V(vfmsq_f64(float64x2_t(sum), float64x2_t(a), float64x2_t(b)));
#endif
}

/// A lane a bit: where a and b are equal.
template <class T>
[[gnu::always_inline]] inline unsigned equal_lanes(const Of<T, vector_bytes>& a, const Of<T, vector_bytes>& b) {
  [[maybe_unused]] constexpr bool is_float = std::is_same_v<T, float>;
#ifdef __AVX512F__
  if constexpr (is_float) return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_EQ_OQ);
  else return _mm512_cmp_pd_mask(__m512d(a), __m512d(b), _CMP_EQ_OQ);
#elif defined(__AVX2__)
  if constexpr (is_float)
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_EQ_OQ)));
  else return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(__m256d(a), __m256d(b), _CMP_EQ_OQ)));
#else
  unsigned lanes_of_equals = 0;
  for (int i = 0; i < Lanes<T, vector_bytes>::count; ++i) lanes_of_equals |= (a[i] == b[i] ? 1U : 0U) << i;
  return lanes_of_equals;
#endif
}

template <class T> constexpr std::int64_t lanes = Lanes<T, vector_bytes>::count;

/// sum += a * b, rounded once.
template <class T, int bytes>
[[gnu::always_inline]] inline void add_product(Of<T, bytes>& sum, const Of<T, bytes>& a, const Of<T, bytes>& b) {
  using V = Of<T, bytes>;
  constexpr bool is_float = std::is_same_v<T, float>;
  static_assert(bytes == vector_bytes);
#ifdef __AVX512F__
  if constexpr (is_float) sum = V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(sum)));
  else sum = V(_mm512_fmadd_pd(__m512d(a), __m512d(b), __m512d(sum)));
#elif defined(__AVX2__)
  if constexpr (is_float) sum = V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sum)));
  else sum = V(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(sum)));
#else
  if constexpr (is_float) sum = V(vfmaq_f32(float32x4_t(sum), float32x4_t(a), float32x4_t(b)));
  else sum = V(vfmaq_f64(float64x2_t(sum), float64x2_t(a), float64x2_t(b)));
#endif
}

}  // namespace
}  // namespace gradus::library::factors
