/// Random tensors. They are counter-based: an element depends on (key, index) alone, so numbers do not depend on
/// threads, devices or on other work. A call without a seed takes the next key after set_seed. A call with a seed
/// always gives the same numbers. A stateless call takes its seed as a tensor: integers, a scalar or [2], also a symbol
/// of a traced function. Only gamma and beta have a gradient. InvalidArgument for a shape that is not known, and for a
/// dtype that the function does not allow.
#pragma once
#include <optional>
#include "gradus/base/ranges.h"
#include "gradus/ops/number_or_tensor.h"
#include "gradus/ops/random_key.h"

namespace gradus::random {

/// Options of normal and truncated_normal.
struct NormalOptions {
  double mean = 0, stddev = 1;             // mean and standard deviation
  DType dtype = f32;                       // a floating type
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() {
    return std::array{Allowed::finite("mean"), Allowed::not_negative("stddev"), Allowed::any("seed")};
  }
};
/// Options of uniform.
struct UniformOptions {
  double low = 0, high = 1;                // half-open interval [low, high)
  DType dtype = f32;                       // a floating type
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() { return std::array{Allowed::finite("low high"), Allowed::any("seed")}; }
};
/// Options of integers.
struct IntegerOptions {
  std::int64_t low = 0, high = 2;          // half-open interval [low, high)
  DType dtype = i32;                       // an integer type
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() { return std::array{Allowed::any("low high seed")}; }
};

/// Options of categorical.
struct CategoricalOptions {
  DType dtype = i32;                       // an integer type
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};
/// Options of shuffle.
struct ShuffledOptions {
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};

/// Options of gamma.
struct GammaOptions {
  Tensor beta = {};                        // rate, the inverse of the scale, of the type of alpha; none: 1
  std::optional<DType> dtype = {};         // a floating type; none: that of alpha, or f32 if alpha is a number
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};
/// Options of beta.
struct BetaOptions {
  std::optional<DType> dtype = {};         // a floating type; none: that of alpha and beta, or f32 if they are numbers
  std::optional<std::uint64_t> seed = {};  // fixed seed; none: the next key after set_seed
  static constexpr auto ranges() { return std::array{Allowed::any("seed")}; }
};

/// Normally distributed numbers (Box and Muller 1958), of a floating type.
Tensor normal(const Shape& shape, NormalOptions options = {});
/// Normally distributed numbers within two standard deviations of the mean, of a floating type.
Tensor truncated_normal(const Shape& shape, NormalOptions options = {});
/// Uniform numbers in [low, high): 2^24 equidistant values in f32, 2^53 in f64; f16 and bf16 round those of f32.
/// InvalidArgument unless low < high and high - low is finite.
Tensor uniform(const Shape& shape, UniformOptions options = {});
/// Uniform integers in [low, high), of an integer type. InvalidArgument unless low < high and the interval has at most
/// 2^53 numbers. OutOfRange if the dtype does not hold them all.
Tensor integers(const Shape& shape, IntegerOptions options = {});
/// Classes drawn with the probabilities softmax(logits), as the largest of logits + Gumbel noise: floats [..., classes]
/// -> integers [..., num_samples]. A logit of -infinity is never drawn if another class is possible; NaN is always
/// drawn. InvalidArgument unless num_samples is positive, and for logits that are a scalar, not floats, or without
/// classes.
Tensor categorical(const Tensor& logits, std::int64_t num_samples, CategoricalOptions options = {});
/// The rows of x along axis 0, of any dtype, in a random order. InvalidArgument for a scalar.
Tensor shuffle(const Tensor& x, ShuffledOptions options = {});
/// Numbers of the gamma distribution x^(alpha-1) exp(-beta x), with `shape` of them for each element of alpha and beta,
/// which broadcast: [shape..., alpha and beta...], as in TensorFlow. By rejection (Marsaglia and Tsang 2000), in f64,
/// rounded once. The gradient by alpha and beta holds the cumulative probability of the number fixed (implicit
/// reparameterization, Figurnov et al. 2018), up to order 5. NaN unless alpha > 0 and beta > 0.
Tensor gamma(const Shape& shape, const NumberOrTensor& alpha, const GammaOptions& options = {});
/// Numbers of the beta distribution x^(alpha-1) (1-x)^(beta-1), as gamma: g / (g + h) of two gamma numbers g and h.
Tensor beta(const Shape& shape, const NumberOrTensor& alpha, const NumberOrTensor& beta,
            const BetaOptions& options = {});

/// normal, by a seed that is a tensor. The options have no seed, here and in all that follow.
Tensor stateless_normal(const Shape& shape, const Tensor& seed, NormalOptions options = {});
/// truncated_normal, by a seed that is a tensor.
Tensor stateless_truncated_normal(const Shape& shape, const Tensor& seed, NormalOptions options = {});
/// uniform, by a seed that is a tensor.
Tensor stateless_uniform(const Shape& shape, const Tensor& seed, UniformOptions options = {});
/// integers, by a seed that is a tensor.
Tensor stateless_integers(const Shape& shape, const Tensor& seed, IntegerOptions options = {});
/// categorical, by a seed that is a tensor.
Tensor stateless_categorical(const Tensor& logits, std::int64_t num_samples, const Tensor& seed,
                             CategoricalOptions options = {});
/// shuffle, by a seed that is a tensor.
Tensor stateless_shuffle(const Tensor& x, const Tensor& seed);
/// gamma, by a seed that is a tensor. As in TensorFlow, `shape` is that of the result: alpha and beta broadcast to it.
Tensor stateless_gamma(const Shape& shape, const Tensor& seed, const NumberOrTensor& alpha,
                       const GammaOptions& options = {});
/// beta, by a seed that is a tensor. `shape` is that of the result: alpha and beta broadcast to it.
Tensor stateless_beta(const Shape& shape, const Tensor& seed, const NumberOrTensor& alpha, const NumberOrTensor& beta,
                      const BetaOptions& options = {});
/// A seed [2] of the type of `seed`, independent of it and of those for other `data`, an integer scalar.
Tensor stateless_fold_in(const Tensor& seed, const NumberOrTensor& data);
/// `num` independent seeds [num, 2] of the type of `seed`. InvalidArgument unless num is positive.
Tensor stateless_split(const Tensor& seed, std::int64_t num = 2);

}  // namespace gradus::random
