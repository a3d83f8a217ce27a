/// UTF-8, and what Unicode says of characters: normal forms, categories, case. The tables are utf8proc's, whose header
/// unicode.cpp alone sees.
#pragma once
#include <string>
#include <string_view>

namespace gradus::unicode {

/// The characters of UTF-8. InvalidArgument, opened by `where`, names the first byte that belongs to none: surrogates,
/// overlong forms and numbers past U+10FFFF are none.
std::u32string decoded(std::string_view utf8, std::string_view where);
/// The text, where U+FFFD stands for each longest run of bytes that begins a character and does not end it, as Unicode
/// recommends.
std::string repaired(std::string_view bytes);
/// Throws as decoded() does.
void check(std::string_view utf8, std::string_view where);
/// Appends a character as UTF-8.
void append(std::string& out, char32_t c);
/// UTF-8.
std::string encoded(std::u32string_view characters);
/// True if this byte of valid UTF-8 is not the first one of its character.
inline bool is_inside(char byte) { return static_cast<unsigned char>(byte) >> 6 == 2; }
/// The bytes of the character that begins with this byte of valid UTF-8.
inline std::size_t length_of(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The normal forms of Unicode.
enum class Form { nfc, nfd, nfkc, nfkd };
/// The characters in a normal form.
std::u32string normalized(std::u32string_view characters, Form form);
/// Appends the lower case of a character, which is another character, itself, or two for U+0130.
void append_lower(std::u32string& out, char32_t c);

// Properties, by general category where nothing else is said.
bool is_whitespace(char32_t c);       // the property White_Space
bool is_word(char32_t c);             // alphabetic, M, Nd, Pc, joiners: \w
bool is_mark(char32_t c);             // M
bool is_nonspacing_mark(char32_t c);  // Mn
bool is_number(char32_t c);           // N
bool is_punctuation(char32_t c);      // P, or punctuation or a symbol of ASCII
bool is_other(char32_t c);            // Cc, Cf, Co
bool is_ideograph(char32_t c);        // of the blocks that BERT takes apart

}  // namespace gradus::unicode
