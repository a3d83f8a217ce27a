/// Values that decide about shapes, read on the host. They must be known when the op is applied.
#pragma once
#include <optional>
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// InvalidArgument if the value of `x` is not known while a function is traced. Errors call it `what`; `instead` says
/// what to do there.
void require_known_value(std::string_view op, std::string_view what, const Tensor& x, std::string_view instead);
/// The values of an integer tensor.
std::vector<std::int64_t> known_integers(std::string_view op, std::string_view what, const Tensor& x,
                                         std::string_view instead);
/// The flat indices of elements that are true, or not 0.
std::vector<std::int64_t> known_positions(std::string_view op, std::string_view what, const Tensor& x,
                                          std::string_view instead);

/// The number of a scalar that is one as structure, such as the number of elements of a known shape; else empty.
std::optional<double> known_fill(const Tensor& x);

}  // namespace gradus
