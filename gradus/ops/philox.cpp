/// Philox as a formula, written over a type of 32-bit words held in 64 bits: scalar::Value where it is recorded, plain
/// integers for the oracle, whose float64 holds inputs and results exactly.
#include "gradus/ops/philox.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr int rounds = 7;
constexpr std::int64_t low_mask = 0xffffffff;

scalar::Value low(const scalar::Value& x) { return x & scalar::Value(low_mask); }
scalar::Value high(const scalar::Value& x) { return shift_right_logical(x, 32); }
std::uint64_t low(std::uint64_t x) { return x & low_mask; }
std::uint64_t high(std::uint64_t x) { return x >> 32; }
scalar::Value word(std::int64_t x, const scalar::Value&) { return x; }
std::uint64_t word(std::int64_t x, std::uint64_t) { return static_cast<std::uint64_t>(x); }

/// Words 2*half and 2*half+1 of the block for this counter: 32 bits of the first below 21 bits of the second.
template <class Word> Word philox_bits(Word index, Word key, int half) {
  const Word zero = index ^ index;
  Word c0 = low(index), c1 = high(index), c2 = zero, c3 = zero, k0 = low(key), k1 = high(key);
  for (int round = 0; round < rounds; ++round) {
    const Word a = c0 * word(0xd2511f53, c0), b = c2 * word(0xcd9e8d57, c2);
    c0 = high(b) ^ c1 ^ k0;
    c1 = low(b);
    c2 = high(a) ^ c3 ^ k1;
    c3 = low(a);
    k0 = low(k0 + word(0x9e3779b9, k0));
    k1 = low(k1 + word(0xbb67ae85, k1));
  }
  const Word &first = half ? c2 : c0, &second = half ? c3 : c1;
  return first + (second & word(0x1fffff, second)) * word(std::int64_t{1} << 32, second);
}

}  // namespace

struct Philox {
  static constexpr auto name = "philox";
  static constexpr auto takes = Takes::integers;
  int half = 0;
  scalar::Value emit(scalar::Value index, scalar::Value key) const { return philox_bits(index, key, half); }
  scalar::Real emit(scalar::Real index, scalar::Real key) const {
    const auto bits = philox_bits(static_cast<std::uint64_t>(static_cast<std::int64_t>(index.v)),
                                  static_cast<std::uint64_t>(static_cast<std::int64_t>(key.v)), half);
    return {static_cast<double>(bits), i64};
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

Tensor philox(const Tensor& index, const Tensor& key, int half) {
  return apply(Philox{half}, index, broadcast_to(key, index.shape()));
}

}  // namespace gradus
