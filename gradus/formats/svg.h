/// What pictures that are written as SVG have in common.
#pragma once
#include <string>
#include <string_view>

namespace gradus::svg {

/// Text for within elements and attributes.
std::string escaped(std::string_view text);
/// The least of 1, 2 and 5 times a power of ten that is not below `rough`, a positive number: a step between ticks.
double round_step(double rough);

}  // namespace gradus::svg
