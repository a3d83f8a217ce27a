#include "gradus/text/string_hashes.h"
#include <bit>
#include <cstring>
#include <utility>

namespace gradus {
namespace {

constexpr std::uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

template <class T> T fetched(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
std::uint64_t fetch(const char* from) { return fetched<std::uint64_t>(from); }
std::uint64_t turned(std::uint64_t value, int bits) { return std::rotr(value, bits); }
std::uint64_t shift_mixed(std::uint64_t value) { return value ^ value >> 47; }
std::uint64_t joined_hash(std::uint64_t u, std::uint64_t v, std::uint64_t factor) {
  const std::uint64_t a = shift_mixed((u ^ v) * factor);
  return shift_mixed((v ^ a) * factor) * factor;
}
std::uint64_t factor_of(std::size_t length) { return k2 + length * 2; }

std::uint64_t hash_of_up_to_16(const char* s, std::size_t length) {
  if (length >= 8) {
    const std::uint64_t factor = factor_of(length), a = fetch(s) + k2, b = fetch(s + length - 8);
    return joined_hash(turned(b, 37) * factor + a, (turned(a, 25) + b) * factor, factor);
  }
  if (length >= 4) {
    const std::uint64_t a = fetched<std::uint32_t>(s);
    return joined_hash(length + (a << 3), fetched<std::uint32_t>(s + length - 4), factor_of(length));
  }
  if (length == 0) return k2;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(s[i])); };
  const std::uint32_t y = byte(0) + (byte(length >> 1) << 8);
  const std::uint32_t z = static_cast<std::uint32_t>(length) + (byte(length - 1) << 2);
  return shift_mixed(y * k2 ^ z * k0) * k2;
}

std::uint64_t hash_of_up_to_32(const char* s, std::size_t length) {
  const std::uint64_t factor = factor_of(length), a = fetch(s) * k1, b = fetch(s + 8);
  const std::uint64_t c = fetch(s + length - 8) * factor, d = fetch(s + length - 16) * k2;
  return joined_hash(turned(a + b, 43) + turned(c, 30) + d, a + turned(b + k2, 18) + c, factor);
}

std::uint64_t hash_of_up_to_64(const char* s, std::size_t length) {
  const std::uint64_t factor = factor_of(length), a = fetch(s) * k2, b = fetch(s + 8);
  const std::uint64_t c = fetch(s + length - 8) * factor, d = fetch(s + length - 16) * k2;
  const std::uint64_t y = turned(a + b, 43) + turned(c, 30) + d;
  const std::uint64_t z = joined_hash(y, a + turned(b + k2, 18) + c, factor);
  const std::uint64_t e = fetch(s + 16) * factor, f = fetch(s + 24);
  const std::uint64_t g = (y + fetch(s + length - 32)) * factor, h = (z + fetch(s + length - 24)) * factor;
  return joined_hash(turned(e + f, 43) + turned(g, 30) + h, e + turned(f + a, 18) + g, factor);
}

using Pair = std::pair<std::uint64_t, std::uint64_t>;

Pair weak_hash_of_32(const char* s, std::uint64_t a, std::uint64_t b) {
  a += fetch(s);
  b = turned(b + a + fetch(s + 24), 21);
  const std::uint64_t c = a;
  a += fetch(s + 8) + fetch(s + 16);
  b += turned(a, 44);
  return {a + fetch(s + 24), b + c};
}

/// The state over blocks of 64 bytes.
struct LongHash {
  std::uint64_t x = 81, y = 81 * k1 + 113, z = shift_mixed((81 * k1 + 113) * k2 + 113) * k2;
  Pair v{0, 0}, w{0, 0};
  void mix_block(const char* s, std::uint64_t factor, std::uint64_t weight) {
    x = turned(x + y + v.first + fetch(s + 8), 37) * factor;
    y = turned(y + v.second + fetch(s + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + fetch(s + 40);
    z = turned(z + w.first, 33) * factor;
    v = weak_hash_of_32(s, v.second * factor, x + w.first);
    w = weak_hash_of_32(s + 32, z + w.second, y + fetch(s + 16));
    std::swap(z, x);
  }
};

/// The message's words and, last, its length.
struct SipState {
  std::uint64_t v0, v1, v2, v3;
  explicit SipState(const std::array<std::uint64_t, 2>& key)
      : v0(key[0] ^ 0x736f6d6570736575),
        v1(key[1] ^ 0x646f72616e646f6d),
        v2(key[0] ^ 0x6c7967656e657261),
        v3(key[1] ^ 0x7465646279746573) {}
  void round() {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    round(), round();
    v0 ^= word;
  }
  std::uint64_t end() {
    v2 ^= 0xFF;
    round(), round(), round(), round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

}  // namespace

std::uint64_t farm_fingerprint(std::string_view bytes) {
  const char* s = bytes.data();
  const std::size_t length = bytes.size();
  if (length <= 16) return hash_of_up_to_16(s, length);
  if (length <= 32) return hash_of_up_to_32(s, length);
  if (length <= 64) return hash_of_up_to_64(s, length);
  LongHash hash;
  hash.x = hash.x * k2 + fetch(s);
  const char* const end = s + (length - 1) / 64 * 64;
  const std::size_t rest = (length - 1) & 63;
  for (; s != end; s += 64) hash.mix_block(s, k1, 1);
  const std::uint64_t factor = k1 + ((hash.z & 0xff) << 1);
  hash.w.first += rest;
  hash.v.first += hash.w.first;
  hash.w.first += hash.v.first;
  hash.mix_block(end + rest - 63, factor, 9);
  return joined_hash(joined_hash(hash.v.first, hash.w.first, factor) + shift_mixed(hash.y) * k0 + hash.z,
                     joined_hash(hash.v.second, hash.w.second, factor) + hash.x, factor);
}

std::uint64_t sip_hash(std::string_view bytes, const std::array<std::uint64_t, 2>& key) {
  SipState state(key);
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) state.take(fetch(bytes.data() + i));
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (std::size_t j = 0; i + j < bytes.size(); ++j)
    last |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i + j])) << (8 * j);
  state.take(last);
  return state.end();
}

}  // namespace gradus
