/// Further ops that rearrange elements, by views, concat and gather.
#include "gradus/ops/layout.h"
#include <algorithm>
#include <cmath>
#include <optional>
#include "gradus/graph/context.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 40;  // of paddings and repetitions: beyond are mistakes

/// `count` elements of x from `begin` on along `axis`, in that order or reversed.
Tensor piece(const Tensor& x, int axis, std::int64_t begin, std::int64_t count, bool reversed) {
  require_not_negative(
      begin, [&] { return text("pad: a padding of ", count, " is longer than dimension ", axis, " of ", x.spec()); });
  const Tensor part = slice_axis(x, axis, begin, count, "pad");
  return reversed ? reverse(part, {axis}) : part;
}

/// The elements before and after dimension `axis` of x.
struct Margins {
  std::int64_t before, after;
};

/// The element that stands at position `at` of the endless array that `mode` makes of n elements.
std::int64_t source_of(std::int64_t at, std::int64_t n, PadMode mode) {
  if (mode == PadMode::edge) return std::clamp<std::int64_t>(at, 0, n - 1);
  const std::int64_t period = mode == PadMode::wrap        ? n
                              : mode == PadMode::symmetric ? 2 * n
                                                           : std::max<std::int64_t>(2 * n - 2, 1);
  const std::int64_t within = (at % period + period) % period;
  if (within < n) return within;
  return mode == PadMode::symmetric ? period - 1 - within : period - within;
}

/// Margins longer than the dimension: each element by its index.
Tensor pad_by_index(const Tensor& x, int axis, Margins m, PadMode mode) {
  const std::int64_t n = x.shape()[axis];
  require(n >= 0, "pad: paddings ", m.before, " and ", m.after, " of dimension ", axis, " of ", x.spec(),
          " are longer than it, so its size must be known when tracing");
  require<ResourceExhausted>(m.before + m.after + n < std::int64_t{1} << 28, "pad: paddings ", m.before, " and ",
                             m.after, " of dimension ", axis, " of ", x.spec(), " are too long to repeat it");
  std::vector<std::int64_t> from;
  for (std::int64_t at = -m.before; at < n + m.after; ++at) from.push_back(source_of(at, n, mode));
  return gather(x, from_values(from, {static_cast<std::int64_t>(from.size())}), axis);
}

Tensor edge_of(const Tensor& x, int axis, std::int64_t at, std::int64_t count) {
  Shape shape = x.shape();
  shape.set(axis, count);
  return broadcast_to(slice_within(x, axis, at, 1), shape);
}

Tensor pad_axis(const Tensor& x, int axis, Margins m, PadMode mode) {
  const std::int64_t n = x.shape()[axis];
  if (m.before == 0 && m.after == 0) return x;
  require(n != 0, "pad: dimension ", axis, " of ", x.spec(), " has no element to repeat");
  const std::int64_t skipped = mode == PadMode::reflect;  // the end itself is not mirrored
  if (mode != PadMode::edge && SizeChoice::decide(n > 0 && std::max(m.before, m.after) > n - skipped))
    return pad_by_index(x, axis, m, mode);
  const auto from_end = [&](std::int64_t k) { return dimension::subtract(n, k); };
  std::vector<Tensor> parts;
  if (m.before > 0)
    parts.push_back(mode == PadMode::edge   ? edge_of(x, axis, 0, m.before)
                    : mode == PadMode::wrap ? piece(x, axis, from_end(m.before), m.before, false)
                                            : piece(x, axis, skipped, m.before, true));
  parts.push_back(x);
  if (m.after > 0)
    parts.push_back(mode == PadMode::edge   ? edge_of(x, axis, from_end(1), m.after)
                    : mode == PadMode::wrap ? piece(x, axis, 0, m.after, false)
                                            : piece(x, axis, from_end(m.after + skipped), m.after, true));
  return concat(parts, axis);
}

void require_paddings(std::string_view op, const Tensor& x, const Paddings& paddings) {
  require(static_cast<int>(paddings.size()) == x.shape().rank(), op, ": ", paddings.size(), " pairs of paddings for ",
          x.spec());
  for (const auto& [before, after] : paddings)
    require(std::max(before, after) < longest && std::min(before, after) > -longest, op, ": paddings ", before, " and ",
            after, " are too long");
}

/// x without what negative paddings take away.
Tensor cropped(const Tensor& x, const Paddings& paddings) {
  Tensor out = x;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const auto [before, after] = paddings[static_cast<std::size_t>(i)];
    const std::int64_t front = before < 0 ? -before : 0, back = after < 0 ? -after : 0;
    if (front + back == 0) continue;
    const std::int64_t length = dimension::subtract(out.shape()[i], front + back);
    require_not_negative(length, [&] {
      return text("pad: negative paddings take ", front + back, " elements from dimension ", i, " of ", x.spec());
    });
    out = slice_within(out, i, front, length);
  }
  return out;
}

/// With `gap(shape)` around it.
Tensor padded(const Tensor& x, const Paddings& paddings, const auto& gap) {
  require_paddings("pad", x, paddings);
  Tensor out = cropped(x, paddings);
  for (int i = 0; i < x.shape().rank(); ++i) {
    std::vector<Tensor> parts;
    const auto add = [&](std::int64_t n) {
      Shape shape = out.shape();
      shape.set(i, n);
      if (n > 0) parts.push_back(gap(shape));
    };
    add(paddings[static_cast<std::size_t>(i)][0]);
    parts.push_back(out);
    add(paddings[static_cast<std::size_t>(i)][1]);
    out = concat(parts, i);
  }
  return out;
}

}  // namespace

Tensor pad(const Tensor& x, const Paddings& paddings, const Tensor& value) {
  require(value.dtype() == x.dtype() && value.shape().size() == 1, "pad: value is ", value.spec(),
          ", expected a scalar of the dtype of x ", x.spec());
  const Tensor scalar = reshape(widened(value), {});  // so that its gradient is summed before it is rounded
  return padded(x, paddings, [&](const Shape& gap) { return cast(broadcast_to(scalar, gap), x.dtype()); });
}

Tensor pad(const Tensor& x, const Paddings& paddings, PadMode mode) {
  if (mode == PadMode::constant) return padded(x, paddings, [&](const Shape& gap) { return fill(gap, 0, x.dtype()); });
  require_paddings("pad", x, paddings);
  return in_computed_dtype(cropped(x, paddings), [&](Tensor out) {  // where gradients of repeated elements are summed
    for (int i = 0; i < x.shape().rank(); ++i) {
      const auto [before, after] = paddings[static_cast<std::size_t>(i)];
      out = pad_axis(out, i, {std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0)}, mode);
    }
    return out;
  });
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, int axis) {
  require(x.shape().rank() > 0, "split: ", x.spec(), " has no axis");
  const int at = x.shape().normalized(axis);
  std::int64_t rest = x.shape()[at];
  int open = 0;
  for (std::int64_t size : sizes) {
    require(size >= -1, "split: ", size, " is no size of a piece");
    if (size == -1) ++open;
    else rest = dimension::subtract(rest, size);
  }
  require(open <= 1, "split: ", open, " sizes are -1, only one can be worked out");
  require(open == 1 || rest == 0, "split: the sizes do not add up to dimension ", at, " of ", x.spec(), ": ",
          dimension::to_text(rest), " remain");
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (std::int64_t size : sizes) {
    const std::int64_t length = size == -1 ? rest : size;
    require_not_negative(length,
                         [&] { return text("split: the sizes are more than dimension ", at, " of ", x.spec()); });
    out.push_back(slice_axis(x, at, begin, length, "split"));
    begin = dimension::add(begin, length);
  }
  return out;
}

Tensor repeat(const Tensor& x, std::int64_t repeats, int axis) {
  require(x.shape().rank() > 0, "repeat: ", x.spec(), " has no axis");
  require((repeats >= 0 && repeats < longest) || (Context::current() && dimension::symbols_in(repeats) > 0),
          "repeat: ", repeats, " is no number of repetitions");
  const int at = x.shape().normalized(axis);
  Shape result = x.shape();
  result.set(at, dimension::multiply(result[at], repeats));
  std::int64_t outer = 1, inner = 1;  // [outer, 1, inner] is repeated to [outer, repeats, inner]
  for (int i = 0; i <= at; ++i) outer = dimension::multiply(outer, x.shape()[i]);
  for (int i = at + 1; i < x.shape().rank(); ++i) inner = dimension::multiply(inner, x.shape()[i]);
  return reshape(broadcast_to(reshape(x, {outer, 1, inner}), {outer, repeats, inner}), result);
}

Tensor repeat(const Tensor& x, std::int64_t repeats) { return repeat(reshape(x, {x.shape().size()}), repeats, 0); }

Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shift, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  require(shift.size() == axis.size(), "roll: ", shift.size(), " shifts along ", axis.size(), " axes");
  Tensor out = x;
  for (std::size_t i = 0; i < shift.size(); ++i) out = roll(out, shift[i], axis[i]);
  return out;
}

namespace {

void require_image(std::string_view op, const Tensor& image) {
  require(image.shape().rank() >= 3, op, ": expected images [..., height, width, channels], got ", image.spec());
}

}  // namespace

Tensor flip_up_down(const Tensor& image) {
  require_image("flip_up_down", image);
  return reverse(image, {-3});
}

Tensor rot90(const Tensor& image, std::int64_t k) {
  require_image("rot90", image);
  const std::int64_t quarters = (k % 4 + 4) % 4;
  if (quarters == 0) return image;
  if (quarters == 2) return reverse(image, {-3, -2});
  std::vector<int> order;
  const int rank = image.shape().rank();
  for (int i = 0; i < rank; ++i) order.push_back(i == rank - 3 ? rank - 2 : i == rank - 2 ? rank - 3 : i);
  return quarters == 1 ? reverse(transpose(image, order), {-3}) : transpose(reverse(image, {-3}), order);
}

Tensor flip(const Tensor& x, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  std::vector<int> all = axis;
  for (int i = 0; axis.empty() && i < x.shape().rank(); ++i) all.push_back(i);
  return reverse(x, all);
}

Tensor reverse_sequence(const Tensor& x, const Tensor& seq_lengths, int seq_axis, int batch_axis) {
  require(x.shape().rank() >= 2, "reverse_sequence: x is ", x.spec(), ", expected at least two dimensions");
  const int along = x.shape().normalized(seq_axis), of_rows = x.shape().normalized(batch_axis), rank = x.shape().rank();
  require(along != of_rows, "reverse_sequence: seq_axis and batch_axis of ", x.spec(), " are both ", along);
  const std::int64_t n = x.shape()[along], rows = x.shape()[of_rows];
  require(seq_lengths.shape() == Shape{rows}, "reverse_sequence: seq_lengths are ", seq_lengths.spec(),
          ", expected one number for each of ", dimension::to_text(rows), " rows");
  const Tensor given = as_indices("reverse_sequence", seq_lengths);
  const Tensor length = expand_dims(cast(check_range(given, dimension::add(n, 1), false), i64), -1);  // [rows, 1]
  const Tensor position = iota_along(2, 1, n, i64);
  const Tensor from = where(position < length, length - fill({}, 1, i64) - position, position);
  std::vector<int> order{of_rows, along}, back(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i)
    if (i != along && i != of_rows) order.push_back(i);
  for (int i = 0; i < rank; ++i) back[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = i;
  return transpose(gather(transpose(x, order), from, 1, 1), back);
}

Tensor sequence_mask(const Tensor& lengths, std::int64_t maxlen) {
  const Tensor given = expand_dims(as_indices("sequence_mask", lengths), -1);
  require(maxlen >= 0 || dimension::symbols_in(maxlen) > 0, "sequence_mask: maxlen is ", maxlen);
  return iota_along(given.shape().rank(), given.shape().rank() - 1, maxlen, given.dtype()) < given;
}

namespace {

/// An image as [batch, height, width, channels] or [batch, channels, height, width].
struct Image {
  std::int64_t batch, height, width, channels;
};

Image image_of(std::string_view op, const Tensor& x, std::int64_t block, bool channels_first) {
  require(x.shape().rank() == 4, op, ": x is ", x.spec(), ", expected four dimensions");
  require(block >= 1 && block < 1 << 20, op, ": block_size is ", block);
  const Shape& s = x.shape();
  return channels_first ? Image{s[0], s[2], s[3], s[1]} : Image{s[0], s[1], s[2], s[3]};
}

std::int64_t parts_of(std::string_view op, std::int64_t size, std::int64_t block, const Tensor& x) {
  const std::optional<std::int64_t> parts = dimension::divide(size, block);
  require(parts.has_value(), op, ": ", dimension::to_text(size), " of ", x.spec(), " is no multiple of ", block);
  return *parts;
}

}  // namespace

Tensor space_to_depth(const Tensor& x, std::int64_t block_size, const BlockOptions& options) {
  const Image in = image_of("space_to_depth", x, block_size, options.channels_first);
  const std::int64_t b = block_size, h = parts_of("space_to_depth", in.height, b, x),
                     w = parts_of("space_to_depth", in.width, b, x);
  const std::int64_t deep = dimension::multiply(in.channels, b * b);
  if (options.channels_first) {
    const Tensor blocks = reshape(x, {in.batch, in.channels, h, b, w, b});
    const std::vector<int> order = options.depth_first ? std::vector{0, 3, 5, 1, 2, 4} : std::vector{0, 1, 3, 5, 2, 4};
    return reshape(transpose(blocks, order), {in.batch, deep, h, w});
  }
  const Tensor blocks = reshape(x, {in.batch, h, b, w, b, in.channels});
  const std::vector<int> order = options.depth_first ? std::vector{0, 1, 3, 2, 4, 5} : std::vector{0, 1, 3, 5, 2, 4};
  return reshape(transpose(blocks, order), {in.batch, h, w, deep});
}

Tensor depth_to_space(const Tensor& x, std::int64_t block_size, const BlockOptions& options) {
  const Image in = image_of("depth_to_space", x, block_size, options.channels_first);
  const std::int64_t b = block_size, c = parts_of("depth_to_space", in.channels, b * b, x);
  const std::int64_t height = dimension::multiply(in.height, b), width = dimension::multiply(in.width, b);
  if (options.channels_first) {
    const Tensor blocks = options.depth_first
                              ? transpose(reshape(x, {in.batch, b, b, c, in.height, in.width}), {0, 3, 4, 1, 5, 2})
                              : transpose(reshape(x, {in.batch, c, b, b, in.height, in.width}), {0, 1, 4, 2, 5, 3});
    return reshape(blocks, {in.batch, c, height, width});
  }
  const Tensor blocks = options.depth_first
                            ? transpose(reshape(x, {in.batch, in.height, in.width, b, b, c}), {0, 1, 3, 2, 4, 5})
                            : transpose(reshape(x, {in.batch, in.height, in.width, c, b, b}), {0, 1, 4, 2, 5, 3});
  return reshape(blocks, {in.batch, height, width, c});
}

namespace {

/// Moves blocks of one dimension of space at a time, so that no rank grows past its own: dimension `axis` of
/// [batch, ...] gives its place in the block to the batch.
Tensor block_to_batch(const Tensor& x, int axis, std::int64_t block) {
  Shape shape = x.shape();
  const std::int64_t batch = shape[0], parts = parts_of("space_to_batch_nd", shape[axis], block, x);
  std::int64_t before = 1, after = 1;
  for (int i = 1; i < axis; ++i) before = dimension::multiply(before, shape[i]);
  for (int i = axis + 1; i < shape.rank(); ++i) after = dimension::multiply(after, shape[i]);
  shape.set(0, dimension::multiply(batch, block));
  shape.set(axis, parts);
  return reshape(transpose(reshape(x, {batch, before, parts, block, after}), {3, 0, 1, 2, 4}), shape);
}

Tensor batch_to_block(const Tensor& x, int axis, std::int64_t block) {
  Shape shape = x.shape();
  const std::int64_t n = shape[axis], batch = parts_of("batch_to_space_nd", shape[0], block, x);
  std::int64_t before = 1, after = 1;
  for (int i = 1; i < axis; ++i) before = dimension::multiply(before, shape[i]);
  for (int i = axis + 1; i < shape.rank(); ++i) after = dimension::multiply(after, shape[i]);
  shape.set(0, batch);
  shape.set(axis, dimension::multiply(n, block));
  return reshape(transpose(reshape(x, {block, batch, before, n, after}), {1, 2, 3, 0, 4}), shape);
}

void require_blocks(std::string_view op, const Tensor& x, const std::vector<std::int64_t>& block_shape,
                    const Paddings& paddings) {
  require(x.shape().rank() > static_cast<int>(block_shape.size()) && paddings.size() == block_shape.size(), op,
          ": x is ", x.spec(), ", ", block_shape.size(), " numbers of block_shape and ", paddings.size(), " pairs");
  for (std::int64_t block : block_shape) require(block >= 1 && block < 1 << 20, op, ": a block of ", block);
  for (const auto& [before, after] : paddings)
    require(before >= 0 && after >= 0, op, ": ", before, " and ", after, " must not be negative");
}

}  // namespace

Tensor space_to_batch_nd(const Tensor& x, const std::vector<std::int64_t>& block_shape, const Paddings& paddings) {
  require_blocks("space_to_batch_nd", x, block_shape, paddings);
  Paddings all(static_cast<std::size_t>(x.shape().rank()), {0, 0});
  std::ranges::copy(paddings, all.begin() + 1);
  Tensor out = pad(x, all, PadMode::constant);
  for (std::size_t i = block_shape.size(); i-- > 0;) out = block_to_batch(out, static_cast<int>(i) + 1, block_shape[i]);
  return out;
}

Tensor batch_to_space_nd(const Tensor& x, const std::vector<std::int64_t>& block_shape, const Paddings& crops) {
  require_blocks("batch_to_space_nd", x, block_shape, crops);
  Tensor out = x;
  for (std::size_t i = 0; i < block_shape.size(); ++i)
    out = batch_to_block(out, static_cast<int>(i) + 1, block_shape[i]);
  Paddings all(static_cast<std::size_t>(x.shape().rank()), {0, 0});
  for (std::size_t i = 0; i < crops.size(); ++i) all[i + 1] = {-crops[i][0], -crops[i][1]};
  return pad(out, all, PadMode::constant);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, GridIndexing indexing) {
  if (indexing == GridIndexing::xy || axes.size() < 2) return meshgrid(axes);
  std::vector<Tensor> exchanged = axes;
  std::swap(exchanged[0], exchanged[1]);
  std::vector<Tensor> grid = meshgrid(exchanged);
  std::swap(grid[0], grid[1]);
  return grid;
}

namespace {

Tensor range_of_floats(double start, double limit, double delta, DType dtype) {
  require(delta != 0 && std::isfinite(start) && std::isfinite(limit) && std::isfinite(delta), "range: from ", start,
          " to ", limit, " in steps of ", delta);
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  require<OutOfRange>(count < static_cast<double>(longest), "range: ", count, " elements are too many");
  for (const double end : {start, start + (count - 1) * delta})
    require<OutOfRange>(count == 0 || scalar::Literal(end).fits(dtype), "range: ", dtype, " does not hold ", end);
  const Tensor steps = iota({static_cast<std::int64_t>(count)}, f64);
  return cast(steps * fill({}, delta, f64) + fill({}, start, f64), dtype);
}

Tensor range_of_integers(std::int64_t start, std::int64_t limit, std::int64_t delta, DType dtype) {
  require(delta != 0, "range: steps of 0 from ", start, " to ", limit);
  require<OutOfRange>(std::abs(static_cast<double>(limit) - static_cast<double>(start)) < static_cast<double>(longest),
                      "range: from ", start, " to ", limit, " are too many elements");
  const std::int64_t span = delta > 0 ? limit - start : start - limit;
  const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta) : -static_cast<std::uint64_t>(delta);
  const std::int64_t count =
      span <= 0 ? 0 : static_cast<std::int64_t>((static_cast<std::uint64_t>(span) - 1) / step) + 1;
  if (count) {  // OutOfRange if the dtype does not hold the ends
    (void)constant(start, dtype);
    (void)constant(start + (count - 1) * delta, dtype);
  }
  return cast(iota({count}, i64) * fill({}, delta, i64) + fill({}, start, i64), dtype);
}

}  // namespace

Tensor range(Scalar start, Scalar limit, Scalar delta, std::optional<DType> dtype) {
  const scalar::Literal numbers[] = {start.literal(), limit.literal(), delta.literal()};
  const bool whole = std::ranges::all_of(numbers, [](const scalar::Literal& n) { return n.is_integral(); });
  const DType t = dtype.value_or(whole ? i32 : f32);
  require(t != boolean, "range: expected a number type, got bool");
  if (is_floating(t)) return range_of_floats(numbers[0].real(), numbers[1].real(), numbers[2].real(), t);
  require(whole, "range: ", numbers[0].real(), " to ", numbers[1].real(), " in steps of ", numbers[2].real(), " for ",
          t, ": a fraction; name a floating dtype");
  for (const scalar::Literal& n : numbers)
    require<OutOfRange>(!n.is_huge(), "range: ", n.bits_as(u64), " is 2^63 or more; expected numbers that i64 holds");
  const auto integer = [&](int i) { return static_cast<std::int64_t>(numbers[i].bits_as(i64)); };
  return range_of_integers(integer(0), integer(1), integer(2), t);
}

Tensor one_hot(const Tensor& labels, std::int64_t classes, const Tensor& on_value, const Tensor& off_value,
               const OneHotOptions& options) {
  require(on_value.dtype() == off_value.dtype() && on_value.shape().size() == 1 && off_value.shape().size() == 1,
          "one_hot: on_value is ", on_value.spec(), ", off_value ", off_value.spec(),
          "; expected scalars of one dtype");
  require(classes >= 0 || dimension::symbols_in(classes) > 0, "one_hot: ", classes, " is no number of classes");
  Tensor at = as_indices("one_hot", labels);
  if (options.count_from_end) at = wrapped_indices(at, classes);
  const Tensor column = expand_dims(at, options.axis);
  const int rank = column.shape().rank(), axis = column.shape().normalized(options.axis);
  return where(equal(column, iota_along(rank, axis, classes, column.dtype())), reshape(on_value, {}),
               reshape(off_value, {}));
}

Tensor shape(const Tensor& x, DType dtype) {
  require(dtype != boolean, "shape: expected a number type, got bool");
  std::vector<Tensor> numbers;
  for (std::int64_t d : x.shape()) {
    require_held("shape", dtype, d);
    numbers.push_back(extent(d, dtype));
  }
  return numbers.empty() ? zeros({0}, dtype) : stack(numbers);
}

Tensor size(const Tensor& x, DType dtype) {
  require(dtype != boolean, "size: expected a number type, got bool");
  require_held("size", dtype, x.shape().size());
  return element_count(x, dtype);
}

}  // namespace gradus
