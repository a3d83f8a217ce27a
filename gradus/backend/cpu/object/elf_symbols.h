/// Symbols of an object file.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace gradus::object {

/// The names that its code and data refer to without defining them. Names in its table of symbols alone, from parts
/// that a linker has left out, do not count.
std::set<std::string> undefined_symbols(std::string_view file);
/// The names that others may refer to.
std::set<std::string> defined_symbols(std::string_view file);
/// The bytes of machine code in it.
std::int64_t code_bytes(std::string_view file);

}  // namespace gradus::object
