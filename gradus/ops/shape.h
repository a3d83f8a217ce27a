/// Ops that rearrange elements. Axes may be negative: they count from the end. Every one takes any dtype, and sizes
/// that are not known when tracing; its gradient rearranges back.
#pragma once
#include <array>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The same elements in row-major order under another shape; one -1 is worked out. InvalidArgument if the numbers of
/// elements differ.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Without the dimensions `axis`, which must be 1; without all that are 1 if none is named.
Tensor squeeze(const Tensor& x, const std::vector<int>& axis = {});
/// With a dimension 1 at position `axis` of the result.
Tensor expand_dims(const Tensor& x, int axis);
/// Repeats along dimensions of size 1, and along new leading ones, until the shape is `shape`.
Tensor broadcast_to(const Tensor& x, const Shape& shape);
/// Exchanges the last two dimensions.
Tensor transpose(const Tensor& x);
/// Dimension i of the result is dimension order[i] of `x`.
Tensor transpose(const Tensor& x, const std::vector<int>& order);
/// The box that starts at `begin`; a size of -1 reaches to the end. OutOfRange past the ends.
Tensor slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size);
/// Repeats the whole array multiples[i] times along dimension i.
Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples);
/// One after the other along `axis`; the other dimensions and the dtypes must agree.
Tensor concat(const std::vector<Tensor>& parts, int axis = 0);
/// Tensors of one shape along a new dimension at position `axis` of the result.
Tensor stack(const std::vector<Tensor>& parts, int axis = 0);
/// `parts` pieces of equal size along `axis`.
std::vector<Tensor> split(const Tensor& x, int parts, int axis = 0);
/// Every index along `axis` on its own, without that dimension, whose size must be known.
std::vector<Tensor> unstack(const Tensor& x, int axis = 0);
/// Backwards along every dimension in `axis`.
Tensor reverse(const Tensor& x, const std::vector<int>& axis);
/// Moves elements by `shift` places towards higher indices; those that leave at the end come in at the front.
Tensor roll(const Tensor& x, std::int64_t shift, int axis);
/// Adds paddings[i][0] elements before and paddings[i][1] after dimension i, all equal to `value`.
Tensor pad(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& paddings, Scalar value = 0);
/// Mirrors images [..., height, width, channels] from left to right.
Tensor flip_left_right(const Tensor& image);
/// Vectors of n0, n1, n2 ... elements -> one array each of shape [n1, n0, n2, ...] that varies along its own dimension
/// (TensorFlow's default indexing, "xy").
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes);

// For the rooms of the library.

/// Elements [begin, begin + size) along `axis`: dimensions, symbolic or not. OutOfRange past the end; `op` opens it.
Tensor slice_axis(const Tensor& x, int axis, std::int64_t begin, std::int64_t size, std::string_view op);
/// The same of a range that lies within the extent for certain.
Tensor slice_within(const Tensor& x, int axis, std::int64_t begin, std::int64_t size);
/// `dimension` is not negative at any call: proven now, or checked for the sizes of each call of the function that is
/// being traced; else OutOfRange, which says `otherwise`.
void require_not_negative(std::int64_t dimension, const std::string& otherwise);
/// n rows that are all `x`: [n, x...].
Tensor repeat_rows(const Tensor& x, std::int64_t n);

/// `x` as a node of its own: what a function makes of its argument is told apart from what it makes of the same tensor
/// as another argument, or as a captured one, which is a constant.
Tensor as_argument(const Tensor& x);
std::vector<Tensor> as_arguments(In tensors);

/// What slices of dimensions that are not known when tracing rest on: while a function is traced, says that `dimension`
/// (a difference, such as s0 - 32) must not be negative in any call, and how to put it to the user. Installed by
/// function/; without it such slices are errors.
struct SymbolicBounds {
  static void (*require_not_negative)(std::int64_t dimension, const std::string& otherwise);
};

}  // namespace gradus
