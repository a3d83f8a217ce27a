/// Symbols of an object file.
#pragma once
#include <set>
#include <string>
#include <string_view>

namespace gradus::object {

/// The names that its code and data refer to without defining them. Names that only its table of symbols has, of what a
/// linker has left out, do not count.
std::set<std::string> undefined_symbols(std::string_view file);
/// Whether it has something of this name.
bool defines(std::string_view file, std::string_view name);

}  // namespace gradus::object
