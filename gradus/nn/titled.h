/// The beginning of a layer's messages.
#pragma once
#include <ostream>
#include <string_view>
#include "gradus/nn/layer.h"

namespace gradus {
namespace detail::inline rooms {

/// Prints "Dense head", or "Dense" for a layer without a name.
struct Titled {
  std::string_view kind;
  const Layer& layer;
};
inline std::ostream& operator<<(std::ostream& out, const Titled& titled) {
  out << titled.kind;
  if (!titled.layer.name().empty()) out << ' ' << titled.layer.name();
  return out;
}

}  // namespace detail::inline rooms
}  // namespace gradus
