/// Discrete cosine transforms of the four types.
#pragma once
#include "gradus/graph/tensor.h"

namespace gradus {

enum class DctNorm { none, ortho };
struct DctOptions {
  int type = 2;
  std::int64_t n = 0;            // the signal is cut or filled with zeros to it; 0: its own length
  DctNorm norm = DctNorm::none;  // ortho: the matrix of the transform is orthogonal; not of type 1
};

/// x: [..., n] -> [..., n], along the last axis, as tf.signal.dct:
///   1: x_0 + (-1)^k x_{n-1} + 2 sum_{0 < t < n-1} x_t cos(pi k t / (n - 1)), n >= 2
///   2: 2 sum_t x_t cos(pi k (2 t + 1) / (2 n))
///   3: x_0 + 2 sum_{t > 0} x_t cos(pi t (2 k + 1) / (2 n))
///   4: 2 sum_t x_t cos(pi (2 t + 1) (2 k + 1) / (4 n))
/// Floats; n must be known. InvalidArgument of another type.
Tensor dct(const Tensor& x, DctOptions options = {});
/// The dct of the type that undoes this one: 2 and 3 each other, 1 and 4 themselves; with DctNorm::ortho exactly, else
/// up to the factor 2 n (type 1: 2 (n - 1)).
Tensor idct(const Tensor& x, DctOptions options = {});

}  // namespace gradus
