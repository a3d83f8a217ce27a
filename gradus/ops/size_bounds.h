/// Bounds of sizes whose text is made where they do not hold: making it takes as long as recording several ops.
#pragma once
#include <concepts>
#include "gradus/ops/shape.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus::detail::inline rooms {

/// require_not_negative (ops/shape.h) with a function that makes the text.
template <std::invocable Text> void require_not_negative(std::int64_t dimension, const Text& otherwise) {
  if (!dimension::is_never_negative(dimension)) require_not_negative(dimension, std::string(otherwise()));
}

}  // namespace gradus::detail::inline rooms
