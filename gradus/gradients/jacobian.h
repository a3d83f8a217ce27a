/// Matrices of derivatives: a linear function applied to all unit vectors at once.
#pragma once
#include <functional>
#include <string_view>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// dy/dx as [y..., x...], in the mode that takes fewer walks; zeros where y does not depend on x.
Tensor jacobian_of(const Tensor& y, const Tensor& x, const Stops& stops);

/// Of y: [n, y...] by x: [n, x...], example by example: [n, y..., x...]. InvalidArgument, opened by `op`, if the
/// dimensions n differ or examples mix. One walk serves an element of y, or of x, in all examples.
Tensor batch_jacobian_of(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops);

/// Of a linear function of tensors of spec `from`, which may give an empty tensor for zeros of spec `to`: row i of the
/// result, [elements of from, to...], is that of the i-th unit vector.
Tensor rows_of(const std::function<Tensor(const Tensor&)>& linear, const Spec& from, const Spec& to);

}  // namespace gradus
