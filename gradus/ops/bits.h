/// Bitwise ops on integers. Operands broadcast as in NumPy and must agree in dtype. Results have no gradient.
#pragma once
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

/// a & b, bit by bit.
Tensor bitwise_and(const NumberOrTensor& a, const NumberOrTensor& b);
/// a | b, bit by bit.
Tensor bitwise_or(const NumberOrTensor& a, const NumberOrTensor& b);
/// a ^ b, bit by bit.
Tensor bitwise_xor(const NumberOrTensor& a, const NumberOrTensor& b);
/// x with every bit inverted.
Tensor invert(const Tensor& x);
/// x * 2^by, modulo 2^width, with the width of the dtype in bits. 0 if `by` is at least the width, or negative.
Tensor left_shift(const NumberOrTensor& x, const NumberOrTensor& by);
/// floor(x / 2^by): an arithmetic shift, which fills with the sign. If `by` is at least the width, or negative, all
/// bits are the sign's; 0 for unsigned integers.
Tensor right_shift(const NumberOrTensor& x, const NumberOrTensor& by);
/// Logical and of booleans (as logical_and), bitwise and of integers: (a < b) & (c < d). In contrast, a && b is C++'s
/// operator, which reads the value of one boolean.
Tensor operator&(const Tensor& a, const Tensor& b);
/// Logical or of booleans, bitwise or of integers: (a < b) | (c < d).
Tensor operator|(const Tensor& a, const Tensor& b);
/// Logical xor of booleans, bitwise xor of integers.
Tensor operator^(const Tensor& a, const Tensor& b);
/// Logical not of booleans, bitwise not of integers.
Tensor operator~(const Tensor& x);
/// Number of bits that are set, as u8.
Tensor population_count(const Tensor& x);

}  // namespace gradus
