/// Arithmetic of depthwise convolutions: neighbours among channels are vectors, every product is one fused step.
#pragma once
#include <immintrin.h>
#include <type_traits>
#include "gradus/backend/program.h"

namespace gradus::library {

/// Integers wrap around, as unsigned ones do.
template <class T> struct ComputedAs {
  using type = std::make_unsigned_t<T>;
};
template <> struct ComputedAs<float> {
  using type = float;
};
template <> struct ComputedAs<double> {
  using type = double;
};

template <class E> struct VectorOf {
  typedef E type __attribute__((vector_size(32), aligned(alignof(E)), may_alias));
};
template <class E> constexpr std::int64_t lanes_of = 32 / sizeof(E);

/// The element type is named, since a deduced vector type forgets that it lies anywhere.
template <class E>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void add_product(typename VectorOf<E>::type& sum,
                                                                        const typename VectorOf<E>::type& a,
                                                                        const typename VectorOf<E>::type& b) {
  using V = typename VectorOf<E>::type;
  if constexpr (std::is_same_v<E, float>) sum = V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sum)));
  else if constexpr (std::is_same_v<E, double>) sum = V(_mm256_fmadd_pd(__m256d(a), __m256d(b), __m256d(sum)));
  else sum = a * b + sum;
}

template <class E> [[gnu::target("fma"), gnu::always_inline]] inline void add_single(E& sum, E a, E b) {
  if constexpr (std::is_same_v<E, float>) sum = __builtin_fmaf(a, b, sum);
  else if constexpr (std::is_same_v<E, double>) sum = __builtin_fma(a, b, sum);
  else sum += a * b;
}

template <class E> const E* pointer(const KernelArguments* arguments, int slot) {
  return static_cast<const E*>(arguments->slots[slot]);
}
template <class E> E* target_pointer(const KernelArguments* arguments, int slot) {
  return static_cast<E*>(arguments->slots[slot]);
}

}  // namespace gradus::library
