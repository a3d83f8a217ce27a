/// Matrices of derivatives: a linear function applied to all unit vectors at once.
#pragma once
#include <cstddef>
#include <functional>
#include <string_view>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// dy/dx as [y..., x...], in the mode that takes fewer walks. Zeros where y does not depend on x. With max_bytes not 0,
/// as many walks at once as fit. ResourceExhausted, opened by `op`, if not even one fits.
Tensor jacobian_of(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops, std::size_t max_bytes);

/// The derivative of y: [n, y...] by x: [n, x...], example by example: [n, y..., x...]. InvalidArgument, opened by
/// `op`, if the dimensions n differ or examples mix. One walk per element of y, or of x, serves all examples.
Tensor batch_jacobian_of(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops,
                         std::size_t max_bytes);

/// The matrix of a linear function of tensors of spec `from`, which may give an empty tensor for zeros of spec `to`.
/// Row i of the result, [elements of from, to...], is the function of the i-th unit vector. `at_once` rows are computed
/// together.
Tensor rows_of(std::string_view op, const std::function<Tensor(const Tensor&)>& linear, const Spec& from,
               const Spec& to, std::int64_t at_once);

}  // namespace gradus
