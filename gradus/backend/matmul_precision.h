/// How exact products of f32 have to be.
#pragma once
#include <cstdint>

namespace gradus {

/// float32: each element is one chain of fma in the order of k (matmul). bfloat16_6x: it may be the sum of six products
/// of bf16, into three of which each number is divided, where that is faster: on processors with AMX; everywhere else,
/// of other dtypes, in convolutions and where attention is computed in blocks nothing changes. It is then off from the
/// exact sum by no more than (3 k / 16 + 28) 2^-24 times the sum of |a b|, which is less than that of f32's own chains
/// unless k is small; what is multiplied with an infinity is NaN, and of numbers below 2^-100 bits are lost. Its bits
/// depend on the element's row and column alone, and on no number of threads; but they are others than those of
/// float32, so whether the pass "attention" is disabled may change results.
enum class MatmulPrecision : std::uint8_t { float32, bfloat16_6x };

/// For the whole process, float32 at first. To be set before the first product is computed, so that all of a program's
/// are of one kind: InvalidArgument if another one has been in use.
void set_default_matmul_precision(MatmulPrecision precision);
MatmulPrecision default_matmul_precision();

}  // namespace gradus
