/// The table that summary() prints.
#pragma once
#include <string>
#include "gradus/base/rooms.h"

namespace gradus {
namespace detail::inline rooms {
class Layer;
}  // namespace detail::inline rooms
std::string summary_of(const Layer& layer);
}  // namespace gradus
