/// Parts that the transforms of signals share.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// The first n elements of the last axis, of known length, zero-padded where there are fewer.
Tensor fitted(const Tensor& x, std::int64_t n);

/// Lengths with a larger prime factor are no Fourier: their time would grow with that factor.
constexpr std::int64_t most_fourier_factor = 31;

/// Discrete Fourier transform of known length n along the last but one axis; the last one holds real and imaginary
/// parts. x: T[..., n, 2] -> the same shape, y_k = sum_t x_t exp(-2 pi i k t / n). `inverse`: exp(2 pi i k t / n), not
/// divided by n. `onesided`: x: T[..., n, 1] is real, and y: T[..., n / 2 + 1, 2] the half that says all. T is f32 or
/// f64; no prime factor of n is above most_fourier_factor. A primitive since as products of matrices a transform takes
/// ten times as long.
struct Fourier {
  static constexpr auto name = "fourier";
  static constexpr auto library_kernel = "fourier";
  static constexpr auto takes = Takes::floats;
  bool inverse = false;
  bool onesided = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// True if Fourier transforms n points.
bool is_fourier_length(std::int64_t n);

}  // namespace gradus
