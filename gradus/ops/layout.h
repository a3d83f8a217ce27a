/// Further ops that rearrange elements: padding by repetition, flips, repetitions, blocks of images. Any dtype.
/// Gradients rearrange back, and add up where an element was repeated.
#pragma once
#include <array>
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"
#include "gradus/ops/named_axis.h"
#include "gradus/ops/windows.h"

namespace gradus {

/// Values beyond the ends of 1 2 3: `constant` 0 0|1 2 3|0 0, `reflect` 3 2|1 2 3|2 1, `symmetric` 2 1|1 2 3|3 2,
/// `edge` 1 1|1 2 3|3 3, `wrap` 2 3|1 2 3|1 2.
enum class PadMode { constant, reflect, symmetric, edge, wrap };
/// Adds paddings[i][0] elements before and paddings[i][1] after dimension i; negative ones remove elements. Paddings
/// longer than the dimension continue to reflect or wrap. If the dimension is unknown, every call checks that they are
/// not longer. InvalidArgument if there is nothing to repeat.
Tensor pad(const Tensor& x, const Paddings& paddings, PadMode mode);
/// Pads with `value`, a scalar of the dtype of x, which gets a gradient.
Tensor pad(const Tensor& x, const Paddings& paddings, const Tensor& value);

/// Pieces of these sizes along `axis`. A size of -1 stands for the rest.
std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis = 0);
inline std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, NamedAxis named) {
  return split(x, sizes, named.axis);
}
/// Repeats every element along `axis` `repeats` times, one after the other. Without an axis x is flattened.
Tensor repeat(const Tensor& x, std::int64_t repeats, int axis);
inline Tensor repeat(const Tensor& x, std::int64_t repeats, NamedAxis named) { return repeat(x, repeats, named.axis); }
Tensor repeat(const Tensor& x, std::int64_t repeats);
/// roll along several axes, one shift each.
Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shift, const NamedAxes& named);
template <class = void>
Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shift, const std::vector<int>& axis) {
  return roll(x, shift, NamedAxes{axis});
}
/// Mirrors images [..., height, width, channels] upside down.
Tensor flip_up_down(const Tensor& image);
/// Rotates images [..., height, width, channels] counter-clockwise by k quarter turns.
Tensor rot90(const Tensor& image, std::int64_t k = 1);
/// Reverses every dimension of `axis`, or all dimensions if none is named, as NumPy's flip.
Tensor flip(const Tensor& x, const NamedAxes& named);
template <class = void> Tensor flip(const Tensor& x, const std::vector<int>& axis = {}) {
  return flip(x, NamedAxes{axis});
}
/// Reverses the first seq_lengths[b] elements along seq_axis, for each row b of batch_axis; the others stay. A length
/// outside [0, n] is an OutOfRange when the value is observed.
Tensor reverse_sequence(const Tensor& x, const Tensor& seq_lengths, int seq_axis, int batch_axis = 0);
/// Options of reverse_sequence.
struct ReverseSequenceOptions {
  int seq_axis;        // axis along which elements are reversed
  int batch_axis = 0;  // axis of the rows, one length each
};
inline Tensor reverse_sequence(const Tensor& x, const Tensor& seq_lengths, ReverseSequenceOptions options) {
  return reverse_sequence(x, seq_lengths, options.seq_axis, options.batch_axis);
}
/// lengths: integers [...] -> bool [..., maxlen]: true where the position is before the length.
Tensor sequence_mask(const Tensor& lengths, std::int64_t maxlen);

/// Options of space_to_depth and depth_to_space.
struct BlockOptions {
  bool channels_first = false;  // [batch, channels, height, width] instead of [batch, height, width, channels]
  bool depth_first = true;  // the position in a block is the slower part of the channel (ONNX: DCR), else the faster
};
/// Turns blocks of block_size x block_size pixels into channels.
Tensor space_to_depth(const Tensor& x, std::int64_t block_size, const BlockOptions& options = {});
/// Inverse of space_to_depth.
Tensor depth_to_space(const Tensor& x, std::int64_t block_size, const BlockOptions& options = {});
/// x: [batch, space..., rest...] -> [batch * blocks, space / block_shape..., rest...], after padding with zeros.
Tensor space_to_batch_nd(const Tensor& x, const std::vector<std::int64_t>& block_shape, const Paddings& paddings);
/// Inverse of space_to_batch_nd; `crops` elements are cut off at the ends.
Tensor batch_to_space_nd(const Tensor& x, const std::vector<std::int64_t>& block_shape, const Paddings& crops);

/// Order of the dimensions of meshgrid, as in NumPy.
enum class GridIndexing { xy, ij };
/// As meshgrid(axes). `ij` gives arrays [n0, n1, n2, ...].
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, GridIndexing indexing);

/// start, start + delta ... before `limit`; empty if there is none. The default dtype is i32, or f32 if a number is
/// fractional. OutOfRange if the dtype does not hold them.
Tensor range(Scalar start, Scalar limit, Scalar delta, std::optional<DType> dtype = {});

/// Options of one_hot with values.
struct OneHotOptions {
  int axis = -1;                // position of the new dimension in the result
  bool count_from_end = false;  // labels in [-classes, 0) count from the end, as in ONNX; else their rows are off_value
};
/// one_hot with on_value at the label and off_value elsewhere: scalars of one dtype, whose gradients add up.
Tensor one_hot(const Tensor& labels, std::int64_t classes, const Tensor& on_value, const Tensor& off_value,
               const OneHotOptions& options = {});

/// The shape of x as numbers, [rank]. Sizes that are unknown when tracing are known at each call.
Tensor shape(const Tensor& x, DType dtype = i32);
/// The number of elements of x, as a scalar; where it is unknown when tracing, it is known at each call.
Tensor size(const Tensor& x, DType dtype = i32);

}  // namespace gradus
