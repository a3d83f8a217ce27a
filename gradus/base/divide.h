/// Integer division that rounds up.
#pragma once
#include <cstdint>

namespace gradus {

/// Number of parts of `by` that cover x, both positive or x 0.
constexpr std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
/// The least multiple of `to` that is not below x.
constexpr std::int64_t round_up(std::int64_t x, std::int64_t to) { return divide_up(x, to) * to; }

}  // namespace gradus
