/// Rows of scores, weights and their gradients: [keys, block_queries], so that neighbours in memory are queries, and
/// maxima and sums of all queries of a block advance together. Sums follow the contract's order of rows. Rows of scores
/// lie at multiples of 64 bytes; places for missing queries of a block are computed but never read. Query q of a block
/// sees the keys up to diagonal + q.
#pragma once
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/kernels/attention.h"

namespace gradus::library::attention {

/// The functions of rows for one instruction set. All give the same bits.
struct RowFunctions {
  /// Softmax of scores: their exponentials relative to each query's largest, divided by the sum of these. Narrow:
  /// scores are first multiplied by `factor`, which is above 0; and exponentials are multiplied by the sum's reciprocal
  /// instead of divided. `rounds`: the results become rows of bf16, where those of floats began.
  template <class T>
  using Soften = void (*)(T* scores, std::int64_t keys, std::int64_t diagonal, T factor, bool rounds);
  Soften<float> soften;
  Soften<double> soften_double;
  Soften<float> soften_narrow;
  /// Softmax of the scores of one query, which follow each other. Behind them there is room for 16.
  template <class T> using SoftenRow = void (*)(T* scores, std::int64_t keys);
  SoftenRow<float> soften_row;
  SoftenRow<double> soften_row_double;
  /// The gradients by weights become those by scores: p (dp - sum(dp p)). Narrow: times the factor, and they and the
  /// weights become rows of bf16.
  template <class T>
  using Differentiate = void (*)(T* weights, T* gradients, std::int64_t keys, std::int64_t diagonal, T factor);
  Differentiate<float> differentiate;
  Differentiate<double> differentiate_double;
  Differentiate<float> differentiate_narrow;
  /// To bf16.
  void (*round_row)(const float* row, std::int64_t width, std::uint16_t* target);
};

/// By vectors of 32 and of 64 bytes, and where an instruction rounds to bf16; by vectors of 16 bytes.
extern const RowFunctions rows_by_avx2, rows_by_avx512, rows_by_avx512_bf16, rows_by_neon;

inline const RowFunctions& row_functions() {
#if defined(__x86_64__)
  if (cpu_backend::processor().kernel_vector_bytes == 32) return rows_by_avx2;
  return cpu_backend::has_pair_products() ? rows_by_avx512_bf16 : rows_by_avx512;
#else
  return rows_by_neon;
#endif
}

}  // namespace gradus::library::attention
