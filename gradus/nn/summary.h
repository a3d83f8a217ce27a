/// The table that summary() prints.
#pragma once
#include <string>

namespace gradus {
class Layer;
std::string summary_of(const Layer& layer);
}  // namespace gradus
