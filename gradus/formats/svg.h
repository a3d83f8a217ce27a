/// Parts that pictures written as SVG share.
#pragma once
#include <string>
#include <string_view>

namespace gradus::svg {

/// Text, escaped for elements and attributes.
std::string escaped(std::string_view text);
/// A step between ticks: the least of 1, 2 and 5 times a power of ten that is not below `rough`, a positive number.
double round_step(double rough);

}  // namespace gradus::svg
