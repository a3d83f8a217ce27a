/// Symbols of an object file.
#pragma once
#include <set>
#include <string>
#include <string_view>

namespace gradus::object {

/// The names that its code and data refer to without defining them. Names in its table of symbols alone, from parts
/// that a linker has left out, do not count.
std::set<std::string> undefined_symbols(std::string_view file);
/// True if it defines this name.
bool defines(std::string_view file, std::string_view name);

}  // namespace gradus::object
