/// Parts of messages. Decision 209 has the reasons.
#include "gradus/base/error.h"
#include <new>
#include <typeinfo>

namespace gradus {

std::string message_of_current() {
  try {
    throw;
  } catch (const std::exception& error) { return error.what(); } catch (...) {
    return "an exception that is no std::exception";
  }
}

bool is_of_library(const std::exception& error) {
  const auto& type = typeid(error);
  return dynamic_cast<const Error*>(&error) || type == typeid(std::length_error) || type == typeid(std::out_of_range) ||
         type == typeid(std::invalid_argument) || type == typeid(std::logic_error) || type == typeid(std::bad_alloc) ||
         type == typeid(std::bad_array_new_length);
}

std::string printable(std::string_view text, bool in_one_line) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_wide = byte == 0xc2 && next >= 0x80 && next < 0xa0;  // U+0080 to U+009F in UTF-8
    const bool stays = (byte >= ' ' && byte != 0x7f) || (!in_one_line && (byte == '\n' || byte == '\t'));
    if (stays && !is_wide) {
      out += text[i];
      continue;
    }
    const unsigned char shown = is_wide ? next : byte;
    out += {'\\', 'x', digits[shown / 16], digits[shown % 16]};
    i += is_wide;
  }
  return out;
}

void check(bool condition, std::string_view message, SourcePlace where) {
  if (!condition) [[unlikely]]
    throw Error(text(where.file, ":", where.line, ": check failed: ", message));
}

}  // namespace gradus
