/// Orders: permutations of indices that are a function of a key alone. The permutation of a key is part of the numeric
/// contract.
#pragma once
#include <cstdint>
#include <vector>

namespace gradus {

/// A counter-based generator of random words: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Counter {
 public:
  /// Each stream of a seed has words of its own.
  Counter(std::uint64_t seed, std::uint64_t stream) : key_(scramble(scramble(seed) + golden * (stream + 1))) {}
  /// Random word number i.
  std::uint64_t word(std::uint64_t i) const { return scramble(key_ + golden * (i + 1)); }
  /// A random number in [0, bound) from word i; bound > 0.
  std::uint64_t below(std::uint64_t bound, std::uint64_t i) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{word(i)} * bound) >> 64);
  }

  /// A random number in [0, 1), one of 2^53, from word i.
  double uniform(std::uint64_t i) const { return static_cast<double>(word(i) >> 11) * 0x1p-53; }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  std::uint64_t key_;
};

/// Most elements that can be permuted at once.
inline constexpr std::int64_t largest_order = std::int64_t{1} << 32;

/// A random permutation of 0 ... n - 1, all equally likely (Fisher and Yates). 0 <= n <= largest_order.
std::vector<std::uint32_t> permutation(std::int64_t n, const Counter& random);

/// The order in which elements leave a shuffle buffer of `capacity`. It is filled in order, and each element is drawn
/// at random.
class BufferedOrder {
 public:
  /// `length` elements enter the buffer.
  BufferedOrder(std::int64_t length, std::int64_t capacity, const Counter& random);
  /// The next index. Must not be called more than `length` times.
  std::int64_t next();

 private:
  std::int64_t length_, capacity_, entered_ = 0, left_ = 0;
  std::vector<std::int64_t> buffer_;
  Counter random_;
};

}  // namespace gradus
