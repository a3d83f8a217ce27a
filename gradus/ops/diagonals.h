/// Triangles and diagonals of x: T[..., rows, columns]. Diagonal k > 0 lies above the main one, k < 0 below. Any dtype.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

/// x with zeros outside of a band of `num_lower` diagonals below the main one and `num_upper` above it. A negative
/// number stands for all of them.
Tensor band_part(const Tensor& x, std::int64_t num_lower, std::int64_t num_upper);
/// x with zeros below diagonal k.
Tensor triu(const Tensor& x, std::int64_t k = 0);
/// x with zeros above diagonal k.
Tensor tril(const Tensor& x, std::int64_t k = 0);
/// diagonal: [..., n] -> [..., n + |k|, n + |k|], with `diagonal` on diagonal k and zeros elsewhere.
Tensor diag(const Tensor& diagonal, std::int64_t k = 0);
/// Diagonal k of x: [..., its length].
Tensor diag_part(const Tensor& x, std::int64_t k = 0);
/// x with diagonal k replaced.
Tensor set_diag(const Tensor& x, const Tensor& diagonal, std::int64_t k = 0);
/// The sum of the main diagonal, [...]. Any number type.
Tensor trace(const Tensor& x);
/// [rows, columns] with ones on diagonal k and zeros elsewhere.
Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype = f32, std::int64_t k = 0);

}  // namespace gradus
