/// Further ops that rearrange elements: padding with what is there, flips, repetitions, blocks of images. Any dtype;
/// gradients rearrange back, and add where an element was repeated.
#pragma once
#include <array>
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

using Paddings = std::vector<std::array<std::int64_t, 2>>;

/// What stands beyond the ends of 1 2 3: `constant` 0 0|1 2 3|0 0, `reflect` 3 2|1 2 3|2 1, `symmetric` 2 1|1 2 3|3 2,
/// `edge` 1 1|1 2 3|3 3, `wrap` 2 3|1 2 3|1 2.
enum class PadMode { constant, reflect, symmetric, edge, wrap };
/// Adds paddings[i][0] elements before and paddings[i][1] after dimension i; negative ones take elements away. Paddings
/// longer than the dimension go on reflecting or wrapping; of an unknown dimension every call is checked that they are
/// not. InvalidArgument if there is nothing to repeat.
Tensor pad(const Tensor& x, const Paddings& paddings, PadMode mode);
/// The same with `value`, a scalar of the dtype of x, beyond the ends; it gets a gradient.
Tensor pad(const Tensor& x, const Paddings& paddings, const Tensor& value);

/// Pieces of these sizes along `axis`; one of -1 is what the others leave.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis = 0);
/// Every element along `axis` `repeats` times, one after the other; without an axis of x flat.
Tensor repeat(const Tensor& x, std::int64_t repeats, int axis);
Tensor repeat(const Tensor& x, std::int64_t repeats);
/// roll along several axes, one shift each.
Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shift, const std::vector<int>& axis);
/// Mirrors images [..., height, width, channels] upside down.
Tensor flip_up_down(const Tensor& image);
/// Turns images [..., height, width, channels] counter-clockwise by k quarters.
Tensor rot90(const Tensor& image, std::int64_t k = 1);
/// Backwards along every dimension of `axis`; along all if none is named, as NumPy's flip.
Tensor flip(const Tensor& x, const std::vector<int>& axis = {});
/// Along seq_axis, the first seq_lengths[b] elements of row b of batch_axis in reverse order, the others as they are.
/// A length outside [0, n] is an OutOfRange when the value is observed.
Tensor reverse_sequence(const Tensor& x, const Tensor& seq_lengths, int seq_axis, int batch_axis = 0);
/// lengths: integers [...] -> bool [..., maxlen]: whether the position is before the length.
Tensor sequence_mask(const Tensor& lengths, std::int64_t maxlen);

struct BlockOptions {
  bool channels_first = false;  // [batch, channels, height, width] instead of [batch, height, width, channels]
  bool depth_first = true;  // of the channels the place in the block is the slower part (ONNX: DCR), else the faster
};
/// Blocks of block_size x block_size pixels become channels.
Tensor space_to_depth(const Tensor& x, std::int64_t block_size, const BlockOptions& options = {});
/// And back.
Tensor depth_to_space(const Tensor& x, std::int64_t block_size, const BlockOptions& options = {});
/// x: [batch, space..., rest...] -> [batch * blocks, space / block_shape..., rest...] after padding with zeros.
Tensor space_to_batch_nd(const Tensor& x, const std::vector<std::int64_t>& block_shape, const Paddings& paddings);
/// And back, without `crops` elements at the ends.
Tensor batch_to_space_nd(const Tensor& x, const std::vector<std::int64_t>& block_shape, const Paddings& crops);

enum class GridIndexing { xy, ij };
/// As meshgrid(axes); `ij` gives arrays [n0, n1, n2, ...].
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, GridIndexing indexing);

/// start, start + delta ... before `limit`, none if there is none. Without a dtype i32, f32 if a number is fractional.
/// OutOfRange if the dtype does not hold them.
Tensor range(Scalar start, Scalar limit, Scalar delta, std::optional<DType> dtype = {});

/// How one_hot writes: on_value where the label is, off_value elsewhere: scalars of one dtype, whose gradients add up.
struct OneHotOptions {
  int axis = -1;                // of the new dimension, in the result
  bool count_from_end = false;  // labels in [-classes, 0) count from the end, as in ONNX; else their rows are off
};
Tensor one_hot(const Tensor& labels, std::int64_t classes, const Tensor& on_value, const Tensor& off_value,
               const OneHotOptions& options = {});

/// The shape of x as numbers, i32 [rank], and the number of its elements; known at each call where they are not when
/// tracing.
Tensor shape(const Tensor& x, DType dtype = i32);
Tensor size(const Tensor& x, DType dtype = i32);

}  // namespace gradus
