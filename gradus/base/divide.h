/// Whole parts.
#pragma once
#include <cstdint>

namespace gradus {

/// How many parts of `by` cover x, both positive or x 0.
constexpr std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }
/// The multiple of `to` from x on.
constexpr std::int64_t round_up(std::int64_t x, std::int64_t to) { return divide_up(x, to) * to; }

}  // namespace gradus
