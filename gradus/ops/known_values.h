/// Values that decide about shapes, read on the host: they must be known when the op is applied.
#pragma once
#include <optional>
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// InvalidArgument if the value of `x`, which errors call `what`, is not known while a function is traced; `instead`
/// says what to do there.
void require_known_value(std::string_view op, std::string_view what, const Tensor& x, std::string_view instead);
/// The values of integers.
std::vector<std::int64_t> known_integers(std::string_view op, std::string_view what, const Tensor& x,
                                         std::string_view instead);
/// The flat indices where a boolean, or a number that is not 0, stands.
std::vector<std::int64_t> known_positions(std::string_view op, std::string_view what, const Tensor& x,
                                          std::string_view instead);

/// The number of a scalar that is one as structure, such as the number of elements of a known shape.
std::optional<double> known_fill(const Tensor& x);

}  // namespace gradus
