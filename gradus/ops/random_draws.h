/// The random functions with the origin of their key apart from their options: a seed, the next key, or a tensor.
#pragma once
#include <optional>
#include <string_view>
#include "gradus/ops/random.h"

namespace gradus::random {

/// Where the key of one draw comes from. It is taken once the arguments are known to be right.
class KeyOrigin {
 public:
  /// A fixed seed, or the next key.
  KeyOrigin(std::optional<std::uint64_t> seed) : seed_(seed) {}
  /// A tensor of integers, a scalar or [2], as the stateless functions take; `seed` is that of their options, which
  /// must be empty. `op` opens errors.
  KeyOrigin(std::string_view op, const Tensor& key, std::optional<std::uint64_t> seed);
  Tensor take() const { return key_.defined() ? key_ : next_key(seed_); }

 private:
  std::optional<std::uint64_t> seed_;
  Tensor key_;
};

Tensor draw_normal(const Shape& shape, NormalOptions options, const KeyOrigin& origin);
Tensor draw_truncated_normal(const Shape& shape, NormalOptions options, const KeyOrigin& origin);
Tensor draw_uniform(const Shape& shape, UniformOptions options, const KeyOrigin& origin);
Tensor draw_integers(const Shape& shape, IntegerOptions options, const KeyOrigin& origin);
Tensor draw_categorical(const Tensor& logits, std::int64_t num_samples, CategoricalOptions options,
                        const KeyOrigin& origin);
Tensor draw_shuffled(const Tensor& x, const KeyOrigin& origin);
/// `shape` is that of the result, to which alpha and beta broadcast.
Tensor draw_gamma(std::string_view op, const Shape& shape, const NumberOrTensor& alpha, const GammaOptions& options,
                  const KeyOrigin& origin);
Tensor draw_beta(std::string_view op, const Shape& shape, const NumberOrTensor& alpha, const NumberOrTensor& beta,
                 const BetaOptions& options, const KeyOrigin& origin);

/// 53 bits, i64 -> (0, 1] in `dtype`, f32 or f64.
Tensor positive_unit(const Tensor& bits, DType dtype);
/// 53 bits, i64 -> [0, 1) in `dtype`, f32 or f64.
Tensor half_open_unit(const Tensor& bits, DType dtype);
/// InvalidArgument unless the sizes are known, or symbols of a trace.
void require_known_shape(std::string_view op, const Shape& shape);

}  // namespace gradus::random
