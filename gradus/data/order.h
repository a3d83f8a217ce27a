/// Orders: permutations of indices that are a function of a key alone. What they give for a key is part of the
/// numeric contract.
#pragma once
#include <cstdint>
#include <vector>

namespace gradus {

/// Random words by their number: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
class Counter {
 public:
  Counter(std::uint64_t seed, std::uint64_t stream) : key_(scramble(scramble(seed) + golden * (stream + 1))) {}
  std::uint64_t word(std::uint64_t i) const { return scramble(key_ + golden * (i + 1)); }
  /// In [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound, std::uint64_t i) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{word(i)} * bound) >> 64);
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  static constexpr std::uint64_t scramble(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  std::uint64_t key_;
};

/// More cannot be permuted at once.
inline constexpr std::int64_t largest_order = std::int64_t{1} << 32;

/// All of 0 ... n - 1, every order as likely (Fisher and Yates). 0 <= n <= largest_order.
std::vector<std::uint32_t> permutation(std::int64_t n, const Counter& random);

/// The order in which elements leave a buffer of `capacity` that is filled in order, each drawn at random.
class BufferedOrder {
 public:
  /// `length` elements come in.
  BufferedOrder(std::int64_t length, std::int64_t capacity, const Counter& random);
  /// The next index; must not be asked more than `length` times.
  std::int64_t next();

 private:
  std::int64_t length_, capacity_, entered_ = 0, left_ = 0;
  std::vector<std::int64_t> buffer_;
  Counter random_;
};

}  // namespace gradus
