/// Ops that rearrange elements. Negative axes count from the end. All take any dtype, and sizes that are not known when
/// tracing. Their gradients rearrange back.
#pragma once
#include <array>
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// The same elements in row-major order under another shape. One size of -1 is inferred. InvalidArgument if the numbers
/// of elements differ.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Removes the dimensions `axis`, which must be 1; removes all that are 1 if none is named.
Tensor squeeze(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor squeeze(const Tensor& x, const std::vector<int>& axis = {}) {
  return squeeze(x, NamedAxes{axis});
}
/// Inserts a dimension of 1 at position `axis` of the result.
Tensor expand_dims(const Tensor& x, int axis);
inline Tensor expand_dims(const Tensor& x, NamedAxis named) { return expand_dims(x, named.axis); }
/// Repeats along dimensions of size 1, and along new leading ones, to the shape `shape`.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Exchanges the last two dimensions.
Tensor transpose(const Tensor& x);
/// Dimension i of the result is dimension order[i] of `x`.
Tensor transpose(const Tensor& x, const std::vector<int>& order);
/// The box that starts at `begin`. A size of -1 reaches to the end. OutOfRange past the ends.
Tensor slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size);
/// Repeats the whole array multiples[i] times along dimension i.
Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples);
/// Concatenates tensors along `axis`. The other dimensions and the dtypes must agree.
Tensor concat(const std::vector<Tensor>& parts, int axis = 0);
inline Tensor concat(const std::vector<Tensor>& parts, NamedAxis named) { return concat(parts, named.axis); }
/// Stacks tensors of one shape along a new dimension at position `axis` of the result.
Tensor stack(const std::vector<Tensor>& parts, int axis = 0);
inline Tensor stack(const std::vector<Tensor>& parts, NamedAxis named) { return stack(parts, named.axis); }
/// Splits into `parts` pieces of equal size along `axis`.
std::vector<Tensor> split(const Tensor& x, int parts, int axis = 0);
inline std::vector<Tensor> split(const Tensor& x, int parts, NamedAxis named) { return split(x, parts, named.axis); }
/// One tensor per index along `axis`, without that dimension, whose size must be known.
std::vector<Tensor> unstack(const Tensor& x, int axis = 0);
inline std::vector<Tensor> unstack(const Tensor& x, NamedAxis named) { return unstack(x, named.axis); }
/// Reverses every dimension in `axis`.
Tensor reverse(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor reverse(const Tensor& x, const std::vector<int>& axis) {
  return reverse(x, NamedAxes{axis});
}
/// Moves elements by `shift` towards higher indices. Elements that leave at the end enter at the front.
Tensor roll(const Tensor& x, std::int64_t shift, int axis);
inline Tensor roll(const Tensor& x, std::int64_t shift, NamedAxis named) { return roll(x, shift, named.axis); }
/// Adds paddings[i][0] elements before and paddings[i][1] after dimension i, all equal to `value`.
Tensor pad(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& paddings, Scalar value = 0);
/// Mirrors images [..., height, width, channels] from left to right.
Tensor flip_left_right(const Tensor& image);
/// Vectors of n0, n1, n2 ... elements -> one tensor each of shape [n1, n0, n2, ...] that varies along its own dimension
/// (TensorFlow's default indexing, "xy").
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes);

namespace detail::inline rooms {

/// Elements [begin, begin + size) along `axis`; both are dimensions, symbolic or not. OutOfRange past the end, opened
/// by `op`.
Tensor slice_axis(const Tensor& x, int axis, std::int64_t begin, std::int64_t size, std::string_view op);
/// slice_axis for a range that lies within the extent for certain.
Tensor slice_within(const Tensor& x, int axis, std::int64_t begin, std::int64_t size);
/// Requires that `dimension` is not negative at any call. This is proven now, or checked for the sizes of each call of
/// the function that is being traced. Else an OutOfRange has the text `otherwise`.
void require_not_negative(std::int64_t dimension, const std::string& otherwise);
/// True if `shape` broadcasts to `wanted` and no further.
bool broadcasts_to(const Shape& shape, const Shape& wanted);
/// n rows that are all `x`: [n, x...].
Tensor repeat_rows(const Tensor& x, std::int64_t n);

/// `x` as a node of its own. So values computed from a function's argument differ from those of the same tensor as
/// another argument, or as a captured constant.
Tensor as_argument(const Tensor& x);
/// as_argument of each tensor.
std::vector<Tensor> as_arguments(In tensors);

}  // namespace detail::inline rooms

}  // namespace gradus
