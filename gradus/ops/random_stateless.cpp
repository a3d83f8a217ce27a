/// Random numbers by seeds that are tensors: the key is a formula of the seed's numbers.
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/philox.h"
#include "gradus/ops/random_draws.h"
#include "gradus/ops/shape.h"

namespace gradus::random {
namespace {

constexpr std::uint64_t of_stateless = 0x57a7e1e55;  // so that a seed n is not the key of .seed = n

/// The numbers of a seed, i64: one or two.
Tensor numbers_of_seed(std::string_view op, const Tensor& seed) {
  const Shape& shape = seed.shape();
  require(is_integer(seed.dtype()) && (shape.rank() == 0 || shape == Shape{2}), op, ": the seed is ", seed.spec(),
          ", expected integers: a scalar or [2]");
  return cast(seed, i64);
}

/// Mixes a number, i64 [], into a key.
Tensor mixed(const Tensor& key, const Tensor& number) { return philox(number, key, 0); }

Tensor key_of_seed(std::string_view op, const Tensor& seed) {
  const Tensor numbers = numbers_of_seed(op, seed), key = next_key(of_stateless);
  if (numbers.shape().rank() == 0) return mixed(key, numbers);
  return mixed(mixed(key, numbers[0]), numbers[1]);
}

/// 53 random bits as a number of `dtype`, its lowest ones.
Tensor as_seed(const Tensor& bits, DType dtype) {
  if (size_of(dtype) == 8) return cast(bits, dtype);
  const std::int64_t range = std::int64_t{1} << (8 * size_of(dtype) - is_signed(dtype));
  return cast(mod(bits, range), dtype);
}

}  // namespace

KeyOrigin::KeyOrigin(std::string_view op, const Tensor& key, std::optional<std::uint64_t> seed)
    : key_(key_of_seed(op, key)) {
  require(!seed, op, ": there are two seeds, a tensor and .seed; leave out one");
}

Tensor stateless_normal(const Shape& shape, const Tensor& seed, NormalOptions options) {
  return draw_normal(shape, options, {"random::stateless_normal", seed, options.seed});
}
Tensor stateless_truncated_normal(const Shape& shape, const Tensor& seed, NormalOptions options) {
  return draw_truncated_normal(shape, options, {"random::stateless_truncated_normal", seed, options.seed});
}
Tensor stateless_uniform(const Shape& shape, const Tensor& seed, UniformOptions options) {
  return draw_uniform(shape, options, {"random::stateless_uniform", seed, options.seed});
}
Tensor stateless_integers(const Shape& shape, const Tensor& seed, IntegerOptions options) {
  return draw_integers(shape, options, {"random::stateless_integers", seed, options.seed});
}
Tensor stateless_categorical(const Tensor& logits, std::int64_t num_samples, const Tensor& seed,
                             CategoricalOptions options) {
  return draw_categorical(logits, num_samples, options, {"random::stateless_categorical", seed, options.seed});
}
Tensor stateless_shuffle(const Tensor& x, const Tensor& seed) {
  return draw_shuffled(x, {"random::stateless_shuffle", seed, {}});
}
Tensor stateless_gamma(const Shape& shape, const Tensor& seed, const NumberOrTensor& alpha,
                       const GammaOptions& options) {
  constexpr std::string_view op = "random::stateless_gamma";
  return draw_gamma(op, shape, alpha, options, {op, seed, options.seed});
}
Tensor stateless_beta(const Shape& shape, const Tensor& seed, const NumberOrTensor& alpha, const NumberOrTensor& beta,
                      const BetaOptions& options) {
  constexpr std::string_view op = "random::stateless_beta";
  return draw_beta(op, shape, alpha, beta, options, {op, seed, options.seed});
}

Tensor stateless_fold_in(const Tensor& seed, const NumberOrTensor& data) {
  constexpr std::string_view op = "random::stateless_fold_in";
  const Tensor key = key_of_seed(op, seed), number = data.beside(seed, op);
  require(is_integer(number.dtype()) && number.shape().rank() == 0, op, ": data is ", number.spec(),
          ", expected an integer scalar");
  const Tensor folded = mixed(key, cast(number, i64));
  return as_seed(philox(iota({2}, i64), folded, 0), seed.dtype());
}

Tensor stateless_split(const Tensor& seed, std::int64_t num) {
  constexpr std::string_view op = "random::stateless_split";
  require(num > 0 && num < std::numeric_limits<std::int32_t>::max(), op, ": num is ", num, ", expected 1 to 2^31 - 2");
  return as_seed(philox(iota({num, 2}, i64), key_of_seed(op, seed), 1), seed.dtype());
}

}  // namespace gradus::random
