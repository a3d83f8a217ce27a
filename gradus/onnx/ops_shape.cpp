/// ONNX's ops that make tensors or rearrange them.
#include <algorithm>
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/strided_ops.h"

namespace gradus::onnx {
namespace {

Tensor constant_of(const Call& c) {
  if (c.has_attribute("value")) return c.tensor("value");
  if (c.has_attribute("value_float")) return full({}, c.number("value_float"), f32);
  if (c.has_attribute("value_int")) return full({}, c.integer("value_int"), i64);
  if (c.has_attribute("value_ints")) {
    const auto values = c.integers("value_ints");
    return from_values(values, {static_cast<std::int64_t>(values.size())});
  }
  if (c.has_attribute("value_floats")) {
    const auto numbers = c.numbers("value_floats", {});
    const std::vector<float> values(numbers.begin(), numbers.end());
    return from_values(values, {static_cast<std::int64_t>(values.size())});
  }
  throw Unsupported("Constant without a value of numbers");
}

/// The attribute of the first versions.
Shape shape_in(const Call& c) {
  const std::vector<std::int64_t> extents = c.integers("shape");
  return Shape(std::span(extents));
}

/// 0 takes the extent of the input, -1 the rest.
Tensor reshaped(const Call& c) {
  Shape shape = c.version() >= 5 ? c.shape_of(1) : shape_in(c);
  const bool zero_is_zero = c.flag("allowzero");
  for (int i = 0; i < shape.rank(); ++i) {
    c.require(shape[i] != 0 || zero_is_zero || i < c[0].shape().rank(), "shape has a 0 at ", i, ", but the input has ",
              c[0].shape().rank(), " dimensions");
    if (shape[i] == 0 && !zero_is_zero) shape.set(i, c[0].shape()[i]);
  }
  return reshape(c[0], shape);
}

Tensor flattened(const Call& c) {
  const Shape& in = c[0].shape();
  const std::int64_t given = c.integer("axis", 1);
  const int axis = given == in.rank() ? in.rank() : c.axis(given, in.rank());
  std::int64_t rows = 1, columns = 1;
  for (int d = 0; d < in.rank(); ++d)
    (d < axis ? rows : columns) = dimension::multiply(d < axis ? rows : columns, in[d]);
  return reshape(c[0], {rows, columns});
}

Tensor transposed(const Call& c) {
  const int rank = c[0].shape().rank();
  std::vector<int> order;
  for (int i = rank - 1; i >= 0; --i) order.push_back(i);
  if (c.has_attribute("perm")) order = c.axes(c.integers("perm"), rank);
  return rank == 0 ? c[0] : transpose(c[0], order);
}

Tensor unsqueezed(const Call& c) {
  const auto axes = c.integers_of(1, "axes");
  c.require(axes.has_value(), "axes are missing");
  const int rank = c[0].shape().rank() + static_cast<int>(axes->size());
  std::vector<bool> is_new(static_cast<std::size_t>(rank));
  for (const int axis : c.axes(*axes, rank)) {
    c.require(!is_new[static_cast<std::size_t>(axis)], "axis ", axis, " is named twice");
    is_new[static_cast<std::size_t>(axis)] = true;
  }
  Shape shape;
  int next = 0;
  for (int i = 0; i < rank; ++i) shape.push_back(is_new[static_cast<std::size_t>(i)] ? 1 : c[0].shape()[next++]);
  return reshape(c[0], shape);
}

Tensor squeezed(const Call& c) {
  const auto axes = c.integers_of(1, "axes");
  const std::vector<int> named = axes ? c.axes(*axes, c[0].shape().rank()) : std::vector<int>();
  return axes && named.empty() ? c[0] : squeeze(c[0], named);
}

/// Both ways: dimensions of 1 on either side stretch.
Tensor expanded(const Call& c) { return broadcast_to(c[0], broadcast_shape(c[0].shape(), c.shape_of(1), "Expand")); }

/// Extents as an i64 tensor: values on the host where they are known.
Tensor extents(const Shape& shape, int begin, int end) {
  Tensors parts;
  for (int i = begin; i < end; ++i) parts.push_back(expand_dims(extent(shape[i], i64), 0));
  if (!shape.is_symbolic() || parts.empty()) {
    const std::vector<std::int64_t> known(shape.begin() + begin, shape.begin() + std::max(begin, end));
    return from_values(known, {static_cast<std::int64_t>(known.size())});
  }
  return concat(parts, 0);
}

Tensor shape_of_input(const Call& c) {
  const int rank = c[0].shape().rank();
  const auto bounded = [&](std::int64_t given) {
    return static_cast<int>(std::clamp<std::int64_t>(given < 0 ? given + rank : given, 0, rank));
  };
  const int begin = bounded(c.integer("start", 0)), end = bounded(c.integer("end", rank));
  return extents(c[0].shape(), begin, std::max(begin, end));
}

Tensor size_of_input(const Call& c) { return extent(c[0].shape().size(), i64); }

Tensor constant_of_shape(const Call& c) {
  const Shape shape = c.shape_of(0);
  for (const std::int64_t extent : shape) c.require(extent >= 0 || shape.is_symbolic(), "an extent is ", extent);
  if (!c.has_attribute("value")) return zeros(shape);
  c.require(c.tensor("value").shape().size() == 1, "attribute `value` must be one element");
  return broadcast_to(reshape(c.tensor("value"), {}), shape);
}

Tensor joined(const Call& c) {
  c.require(c.inputs() > 0, "there is no input");
  return concat(c.all_inputs(), c.axis(c.integer("axis"), c[0].shape().rank()));
}

/// Python's slices: bounds are cut to the extent, steps may be negative.
Tensor sliced(const Call& c) {
  const bool attributes = c.version() < 10;
  const auto starts = attributes ? c.integers("starts") : c.integers_of(1);
  const auto ends = attributes ? c.integers("ends") : c.integers_of(2);
  std::vector<std::int64_t> numbers(starts.size()), steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  const auto axes = c.integers_of(attributes ? -1 : 3, "axes").value_or(numbers);
  if (c.has(4)) steps = c.integers_of(4);
  c.require(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
            "starts, ends, axes and steps differ in length");
  std::vector<Range> ranges(static_cast<std::size_t>(c[0].shape().rank()));
  for (std::size_t i = 0; i < starts.size(); ++i)
    ranges[static_cast<std::size_t>(c.axis(axes[i], c[0].shape().rank()))] = {starts[i], ends[i], steps[i]};
  return slice_ranges(c[0], ranges, "Slice");
}

const Table shapes_table{
    {"Cast", {6, 9, 13, 19, 21, 23, 24, 25}, [](const Call& c) { return cast(c[0], dtype_of_code(c.integer("to"))); }},
    {"CastLike", {15, 19, 21, 23, 24, 25}, [](const Call& c) { return cast(c[0], c[1].dtype()); }},
    {"Concat", {4, 11, 13}, joined},
    {"Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, constant_of},
    {"ConstantOfShape", {9, 20, 21, 23, 24, 25}, constant_of_shape},
    {"Expand", {8, 13}, expanded},
    {"Flatten", {1, 9, 11, 13, 21, 23, 24, 25}, flattened},
    {"Reshape", {1, 5, 13, 14, 19, 21, 23, 24, 25}, reshaped},
    {"Shape", {1, 13, 15, 19, 21, 23, 24, 25}, shape_of_input},
    {"Size", {1, 13, 19, 21, 23, 24, 25}, size_of_input},
    {"Slice", {1, 10, 11, 13}, sliced},
    {"Squeeze", {1, 11, 13, 21, 23, 24, 25}, squeezed},
    {"Transpose", {1, 13, 21, 23, 24, 25}, transposed},
    {"Unsqueeze", {1, 11, 13, 21, 23, 24, 25}, unsqueezed},
};

}  // namespace
}  // namespace gradus::onnx
