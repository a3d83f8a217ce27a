/// Characters that stand for bytes in byte-level vocabularies (GPT-2): printable ones for themselves, the others from
/// U+0100 on.
#pragma once
#include <string>
#include <string_view>

namespace gradus {

/// Each byte of a text as its character, in UTF-8.
std::string as_byte_characters(std::string_view bytes);
/// The bytes of such characters; where one stands for none, the text itself.
std::string from_byte_characters(std::string_view characters);

}  // namespace gradus
