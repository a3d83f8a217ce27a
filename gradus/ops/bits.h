/// Bits of integers. Operands broadcast as in NumPy and must agree in dtype; results have no gradient.
#pragma once
#include "gradus/ops/number_or_tensor.h"

namespace gradus {

Tensor bitwise_and(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor bitwise_or(const NumberOrTensor& a, const NumberOrTensor& b);
Tensor bitwise_xor(const NumberOrTensor& a, const NumberOrTensor& b);
/// Every bit the other way.
Tensor invert(const Tensor& x);
/// x * 2^by, without the bits that leave. By the width or more, or by a negative number: 0.
Tensor left_shift(const NumberOrTensor& x, const NumberOrTensor& by);
/// floor(x / 2^by): the sign fills. By the width or more, or by a negative number: all sign, of unsigned integers 0.
Tensor right_shift(const NumberOrTensor& x, const NumberOrTensor& by);
// Of booleans logic, as logical_and and its like, of integers bits: (a < b) | (c < d). (a && b is C++'s: it asks for
// the value of one boolean.)
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);
Tensor operator^(const Tensor& a, const Tensor& b);
Tensor operator~(const Tensor& x);
/// How many bits are set, as u8.
Tensor population_count(const Tensor& x);

}  // namespace gradus
