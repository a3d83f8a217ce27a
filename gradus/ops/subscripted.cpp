/// Subscripts as NumPy reads them: a strided view, then one gather of merged dimensions; and rows written by places.
#include "gradus/ops/subscripted.h"
#include <algorithm>
#include <utility>
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/widened.h"

namespace gradus {
namespace {

using Kind = Subscript::Kind;

/// The dimensions of x that a subscript stands for.
int dimensions_of(const Subscript& subscript) {
  switch (subscript.kind()) {
    case Kind::none:
    case Kind::new_axis:
    case Kind::ellipsis: return 0;
    case Kind::element:
    case Kind::all:
    case Kind::slice: return 1;
    case Kind::tensor: break;
  }
  const Tensor places = subscript.tensor();
  return places.dtype() == boolean ? places.shape().rank() : 1;
}

/// `x` with dimensions [first, first + count) as one.
Tensor with_merged(const Tensor& x, int first, int count) {
  Shape shape;
  std::int64_t size = 1;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i < first || i >= first + count) shape.push_back(x.shape()[i]);
    else size = dimension::multiply(size, x.shape()[i]);
    if (i == first + count - 1) shape.push_back(size);
  }
  return reshape(x, shape);
}

/// A whole number of a call: data, so that programs that differ in it alone are one. A symbol is known at each call.
Tensor number_in_call(std::int64_t n) {
  return dimension::symbols_in(n) > 0 ? extent(n, i64) : from_values(std::vector{n}, Shape{});
}

Tensor with_dimensions(const Tensor& x, int before, int after) {
  Shape shape;
  for (int i = 0; i < before; ++i) shape.push_back(1);
  for (const std::int64_t d : x.shape()) shape.push_back(d);
  for (int i = 0; i < after; ++i) shape.push_back(1);
  return reshape(x, shape);
}

/// For each place the sum of the values at all places that are equal to it. values: [places, inner...].
Tensor sums_at_places(const Tensor& places, const Tensor& values) {
  const std::int64_t count = places.shape()[0];
  const Tensor order = argsort(places), sorted = gather(places, order);
  const Tensor before = gather(sorted, maximum(iota({count}, i32) - 1, 0));
  const Tensor number = cumsum(cast(not_equal(sorted, before), i32));  // among the distinct ones
  const Tensor slots = update_rows(fill({count}, 0, i32), order, number);
  const int first = -values.shape().rank();
  return in_computed_dtype(values, [&](const Tensor& wide) {
    return apply(Gather{first}, apply(ScatterAdd{first, count}, slots, wide), slots);
  });
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Subscripted::Written& written) {
  out << written.of->name_ << '(';
  std::string_view comma;
  for (const Subscript& each : written.of->subscripts_) out << std::exchange(comma, ", ") << each.to_text();
  return out << ')';
}

Subscripted::Subscripted(std::string_view name, const Tensor& x, std::vector<Subscript> subscripts)
    : name_(name), subscripts_(std::move(subscripts)), x_(x), source_(x) {
  const int rank = x.shape().rank();
  int named = 0, ellipses = 0;
  for (const Subscript& each : subscripts_) {
    require(each.kind() != Kind::none, op(),
            ": a subscript is {}, expected an integer, all, slice, newaxis, ellipsis "
            "or a tensor");
    named += dimensions_of(each);
    ellipses += each.kind() == Kind::ellipsis;
  }
  require(ellipses <= 1, op(), ": ", ellipses,
          " subscripts are ellipsis, expected one at most; write all for each of "
          "the other dimensions");
  require(named <= rank, op(), ": the subscripts take ", named, " dimensions, ", x.spec(), " has ", rank,
          "; leave some out, or add dimensions by newaxis");
  for (std::size_t i = 0; i < subscripts_.size(); ++i) add_part(subscripts_[i], static_cast<int>(i), rank - named);
  add_whole(source_.shape().rank() - axes_);
  std::vector<Range> ranges;
  for (const Part& part : parts_)
    if (part.axis >= 0) ranges.push_back(part.range);
  box_ = box_of_ranges(source_, ranges, is_open_ ? text(op()) : name_);
  decide_order();
}

void Subscripted::add_part(const Subscript& subscript, int number, int whole) {
  switch (subscript.kind()) {
    case Kind::none: break;
    case Kind::element: return add_element(subscript);
    case Kind::all: return add_whole(1);
    case Kind::new_axis: parts_.push_back({Part::Kind::new_axis}); break;
    case Kind::slice: return add_slice(subscript);
    case Kind::ellipsis:
      if (whole == 0) parts_.push_back({Part::Kind::gap});
      return add_whole(whole);
    case Kind::tensor:
      return subscript.tensor().dtype() == boolean ? add_mask(subscript.tensor(), number)
                                                   : add_places(subscript.tensor(), number);
  }
}

void Subscripted::add_whole(int dimensions) {
  for (int i = 0; i < dimensions; ++i) parts_.push_back({Part::Kind::slice, axes_++});
}

void Subscripted::add_element(const Subscript& subscript) {
  const SliceBound& bound = subscript.range().begin;
  const std::int64_t at = *bound.at(), n = source_.shape()[axes_];
  require<OutOfRange>(n < 0 || bound.is_symbolic() || (at >= -n && at < n), op(), ": index ", at,
                      " is outside dimension ", axes_, " of ", source_.spec(), ", expected ", -n, " to ", n - 1);
  is_open_ = is_open_ || n < 0 || bound.is_symbolic();
  Range range{.begin = at, .end = at + 1};
  if (bound.is_symbolic())
    range = {.begin = at, .end = dimension::add(at, 1), .begin_is_dimension = true, .end_is_dimension = true};
  else if (at == -1) range.end.reset();
  parts_.push_back({Part::Kind::element, axes_++, range});
}

void Subscripted::add_slice(const Subscript& subscript) {
  const auto& [begin, stop, step] = subscript.range();
  is_open_ = is_open_ || source_.shape()[axes_] < 0 || begin.is_symbolic() || stop.is_symbolic();
  require(step != 0, op(), ": the step of a slice is 0, expected 1 or another distance");
  require(!begin.is_end() || step < 0, op(), ": a slice begins at `end`, where no element is; expected a number, such ",
          "as slice(-3, end) for the last three");
  parts_.push_back({Part::Kind::slice,
                    axes_++,
                    {.begin = begin.at(),
                     .end = stop.at(),
                     .step = step,
                     .begin_is_dimension = begin.is_symbolic(),
                     .end_is_dimension = stop.is_symbolic()}});
}

void Subscripted::add_mask(const Tensor& mask, int number) {
  const int depth = mask.shape().rank();
  require(depth > 0, op(), ": subscript ", number,
          " is a single boolean, expected booleans [n1 ... nk] with the sizes "
          "of k dimensions; to choose between two tensors, use where(condition, x, y)");
  for (int i = 0; i < depth; ++i)
    require(mask.shape()[i] == source_.shape()[axes_ + i], op(), ": subscript ", number, ", booleans ", mask.spec(),
            ", stands for dimensions from ", axes_, " on of ", source_.spec(), "; the sizes must agree");
  const std::vector<std::int64_t> found =
      known_positions(text(op()), "booleans", mask, "use where(condition, x, y), which keeps the shape");
  source_ = with_merged(source_, axes_, depth);
  parts_.push_back({.kind = Part::Kind::tensor,
                    .axis = axes_++,
                    .places = from_values(found, {static_cast<std::int64_t>(found.size())})});
}

void Subscripted::add_places(const Tensor& places, int number) {
  require(is_integer(places.dtype()), op(), ": subscript ", number, " is ", places.spec(),
          ", expected integers or booleans; cast it to i32, or compare it");
  repeats_ = repeats_ || places.shape().rank() > 0;
  parts_.push_back(
      {.kind = Part::Kind::tensor, .axis = axes_, .places = wrapped_indices(places, source_.shape()[axes_], name_)});
  ++axes_;
}

/// The places broadcast together. Their dimensions come first if other subscripts stand between them or integers
/// beside them.
void Subscripted::decide_order() {
  const auto is_place = [](const Part& part) { return part.is_tensor() || part.kind == Part::Kind::element; };
  for (const Part& part : parts_) {
    if (!part.is_tensor()) continue;
    if (places_.empty()) block_ = part.places.shape();
    else if (part.places.shape() != block_) block_ = broadcast_shape(block_, part.places.shape(), text(op()));
    places_.push_back(part.places);
  }
  if (places_.empty()) return;
  const auto first = std::ranges::find_if(parts_, is_place);
  const auto behind = std::find_if_not(first, parts_.end(), is_place);
  block_first_ = std::any_of(behind, parts_.end(), is_place);
}

Shape Subscripted::result_shape(bool with_new_axes) const {
  std::vector<std::int64_t> shape;
  bool has_block = places_.empty();
  const auto add_block = [&] {
    if (!has_block) shape.insert(shape.end(), block_.begin(), block_.end());
    has_block = true;
  };
  if (block_first_) add_block();
  for (const Part& part : parts_) {
    if (part.is_tensor()) add_block();
    if (part.is_slice()) shape.push_back(box_.size[part.axis]);
    if (part.kind == Part::Kind::new_axis && with_new_axes) shape.push_back(1);
  }
  require(shape.size() <= Shape::max_rank, op(), ": the result has ", shape.size(), " dimensions, expected ",
          Shape::max_rank, " at most");
  return Shape(shape);
}

Tensor Subscripted::read() const {
  const Shape result = result_shape(true);
  const Tensor box = slice_box(source_, box_);
  if (places_.empty()) return reshape(box, result);
  Shape kept;
  std::vector<int> axes;  // of the tensors
  for (const Part& part : parts_) {
    if (part.is_tensor()) axes.push_back(kept.rank());
    if (part.is_slice() || part.is_tensor()) kept.push_back(box.shape()[part.axis]);
  }
  return reshape(gathered(reshape(box, kept), axes), result);
}

/// The places of `axes` in x, whose dimensions are slices and tensors alone: in the order of the result.
Tensor Subscripted::gathered(const Tensor& x, const std::vector<int>& axes) const {
  const int rank = x.shape().rank(), count = static_cast<int>(axes.size()), first = axes.front();
  const bool is_adjacent = axes.back() == first + count - 1;
  Tensor merged = x;
  if (!is_adjacent) {
    std::vector<int> order = axes;
    for (int i = 0; i < rank; ++i)
      if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
    merged = transpose(x, order);
  }
  const int at = is_adjacent ? first : 0;
  Tensor flat = places_.front();
  for (std::size_t k = 0; count > 1 && k < places_.size(); ++k) {
    const std::int64_t n = x.shape()[axes[k]];
    const Tensor one = cast(check_range(places_[k], n, false), i64);
    flat = k ? flat * extent(n, i64) + one : one;
  }
  const Tensor chosen = gather(with_merged(merged, at, count), flat, at);
  if (!block_first_ || at == 0) return chosen;
  std::vector<int> order;
  for (int i = 0; i < block_.rank(); ++i) order.push_back(at + i);
  for (int i = 0; i < chosen.shape().rank(); ++i)
    if (i < at || i >= at + block_.rank()) order.push_back(i);
  return transpose(chosen, order);
}

// ---------------------------------------------------------------- writing

bool Subscripted::is_whole(const Part& part) const {
  return part.is_slice() && box_.begin[part.axis] == 0 && box_.size[part.axis] == source_.shape()[part.axis] &&
         box_.step[part.axis] == 1 && !(box_.backwards >> (source_.shape().rank() - 1 - part.axis) & 1);
}

/// The flat places, in the order of the result, of rows that the first `leading` dimensions of the source number.
Tensor Subscripted::places_of_rows(std::size_t leading) const {
  const Shape& shape = source_.shape();
  Shape numbered;
  for (std::size_t i = 0; i < leading; ++i) numbered.push_back(shape[static_cast<int>(i)]);
  const Shape strides = dense_strides(numbered);
  int rank = places_.empty() ? 0 : block_.rank();
  for (const Part& part : parts_) rank += part.is_slice() && part.axis < numbered.rank();
  int next = block_first_ ? block_.rank() : 0, block_at = block_first_ ? 0 : -1;
  std::int64_t offset = 0;
  Tensor flat;
  const auto add = [&](const Tensor& term) { flat = flat.defined() ? flat + term : term; };
  for (const Part& part : parts_) {
    if (part.axis < 0 || part.axis >= numbered.rank()) continue;
    const std::int64_t stride = strides[part.axis], size = box_.size[part.axis];
    if (part.is_tensor()) {
      if (block_at < 0) block_at = next, next += block_.rank();
      const int behind = rank - block_at - block_.rank(), before = rank - behind - part.places.shape().rank();
      const Tensor at = cast(check_range(part.places, shape[part.axis], false), i64);
      add(with_dimensions(at, before, behind) * extent(stride, i64));
      continue;
    }
    offset = dimension::add(offset, dimension::multiply(box_.begin[part.axis], stride));
    if (!part.is_slice()) continue;
    const bool backwards = box_.backwards >> (shape.rank() - 1 - part.axis) & 1;
    const Tensor number = iota({size}, i64);
    const Tensor steps = backwards ? extent(dimension::subtract(size, 1), i64) - number : number;
    add(with_dimensions(steps * extent(dimension::multiply(box_.step[part.axis], stride), i64), next, rank - next - 1));
    ++next;
  }
  const Tensor start = number_in_call(offset);
  return flat.defined() ? flat + start : start;
}

Subscripted::Rows Subscripted::rows_of(const Tensor& value) const {
  const Shape result = result_shape(true);
  require(value.dtype() == x_.dtype(), op(), ": the value is ", value.spec(), ", expected ", x_.dtype(),
          "; cast it first");
  require(broadcasts_to(value.shape(), result), op(), ": the value is ", value.spec(),
          ", which does not broadcast to the elements ", Spec{x_.dtype(), result});
  std::size_t leading = 0;
  for (const Part& part : parts_)
    if (part.axis >= 0 && !is_whole(part)) leading = static_cast<std::size_t>(part.axis) + 1;
  Shape rows{1}, values{1}, kept = result_shape(false);
  for (int i = 0; i < source_.shape().rank(); ++i) {
    if (i < static_cast<int>(leading)) rows.set(0, dimension::multiply(rows[0], source_.shape()[i]));
    else rows.push_back(source_.shape()[i]), values.push_back(source_.shape()[i]);
  }
  const int of_rows = kept.rank() - (values.rank() - 1);
  for (int i = 0; i < of_rows; ++i) values.set(0, dimension::multiply(values[0], kept[i]));
  const Tensor places =
      broadcast_to(places_of_rows(leading), Shape(std::span(kept.begin(), static_cast<std::size_t>(of_rows))));
  return {reshape(source_, rows), reshape(places, {values[0]}), reshape(broadcast_to(value, result), values),
          leading == 0};
}

Tensor Subscripted::replaced(const Tensor& value) const {
  const Rows rows = rows_of(value);
  return reshape(rows.are_all ? rows.values : update_rows(rows.all, rows.places, rows.values), x_.shape());
}

Tensor Subscripted::increased(const Tensor& value) const {
  if (!repeats_) return replaced(read() + value);
  const Rows rows = rows_of(value);
  const Tensor before = apply(Gather{-rows.all.shape().rank()}, rows.all, rows.places);
  const Tensor next = in_computed_dtype(
      before, rows.values, [&](const Tensor& old, const Tensor& by) { return old + sums_at_places(rows.places, by); });
  return reshape(update_rows(rows.all, rows.places, next), x_.shape());
}

Tensor Subscripted::spread(const Tensor& value) const {
  const Rows rows = rows_of(value);
  const int first = -rows.all.shape().rank();
  const Tensor sums = in_computed_dtype(rows.values, [&](const Tensor& wide) {
    return apply(ScatterAdd{first, rows.all.shape()[0]}, rows.places, wide);
  });
  return reshape(sums, x_.shape());
}

Tensor Tensor::operator()(const Subscript& a, const Subscript& b, const Subscript& c, const Subscript& d,
                          const Subscript& e, const Subscript& f, const Subscript& g, const Subscript& h,
                          const Subscript& i, const Subscript& j) const {
  return Subscripted("x", *this, given_subscripts({&a, &b, &c, &d, &e, &f, &g, &h, &i, &j})).read();
}

}  // namespace gradus
