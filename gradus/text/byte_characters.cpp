#include "gradus/text/byte_characters.h"
#include <array>
#include "gradus/text/unicode.h"

namespace gradus {
namespace {

constexpr bool stands_for_itself(char32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
}

/// By bytes.
constexpr std::array<char32_t, 256> all_byte_characters() {
  std::array<char32_t, 256> characters{};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) characters[byte] = stands_for_itself(byte) ? byte : next++;
  return characters;
}
constexpr std::array<char32_t, 256> byte_characters = all_byte_characters();

/// -1: none.
int byte_of(char32_t c) {
  if (c < 256) return stands_for_itself(c) ? static_cast<int>(c) : -1;
  for (std::size_t byte = 0; byte < 256; ++byte)
    if (byte_characters[byte] == c) return static_cast<int>(byte);
  return -1;
}

}  // namespace

std::string as_byte_characters(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) unicode::append(out, byte_characters[static_cast<unsigned char>(c)]);
  return out;
}

std::string from_byte_characters(std::string_view characters) {
  std::string bytes;
  for (const char32_t c : unicode::decoded(characters, "tokenizer: a token")) {
    const int byte = byte_of(c);
    if (byte < 0) return std::string(characters);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace gradus
