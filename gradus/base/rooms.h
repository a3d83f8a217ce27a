/// The names that the rooms of the library share are in gradus::detail::rooms, so that a program which says
/// `using namespace gradus;` has Node, Layer or Buffer for its own types. Sources and headers of the rooms include this
/// one and write the names without it; headers that gradus/gradus.h leads to write detail::Node. Decision 452 has
/// more.
#pragma once

namespace gradus {
namespace detail {
inline namespace rooms {}
}  // namespace detail
using namespace detail::rooms;
}  // namespace gradus
