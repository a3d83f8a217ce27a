/// Random tensors. Counter-based: an element depends on (key, index) alone, so numbers do not depend on threads,
/// devices or on what else runs. A call without a seed takes the next key after set_seed; a call with one always gives
/// the same numbers. None has a gradient. InvalidArgument for a shape that is not known and for a dtype of another kind
/// than is said.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/ops/random_key.h"

namespace gradus::random {

struct NormalOptions {
  double mean = 0, stddev = 1;
  DType dtype = f32;
  std::optional<std::uint64_t> seed = {};
  static constexpr auto ranges() {
    return std::array{Allowed::finite("mean"), Allowed::not_negative("stddev"), Allowed::any("seed")};
  }
};
struct UniformOptions {
  double low = 0, high = 1;
  DType dtype = f32;
  std::optional<std::uint64_t> seed = {};
  static constexpr auto ranges() { return std::array{Allowed::finite("low high"), Allowed::any("seed")}; }
};
struct IntegerOptions {
  std::int64_t low = 0, high = 2;
  DType dtype = i32;
  std::optional<std::uint64_t> seed = {};
  static constexpr auto ranges() { return std::array{Allowed::any("low high seed")}; }
};

struct CategoricalOptions {
  DType dtype = i32;
  std::optional<std::uint64_t> seed = {};
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};
struct ShuffledOptions {
  std::optional<std::uint64_t> seed = {};
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};

/// Gaussian numbers (Box and Muller 1958), of a floating type.
Tensor normal(const Shape& shape, NormalOptions options = {});
/// Gaussian numbers given that they lie within two standard deviations of the mean, of a floating type.
Tensor truncated_normal(const Shape& shape, NormalOptions options = {});
/// Uniform in [low, high): 2^24 equidistant values in f32, 2^53 in f64, those of f32 rounded in f16 and bf16.
/// InvalidArgument unless low < high and high - low is finite.
Tensor uniform(const Shape& shape, UniformOptions options = {});
/// Uniform in [low, high), an integer type. InvalidArgument unless low < high and there are at most 2^53 numbers in it,
/// OutOfRange if the dtype does not hold them all.
Tensor integers(const Shape& shape, IntegerOptions options = {});
/// Classes drawn with the probabilities softmax(logits), by the largest of logits + Gumbel noise: floats [..., classes]
/// -> integers [..., num_samples]. A logit of -infinity is never drawn where another class may be. InvalidArgument
/// unless num_samples is positive, and of logits that are a scalar, no floats or of no class.
Tensor categorical(const Tensor& logits, std::int64_t num_samples, CategoricalOptions options = {});
/// The rows of axis 0 of x, of any dtype, in a random order. InvalidArgument of a scalar.
Tensor shuffle(const Tensor& x, ShuffledOptions options = {});

}  // namespace gradus::random
