#include "gradus/text/unicode.h"
#include <utf8proc.h>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include "gradus/base/error.h"

namespace gradus::unicode {
namespace {

/// One character and its bytes.
struct Step {
  char32_t character;
  std::size_t bytes;
  bool is_valid;
};

/// The range of the second byte, which leaves out overlong forms, surrogates and what is past U+10FFFF.
bool may_follow(unsigned char first, unsigned char second) {
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

Step next_of(std::string_view rest) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (bytes == 0) return {0, 1, false};
  char32_t c = first & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if (i >= rest.size() || byte(i) >> 6 != 2 || (i == 1 && !may_follow(first, byte(i)))) return {0, i, false};
    c = c << 6 | (byte(i) & 0x3F);
  }
  return {c, bytes, true};
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
bool is_between(utf8proc_category_t c, utf8proc_category_t first, utf8proc_category_t last) {
  return c >= first && c <= last;
}
bool is_in(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

}  // namespace

std::u32string decoded(std::string_view utf8, std::string_view where) {
  std::u32string out;
  out.reserve(utf8.size());
  for (std::size_t i = 0; i < utf8.size();) {
    const Step step = next_of(utf8.substr(i));
    require(step.is_valid, where, ": byte ", i, " of the text is no UTF-8; expected text in UTF-8");
    out += step.character;
    i += step.bytes;
  }
  return out;
}

void check(std::string_view utf8, std::string_view where) {
  for (std::size_t i = 0; i < utf8.size();) {
    const Step step = next_of(utf8.substr(i));
    require(step.is_valid, where, ": byte ", i, " of the text is no UTF-8; expected text in UTF-8");
    i += step.bytes;
  }
}

void append(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return put(c);
  if (c < 0x800) put(0xC0 | c >> 6);
  else if (c < 0x10000) put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F));
  else put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F));
  put(0x80 | (c & 0x3F));
}

std::string repaired(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const Step step = next_of(bytes.substr(i));
    append(out, step.is_valid ? step.character : 0xFFFD);
    i += step.bytes;
  }
  return out;
}

std::string encoded(std::u32string_view characters) {
  std::string out;
  out.reserve(characters.size());
  for (const char32_t c : characters) append(out, c);
  return out;
}

std::u32string normalized(std::u32string_view characters, Form form) {
  const bool composes = form == Form::nfc || form == Form::nfkc, compatible = form == Form::nfkc || form == Form::nfkd;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (compatible ? UTF8PROC_COMPAT : 0));
  const std::string utf8 = encoded(characters);
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(utf8.data()),
                                              static_cast<utf8proc_ssize_t>(utf8.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (bytes == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  require(bytes >= 0, "normalization of text: ", utf8proc_errmsg(bytes));
  return decoded({reinterpret_cast<const char*>(made), static_cast<std::size_t>(bytes)}, "normalization of text");
}

void append_lower(std::u32string& out, char32_t c) {
  if (c == 0x130) {  // the one character whose lower case is two, wherever it stands
    out += U"i\u0307";
    return;
  }
  out += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool is_whitespace(char32_t c) {
  return is_in(c, 9, 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || is_in(c, 0x2000, 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
/// Characters of the property Alphabetic that are neither L nor M nor Nl are letters in circles and squares.
bool is_word(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return is_between(kind, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || kind == UTF8PROC_CATEGORY_PC || c == 0x200C ||
         c == 0x200D || is_in(c, 0x24B6, 0x24E9) || is_in(c, 0x1F130, 0x1F149) || is_in(c, 0x1F150, 0x1F169) ||
         is_in(c, 0x1F170, 0x1F189);
}
bool is_mark(char32_t c) { return is_between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }
bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }
bool is_number(char32_t c) { return is_between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO); }
bool is_punctuation(char32_t c) {
  if (c < 0x80) return is_in(c, 33, 47) || is_in(c, 58, 64) || is_in(c, 91, 96) || is_in(c, 123, 126);
  return is_between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}
bool is_other(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CO;
}
bool is_ideograph(char32_t c) {
  return is_in(c, 0x4E00, 0x9FFF) || is_in(c, 0x3400, 0x4DBF) || is_in(c, 0x20000, 0x2A6DF) ||
         is_in(c, 0x2A700, 0x2B73F) || is_in(c, 0x2B740, 0x2B81F) || is_in(c, 0x2B920, 0x2CEAF) ||
         is_in(c, 0xF900, 0xFAFF) || is_in(c, 0x2F800, 0x2FA1F);
}

}  // namespace gradus::unicode
