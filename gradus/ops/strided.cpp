/// Strided slices: the view, its gradient, and the reading of begins and ends.
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/strided.h"
#include "gradus/ops/strided_ops.h"
#include <algorithm>
#include "gradus/graph/extents.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"
#include "gradus/ops/views.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

const bool strided_slices_have_extents = Extents::are<StridedSlice>(&StridedSlice::begin, &StridedSlice::size);

/// True if a dimension is positive; a symbolic one, if it is for large sizes.
bool is_positive(std::int64_t d) {
  const std::vector<std::int64_t> large(static_cast<std::size_t>(std::max(dimension::symbols_in(d), 0)), 1000);
  return dimension::evaluate(d, large) > 0;
}

/// Zeros before and after, along `axis`.
Tensor with_zeros(const Tensor& x, int axis, std::int64_t before, std::int64_t after) {
  std::vector<Tensor> parts;
  auto add_zeros = [&](std::int64_t n) {
    if (n == 0) return;
    Shape gap = x.shape();
    gap.set(axis, n);
    parts.push_back(zeros(gap, x.dtype()));
  };
  add_zeros(before);
  parts.push_back(x);
  add_zeros(after);
  return concat(parts, axis);
}

/// The m rows of [outer, m, inner] at begin, begin + step ... of [outer, extent, inner], zeros elsewhere.
Tensor spread(const Tensor& dy, int axis, std::int64_t begin, std::int64_t step, std::int64_t extent) {
  const Shape& shape = dy.shape();
  Shape result = shape;
  result.set(axis, extent);
  const std::int64_t m = shape[axis], rest = dimension::subtract(extent, begin);
  const bool is_empty = m == 0;
  if (SizeChoice::choose(is_empty) && is_empty) return zeros(result, dy.dtype());
  if (step == 1) return with_zeros(dy, axis, begin, dimension::subtract(rest, m));
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer = dimension::multiply(outer, shape[i]);
  for (int i = axis + 1; i < shape.rank(); ++i) inner = dimension::multiply(inner, shape[i]);
  const std::int64_t gap = dimension::multiply(dimension::subtract(step, 1), inner);
  const std::int64_t length = dimension::multiply(m, step), over = dimension::subtract(length, rest);
  const bool is_open = over < 0 && !dimension::is_never_negative(dimension::subtract(0, over));
  Tensor rows = concat({reshape(dy, {outer, m, inner}), zeros({outer, m, gap}, dy.dtype())}, 2);
  rows = reshape(rows, {outer, length, inner});
  if (SizeChoice::choose(is_open) || is_open) {  // either is right of any size
    rows = with_zeros(rows, 1, begin, dimension::maximum(dimension::subtract(rest, length), 0));
    return reshape(slice_within(rows, 1, 0, extent), result);
  }
  if (is_positive(over)) rows = slice_within(rows, 1, 0, rest);
  return reshape(with_zeros(rows, 1, begin, is_positive(over) ? 0 : dimension::subtract(rest, length)), result);
}

/// The box of x[begin:end:step] along one dimension, for a StridedSlice.
struct Stretch {
  std::int64_t begin = 0, size = 0, step = 1;
  bool backwards = false;
};

Stretch stretch_of_known(const Range& range, std::int64_t n) {
  const bool backwards = range.step < 0;
  const std::int64_t step = backwards ? -range.step : range.step;
  const auto clamped = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
    return std::clamp(at < 0 ? std::max(at, -n - 1) + n : at, low, high);
  };
  if (!backwards) {
    const std::int64_t first = range.begin ? clamped(*range.begin, 0, n) : 0,
                       last = range.end ? clamped(*range.end, 0, n) : n;
    return {first, last > first ? (last - first - 1) / step + 1 : 0, step, false};
  }
  const std::int64_t first = range.begin ? clamped(*range.begin, -1, n - 1) : n - 1;
  const std::int64_t last = range.end ? clamped(*range.end, -1, n - 1) : -1;
  const std::int64_t size = first > last ? (first - last - 1) / step + 1 : 0;
  return {size ? first - (size - 1) * step : 0, size, step, true};
}

/// Nothing is clamped: that the range lies within the dimension is proven, or checked at every call.
Stretch stretch_of_symbolic(const Tensor& x, int axis, const Range& range, std::string_view op) {
  const std::int64_t n = x.shape()[axis];
  const auto from_start = [&](std::int64_t at, bool is_dimension) {
    return at < 0 && !is_dimension ? dimension::subtract(n, -at) : at;
  };
  std::int64_t first = 0, end = n;
  if (range.step > 0) {
    if (range.begin) first = from_start(*range.begin, range.begin_is_dimension);
    if (range.end && *range.end < std::int64_t{1} << 31) end = from_start(*range.end, range.end_is_dimension);
  } else {
    if (range.begin && *range.begin < std::int64_t{1} << 31)
      end = dimension::add(from_start(*range.begin, range.begin_is_dimension), 1);
    if (range.end && *range.end > -(std::int64_t{1} << 31))
      first = dimension::add(from_start(*range.end, range.end_is_dimension), 1);
  }
  const std::int64_t length = dimension::subtract(end, first), step = range.step < 0 ? -range.step : range.step;
  if (length < 0 && dimension::symbols_in(length) == 0) return {};
  const std::int64_t size = dimension::ceil_divide(length, step);
  for (const std::int64_t part : {first, length, dimension::subtract(n, end)})
    require_not_negative(part, [&] {
      return text(op, ": [", dimension::to_text(first), ", ", dimension::to_text(end), ") is outside dimension ", axis,
                  " of ", x.spec());
    });
  if (range.step > 0) return {first, size, step, false};
  const std::int64_t steps = dimension::multiply(dimension::subtract(size, 1), step);
  return {dimension::subtract(dimension::subtract(end, 1), steps), size, step, true};
}

}  // namespace

Spec StridedSlice::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  const int rank = in[0].shape.rank();
  require(begin.rank() == rank && size.rank() == rank && step.rank() == rank, name, ": begin ", brackets(begin),
          ", size ", brackets(size), " and step ", brackets(step), " do not fit ", in[0]);
  require(backwards >= 0 && backwards < 1 << rank, name, ": dimensions ", backwards, " do not fit ", in[0]);
  for (int i = 0; i < rank; ++i) {
    const std::int64_t b = begin[i], m = size[i], s = step[i], n = in[0].shape[i];
    require(b != any_size && m != any_size && s != any_size && s != 0, name, ": a dimension of ", in[0],
            " has an unknown begin, size or step");
    const bool known = b >= 0 && m > 0 && s > 0 && n >= 0;
    require<OutOfRange>(!known || (b < n && (m - 1) <= (n - 1 - b) / s), name, ": ", m, " elements from ", b,
                        " in steps of ", s, " leave dimension ", i, " of ", in[0]);
  }
  return {in[0].dtype, size};
}

View StridedSlice::view(const Shape& in, const Shape& out) const {
  const Shape dense = dense_strides(in);
  View view{.strides = dense};
  for (int i = 0; i < in.rank(); ++i) {
    const std::int64_t stride = dimension::multiply(dense[i], step[i]);
    view.strides.set(i, stride);
    view.offset = dimension::add(view.offset, dimension::multiply(begin[i], dense[i]));
    if (!(backwards >> (in.rank() - 1 - i) & 1) || out[i] == 0) continue;
    view.backwards |= 1u << i;
    view.offset = dimension::add(view.offset, dimension::multiply(dimension::subtract(out[i], 1), stride));
  }
  return view;
}

Tensors StridedSlice::vjp(In in, const Tensor&, const Tensor& dy) const {
  Tensor out = backwards ? apply(Reverse{backwards}, dy) : dy;
  for (int i = 0; i < begin.rank(); ++i)
    if (out.shape()[i] != in[0].shape()[i] || step[i] != 1) out = spread(out, i, begin[i], step[i], in[0].shape()[i]);
  return {out};
}

Tensor StridedSlice::batch(In in, std::uint32_t, std::int64_t n) const {
  return gradus::detail::apply(
      StridedSlice{with_leading(0, begin), with_leading(n, size), with_leading(1, step), backwards}, in);
}

namespace {

Stretch stretch_of(const Tensor& x, int axis, const Range& range, std::string_view op) {
  require(range.step != 0, op, ": the step along dimension ", axis, " of ", x.spec(), " is 0");
  require(range.step > -(std::int64_t{1} << 62) && range.step < std::int64_t{1} << 62, op, ": the step ", range.step,
          " along dimension ", axis, " of ", x.spec(), " is too large");
  const std::int64_t n = x.shape()[axis];
  const bool is_known = n >= 0 && !range.begin_is_dimension && !range.end_is_dimension;
  Stretch s = is_known ? stretch_of_known(range, n) : stretch_of_symbolic(x, axis, range, op);
  const bool is_short = s.size == 0 || s.size == 1;
  if (SizeChoice::choose(is_short) && is_short) s.step = 1, s.backwards = false;
  if (s.size == 0) s.begin = 0;
  return s;
}

}  // namespace

StridedSlice box_of_ranges(const Tensor& x, const std::vector<Range>& ranges, std::string_view op) {
  const int rank = x.shape().rank();
  internal_check(static_cast<int>(ranges.size()) == rank, "slice_ranges needs one range a dimension");
  StridedSlice box;
  for (int i = 0; i < rank; ++i) {
    const Stretch s = stretch_of(x, i, ranges[static_cast<std::size_t>(i)], op);
    box.begin.push_back(s.begin);
    box.size.push_back(s.size);
    box.step.push_back(s.step);
    if (s.backwards) box.backwards |= 1 << (rank - 1 - i);
  }
  return box;
}

Tensor slice_ranges(const Tensor& x, const std::vector<Range>& ranges, std::string_view op) {
  return slice_box(x, box_of_ranges(x, ranges, op));
}

Tensor slice_box(const Tensor& x, const StridedSlice& box) {
  const bool steps = std::ranges::any_of(box.step, [](std::int64_t step) { return step != 1; });
  const bool starts = std::ranges::all_of(box.begin, [](std::int64_t begin) { return begin == 0; });
  if (!steps && !box.backwards) return starts && box.size == x.shape() ? x : apply(Slice{box.begin, box.size}, x);
  if (box.size == x.shape() && !steps) return apply(Reverse{box.backwards}, x);
  return apply(box, x);
}

Tensor every(const Tensor& x, int axis, std::int64_t begin, std::int64_t size, std::int64_t step) {
  StridedSlice box{.size = x.shape()};
  for (int i = 0; i < x.shape().rank(); ++i) {
    box.begin.push_back(0);
    box.step.push_back(1);
  }
  box.begin.set(axis, begin);
  box.size.set(axis, size);
  box.step.set(axis, step);
  return apply(box, x);
}

namespace {

bool has_bit(std::uint32_t mask, std::size_t i) { return i < 32 && (mask >> i & 1); }

Range shrunk(const Tensor& x, int axis, std::int64_t begin, std::int64_t step) {
  const std::int64_t n = x.shape()[axis];
  require(step > 0, "strided_slice: dimension ", axis, " of ", x.spec(), " is shrunk with a step of ", step);
  require<OutOfRange>(n < 0 || (begin >= -n && begin < n), "strided_slice: index ", begin, " is outside dimension ",
                      axis, " of ", x.spec());
  return begin == -1 ? Range{begin, {}} : Range{begin, begin + 1};
}

}  // namespace

Tensor strided_slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end,
                     const StridedSliceOptions& options) {
  const std::size_t n = begin.size();
  require(end.size() == n && (options.strides.empty() || options.strides.size() == n), "strided_slice: begin has ", n,
          " numbers, end ", end.size(), ", strides ", options.strides.size(), "; they must agree");
  require((options.ellipsis_mask & (options.ellipsis_mask - 1)) == 0, "strided_slice: more than one ellipsis");
  const int rank = x.shape().rank();
  int named = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (!has_bit(options.ellipsis_mask, i) && !has_bit(options.new_axis_mask, i)) ++named;
  require(named <= rank, "strided_slice: ", named, " dimensions are named of ", x.spec());
  std::vector<Range> ranges;
  std::vector<int> result;  // the dimension of x, or -1: a new one
  const auto keep_whole = [&](int dimensions) {
    for (int k = 0; k < dimensions; ++k) {
      result.push_back(static_cast<int>(ranges.size()));
      ranges.push_back({});
    }
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t step = options.strides.empty() ? 1 : options.strides[i];
    if (has_bit(options.ellipsis_mask, i)) keep_whole(rank - named);
    else if (has_bit(options.new_axis_mask, i)) result.push_back(-1);
    else if (has_bit(options.shrink_axis_mask, i))
      ranges.push_back(shrunk(x, static_cast<int>(ranges.size()), begin[i], step));
    else {
      result.push_back(static_cast<int>(ranges.size()));
      ranges.push_back({.step = step});
      if (!has_bit(options.begin_mask, i)) ranges.back().begin = begin[i];
      if (!has_bit(options.end_mask, i)) ranges.back().end = end[i];
    }
  }
  keep_whole(rank - static_cast<int>(ranges.size()));
  const Tensor box = slice_ranges(x, ranges, "strided_slice");
  Shape shape;
  for (int from : result) shape.push_back(from < 0 ? 1 : box.shape()[from]);
  return reshape(box, shape);
}

}  // namespace gradus
