/// Ops that rearrange elements, by views, reshape and concat.
#include "gradus/ops/shape.h"
#include <algorithm>
#include <numeric>
#include "gradus/graph/context.h"
#include "gradus/graph/mask.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/views.h"
#include "gradus/ops/widened.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {

namespace {

/// Sizes that a user may have written: a negative number is a symbol only while something is traced.
void require_sizes(std::string_view op, const Shape& shape) {
  for (std::int64_t d : shape)
    require(d >= 0 || (dimension::is_symbolic(d) && Context::current()), op,
            ": expected numbers that are not negative, got ", d);
}

/// The axis, counted from the end.
int from_end(const Tensor& x, int axis) { return x.shape().normalized(axis) - x.shape().rank(); }

auto outside(std::string_view op, std::int64_t begin, std::int64_t size, int axis, const Tensor& x) {
  return [=, &x] {
    return text(op, ": [", dimension::to_text(begin), ", ", dimension::to_text(dimension::add(begin, size)),
                ") is outside dimension ", x.shape().normalized(axis), " of ", x.spec());
  };
}

std::int64_t fraction_of(std::int64_t elements, std::int64_t known, const Tensor& x, const Shape& shape) {
  require(known != 0 || elements != 0, "reshape: ", x.spec(), " has no elements, so the open dimension of shape ",
          shape, " could be of any size, since another one is 0: write the size");
  require(known != 0, "reshape: ", x.spec(), " has ", dimension::to_text(elements), " elements, shape ", shape,
          " has none, whatever the open dimension is: 0 is a size; a dimension that is to stay is x.shape()[axis]");
  const std::optional<std::int64_t> rest = dimension::divide(elements, known);
  require(rest.has_value(), "reshape: ", x.spec(), " has ", dimension::to_text(elements), " elements, which shape ",
          shape, " cannot hold: they are no multiple of ", dimension::to_text(known));
  return *rest;
}

void require_parts(std::string_view op, const std::vector<Tensor>& parts) {
  require(!parts.empty(), op, ": expected at least one tensor, got none");
}

}  // namespace

void detail::require_not_negative(std::int64_t dimension, const std::string& otherwise) {
  if (dimension::is_never_negative(dimension)) return;
  require<OutOfRange>(dimension::symbols_in(dimension) > 0, otherwise);
  require(Context::current() != nullptr, otherwise, ": its size is not known");
  Context::current()->require_not_negative(dimension, otherwise);
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  Shape wanted = shape;
  const auto open = std::count(shape.begin(), shape.end(), any_size);
  require(open <= 1, "reshape: shape ", shape, " leaves ", open, " dimensions open, only one can be worked out");
  if (open == 1) {
    const int at = static_cast<int>(std::find(shape.begin(), shape.end(), any_size) - shape.begin());
    wanted.set(at, 1);
    require_sizes("reshape", wanted);
    wanted.set(at, fraction_of(x.shape().size(), wanted.size(), x, shape));
  }
  require_sizes("reshape", wanted);
  return x.shape() == wanted ? x : apply(ReshapeOp{wanted}, x);
}

Tensor detail::as_argument(const Tensor& x) {
  const Tensor same = apply(ReshapeOp{x.shape()}, x);
  if (const Tensor places = SequenceMask::of(x); places.defined()) [[unlikely]]
    SequenceMask::set(same, places);
  return same;
}

Tensors detail::as_arguments(In tensors) {
  Tensors result;
  for (const Tensor& x : tensors) result.push_back(as_argument(x));
  return result;
}

Tensor squeeze(const Tensor& x, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  std::uint32_t dropped = 0;
  for (int a : axis) {
    const int at = x.shape().normalized(a);
    require(x.shape()[at] == 1, "squeeze: dimension ", at, " of ", x.spec(), " is ", dimension::to_text(x.shape()[at]),
            ", only a dimension of 1 can be dropped");
    dropped |= 1u << at;
  }
  Shape shape;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (axis.empty() ? x.shape()[i] != 1 : !(dropped >> i & 1)) shape.push_back(x.shape()[i]);
  return reshape(x, shape);
}

Tensor expand_dims(const Tensor& x, int axis) {
  const int rank = x.shape().rank();
  require<OutOfRange>(axis >= -rank - 1 && axis <= rank, "expand_dims: axis ", axis, " is out of range for ", x.spec(),
                      ": expected ", -rank - 1, " to ", rank);
  Shape shape = x.shape();
  shape.insert(axis < 0 ? axis + rank + 1 : axis, 1);
  return reshape(x, shape);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  require_sizes("broadcast_to", shape);
  return apply(Broadcast{shape}, x);
}

bool detail::broadcasts_to(const Shape& shape, const Shape& wanted) {
  if (shape.rank() > wanted.rank()) return false;
  for (int i = -shape.rank(); i < 0; ++i)
    if (shape[i] != 1 && shape[i] != wanted[i]) return false;
  return true;
}

Tensor detail::repeat_rows(const Tensor& x, std::int64_t n) {
  Shape shape = x.shape();
  shape.insert(0, n);
  return apply(Broadcast{shape}, x);
}

Tensor transpose(const Tensor& x, const std::vector<int>& order) {
  const int rank = x.shape().rank();
  require(static_cast<int>(order.size()) == rank, "transpose: an order of ", order.size(), " axes for ", x.spec());
  Shape from_last;
  std::uint32_t seen = 0;
  bool moves = false;
  for (int i = 0; i < rank; ++i) {
    const int axis = x.shape().normalized(order[static_cast<std::size_t>(i)]);
    require(!(seen >> axis & 1), "transpose: the order names axis ", axis, " of ", x.spec(), " twice");
    seen |= 1u << axis;
    moves = moves || axis != i;
    from_last.push_back(rank - 1 - axis);
  }
  return moves ? apply(Transpose{from_last}, x) : x;
}

Tensor transpose(const Tensor& x) {
  const int rank = x.shape().rank();
  require(rank >= 2, "transpose: expected at least two dimensions, got ", x.spec());
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, order);
}

Tensor detail::slice_axis(const Tensor& x, int axis, std::int64_t begin, std::int64_t size, std::string_view op) {
  const std::int64_t extent = x.shape()[axis];
  require_not_negative(dimension::subtract(extent, dimension::add(begin, size)), outside(op, begin, size, axis, x));
  return slice_within(x, axis, begin, size);
}

Tensor detail::slice_within(const Tensor& x, int axis, std::int64_t begin, std::int64_t size) {
  if (begin == 0 && size == x.shape()[axis]) return x;
  Shape start, box = x.shape();
  for (int i = 0; i < box.rank(); ++i) start.push_back(0);
  start.set(axis, begin);
  box.set(axis, size);
  return apply(Slice{start, box}, x);
}

Tensor slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size) {
  const int rank = x.shape().rank();
  require(static_cast<int>(begin.size()) == rank && static_cast<int>(size.size()) == rank, "slice: begin has ",
          begin.size(), " numbers and size ", size.size(), ", expected ", rank, " each for ", x.spec());
  Shape start(begin), box;
  require_sizes("slice", start);
  for (int i = 0; i < rank; ++i) {
    const std::int64_t extent = x.shape()[i], first = start[i], asked = size[static_cast<std::size_t>(i)];
    const std::int64_t length = asked == any_size ? dimension::subtract(extent, first) : asked;
    if (asked == any_size) require_not_negative(length, outside("slice", first, length, i, x));
    else require_sizes("slice", {asked});
    require_not_negative(dimension::subtract(extent, dimension::add(first, length)),
                         outside("slice", first, length, i, x));
    box.push_back(length);
  }
  return box == x.shape() ? x : apply(Slice{start, box}, x);
}

Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples) {
  const int rank = x.shape().rank();
  require(static_cast<int>(multiples.size()) == rank, "tile: ", multiples.size(), " multiples for ", x.spec());
  const auto repeats = [](std::int64_t times) { return times != 1; };
  if (is_narrow(x.dtype()) && std::ranges::count_if(multiples, repeats) > 1)  // gradients are summed an axis at a time
    return in_f32(x, [&](const Tensor& wide) { return tile(wide, multiples); });
  Tensor out = x;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t times = multiples[static_cast<std::size_t>(i)];
    if (times == 1) continue;
    require(times >= 0 || (Context::current() && dimension::symbols_in(times) > 0), "tile: multiple ", times,
            " of dimension ", i, " is negative");
    Shape outer, inner;  // so that [outer, 1, rest] repeats to [outer, times, rest]
    for (int k = 0; k < i; ++k) outer.push_back(out.shape()[k]);
    for (int k = i; k < rank; ++k) inner.push_back(out.shape()[k]);
    const std::int64_t rows = outer.size(), columns = inner.size();
    Shape shape = out.shape();
    shape.set(i, dimension::multiply(shape[i], times));
    out = reshape(broadcast_to(reshape(out, {rows, 1, columns}), {rows, times, columns}), shape);
  }
  return out;
}

Tensor concat(const std::vector<Tensor>& parts, int axis) {
  require_parts("concat", parts);
  require(parts[0].shape().rank() > 0, "concat: part 0 is ", parts[0].spec(),
          ", which has no dimension to join along; use stack");
  const int at = from_end(parts[0], axis);
  if (parts.size() == 1) return parts[0];
  const Tensor joined = gradus::detail::apply(Concat{at}, In(parts));
  const int first = -joined.shape().rank();
  const bool joins_places = SequenceMask::is_used() && (at == first || at == first + 1);
  const auto has_mask = [](const Tensor& part) {
    return SequenceMask::of(part).defined() || SequenceMask::is_lost(part);
  };
  if (joins_places && std::ranges::any_of(parts, has_mask)) SequenceMask::lose(joined);
  return joined;
}

Tensor stack(const std::vector<Tensor>& parts, int axis) {
  require_parts("stack", parts);
  std::vector<Tensor> expanded;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    require(parts[k].spec() == parts[0].spec(), "stack: part 0 is ", parts[0].spec(), ", part ", k, " is ",
            parts[k].spec(), "; they must agree");
    expanded.push_back(expand_dims(parts[k], axis));
  }
  return concat(expanded, axis);
}

std::vector<Tensor> split(const Tensor& x, int parts, int axis) {
  const int at = x.shape().normalized(axis);
  require(parts > 0, "split: ", parts, " parts; expected at least one");
  const std::int64_t whole = x.shape()[at], size = dimension::floor_divide(whole, parts);
  const auto is_no_multiple = [&] {
    return text("split: dimension ", at, " of ", x.spec(), " is ", dimension::to_text(whole),
                ", which is no multiple of ", parts, " parts");
  };
  if (whole >= 0 && size * parts != whole) throw InvalidArgument(is_no_multiple());
  require_not_negative(dimension::subtract(dimension::multiply(size, parts), whole), is_no_multiple);
  std::vector<Tensor> out;
  for (int k = 0; k < parts; ++k) out.push_back(slice_within(x, at, dimension::multiply(size, k), size));
  return out;
}

std::vector<Tensor> unstack(const Tensor& x, int axis) {
  const int at = x.shape().normalized(axis);
  const std::int64_t size = x.shape()[at];
  require(size >= 0, "unstack: dimension ", at, " of ", x.spec(), " is not known when tracing");
  Shape shape = x.shape();
  shape.erase(at);
  std::vector<Tensor> out;
  for (std::int64_t k = 0; k < size; ++k) out.push_back(reshape(slice_axis(x, at, k, 1, "unstack"), shape));
  return out;
}

Tensor reverse(const Tensor& x, const NamedAxes& named) {
  const std::vector<int>& axis = named.axis;
  int dimensions = 0;
  for (int a : axis) {
    const int bit = 1 << (-1 - from_end(x, a));
    require(!(dimensions & bit), "reverse: axis ", a, " of ", x.spec(), " is named twice");
    dimensions |= bit;
  }
  return dimensions ? apply(Reverse{dimensions}, x) : x;
}

Tensor roll(const Tensor& x, std::int64_t shift, int axis) {
  const int at = x.shape().normalized(axis);
  const std::int64_t size = x.shape()[at];
  if (size == 0 || shift == 0) return x;
  const std::int64_t tail =
      dimension::modulo(dimension::of_number(shift), size);  // the last elements, which come first
  const bool stays = tail == 0;
  if (SizeChoice::choose(stays) && stays) return x;
  const std::int64_t head = dimension::subtract(size, tail);
  return concat({slice_within(x, at, head, tail), slice_within(x, at, 0, head)}, at);
}

Tensor pad(const Tensor& x, const std::vector<std::array<std::int64_t, 2>>& paddings, Scalar value) {
  require(static_cast<int>(paddings.size()) == x.shape().rank(), "pad: ", paddings.size(), " pairs of paddings for ",
          x.spec());
  require(is_floating(x.dtype()) || value.literal().is_integral(), "pad: the floating number ", value.literal().real(),
          " stands beside a tensor ", x.spec(),
          "; write an integer, or cast the tensor to a floating type first: cast(x, f32)");
  Tensor out = x;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const auto [before, after] = paddings[static_cast<std::size_t>(i)];
    for (const std::int64_t n : {before, after})
      require(n >= 0 || (Context::current() && dimension::symbols_in(n) > 0), "pad: paddings ", before, " and ", after,
              " of dimension ", i, " must not be negative");
    std::vector<Tensor> parts;
    auto add_padding = [&](std::int64_t n) {
      if (n == 0) return;
      Shape gap = out.shape();
      gap.set(i, n);
      parts.push_back(full(gap, value, x.dtype()));
    };
    add_padding(before);
    parts.push_back(out);
    add_padding(after);
    out = concat(parts, i);
  }
  return out;
}

Tensor flip_left_right(const Tensor& image) {
  require(image.shape().rank() >= 3, "flip_left_right: expected images [..., height, width, channels], got ",
          image.spec());
  return reverse(image, {-2});
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes) {
  Shape shape;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    require(axes[k].shape().rank() == 1, "meshgrid: axis ", k, " is ", axes[k].spec(), ", expected a vector");
    shape.push_back(axes[k].shape()[0]);
  }
  const int rank = shape.rank();
  auto position = [&](int k) { return rank >= 2 && k < 2 ? 1 - k : k; };
  if (rank >= 2) {
    const std::int64_t first = shape[0];
    shape.set(0, shape[1]);
    shape.set(1, first);
  }
  std::vector<Tensor> out;
  for (int k = 0; k < rank; ++k) {
    Shape along;
    for (int i = 0; i < rank; ++i) along.push_back(i == position(k) ? shape[i] : 1);
    out.push_back(broadcast_to(reshape(axes[static_cast<std::size_t>(k)], along), shape));
  }
  return out;
}

Tensor Tensor::operator[](std::int64_t index) const {
  require(shape().rank() > 0, "x[", index, "]: ", spec(), " has no dimension to index");
  const std::int64_t size = shape()[0];
  const std::int64_t at = index >= 0 ? index : dimension::subtract(size, -index);
  const auto outside = [&] { return text("x[", index, "]: outside dimension 0 of ", spec()); };
  require_not_negative(at, outside);
  require_not_negative(dimension::subtract(size, dimension::add(at, 1)), outside);
  Shape rest = shape();
  rest.erase(0);
  return reshape(slice_axis(*this, 0, at, 1, "x[i]"), rest);
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  require(shape().rank() > 0, "rows: ", spec(), " has no dimension 0");
  require<OutOfRange>(begin >= 0 && end >= begin, "rows: [", begin, ", ", end, ") is no range of rows of ", spec());
  return slice_axis(*this, 0, begin, end - begin, "rows");
}

}  // namespace gradus
