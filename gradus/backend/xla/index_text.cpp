/// Reading and writing by data. A place outside sets the fault state; StableHLO moves it into range where it reads and
/// skips it where it writes.
#include <array>
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/scatter_ops.h"

namespace gradus::xla {
namespace {

std::string outside(std::int64_t limit) {
  return text("index {value} at position {index} of the indices is outside [0, ", limit, ")");
}

/// Rows of x along `axis`: [outer..., places..., inner...].
HloValue gathered(HloWriter& out, const HloValue& x, const HloValue& places, int axis) {
  Shape to, sizes = x.shape(), offsets;
  for (int d = 0; d < axis; ++d) to.push_back(x.shape()[d]), offsets.push_back(d);
  for (const std::int64_t d : places.shape()) to.push_back(d);
  for (int d = axis + 1; d < x.rank(); ++d) offsets.push_back(to.rank()), to.push_back(x.shape()[d]);
  if (to.size() == 0 || x.shape().size() == 0) return out.constant(x.dtype(), 0, to);
  sizes.set(axis, 1);
  return out.generic("gather", {x, places},
                     text("dimension_numbers = #stablehlo.gather<offset_dims = ", list_of(offsets),
                          ", collapsed_slice_dims = [", axis, "], start_index_map = [", axis, "], index_vector_dim = ",
                          places.rank(), ">, indices_are_sorted = false, slice_sizes = ", array_of(sizes)),
                     {}, {{x.dtype(), to}})[0];
}

/// x with updates: [outer..., places..., inner...] combined with its rows along `axis`.
HloValue scattered(HloWriter& out, const HloValue& x, const HloValue& places, const HloValue& updates, int axis,
                   const HloWriter::Combine& combine, bool are_unique = false) {
  if (updates.shape().size() == 0 || x.shape().size() == 0) return x;
  Shape windows = counted(0, axis);
  for (int d = axis + places.rank(); d < updates.rank(); ++d) windows.push_back(d);
  return out.generic(
      "scatter", {x, places, updates},
      text("indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ",
           list_of(windows), ", inserted_window_dims = [", axis, "], scatter_dims_to_operand_dims = [", axis,
           "], index_vector_dim = ", places.rank(), ">, unique_indices = ", are_unique ? "true" : "false"),
      {out.combination(x.dtype(), combine)}, {x.spec})[0];
}

/// The places, with -1 for all that a later one repeats: on a parallel device the order of writes is open.
HloValue last_of_each(HloWriter& out, const HloValue& places, std::int64_t n) {
  const Shape flat{places.shape().size()};
  const HloValue at = out.reshape(places, flat);
  const HloValue number = out.iota({i32, flat}, 0);
  const HloValue nobody = out.integer(-1, i32, {n});
  const HloValue last = scattered(out, nobody, at, number, 0,
                                  [&](const HloValue& a, const HloValue& b) { return out.same("maximum", {a, b}); });
  const HloValue is_last = out.compare("EQ", gathered(out, last, at, 0), number);
  return out.reshape(out.select(is_last, at, out.integer(-1, at.dtype(), flat)), places.shape());
}

/// StableHLO's scatter takes negative places for outside, so no place is moved.
HloValue replaced(HloWriter& out, const HloValue& x, const HloValue& places, const HloValue& updates, int axis) {
  if (updates.shape().size() == 0 || x.shape().size() == 0) return x;
  return scattered(out, x, last_of_each(out, places, x.shape()[axis]), updates, axis,
                   [](const HloValue&, const HloValue& b) { return b; });
}

HloValue write_gather(const Site& s) {
  const int axis = s.in[0].rank() + s.v.op.as<Gather>()->axis;
  std::int64_t inner = 1;
  for (int d = axis + 1; d < s.in[0].rank(); ++d) inner *= s.in[0].shape()[d];
  std::int64_t outer = 1;
  for (int d = 0; d < axis; ++d) outer *= s.in[0].shape()[d];
  const std::int64_t n = s.in[0].shape()[axis];
  if (inner * outer > 0) s.to.check_range(s.in[1], n, s.message("gather", outside(n)));
  return gathered(s.out(), s.in[0], s.in[1], axis);
}

HloValue write_scatter_add(const Site& s) {
  const ScatterAdd& op = *s.v.op.as<ScatterAdd>();
  HloWriter& out = s.out();
  const int axis = s.spec().shape.rank() + op.axis;
  const bool has_updates = s.in[1].shape().size() > 0;
  if (has_updates) s.to.check_range(s.in[0], op.extent, s.message("scatter_add", outside(op.extent)));
  const DType wide = computed_in(s.spec().dtype);
  const HloValue zeros = out.constant(wide, 0, s.spec().shape);
  const HloValue sums = scattered(out, zeros, s.in[0], out.convert(s.in[1], wide), axis,
                                  [&](const HloValue& a, const HloValue& b) { return out.add(a, b); });
  return out.convert(sums, s.spec().dtype);
}

/// NaN wins, as in reduce_min.
HloValue extreme(HloWriter& out, const HloValue& a, const HloValue& b, bool is_least) {
  if (!is_floating(a.dtype())) return out.same(is_least ? "minimum" : "maximum", {a, b});
  const HloValue is_better = is_least ? out.compare("LT", b, a) : out.compare("GT", b, a);
  return out.select(out.either(is_better, out.is_nan(b)), out.select(out.is_nan(a), a, b), a);
}

HloValue combined(HloWriter& out, Reduction kind, const HloValue& a, const HloValue& b) {
  switch (kind) {
    case Reduction::add: return out.add(a, b);
    case Reduction::mul: return out.multiply(a, b);
    case Reduction::min: return extreme(out, a, b, true);
    case Reduction::max: return extreme(out, a, b, false);
    case Reduction::none: break;
  }
  return b;
}

HloValue write_scatter(const Site& s) {
  const Scatter& op = *s.v.op.as<Scatter>();
  HloWriter& out = s.out();
  const HloValue &x = s.in[0], &places = s.in[1], &updates = s.in[2];
  const int axis = x.rank() + op.axis;
  const auto kind = static_cast<Reduction>(op.kind);
  const std::int64_t n = x.shape()[axis];
  if (updates.shape().size() > 0) s.to.check_range(places, n, s.message("scatter", outside(n)));
  if (kind == Reduction::none || x.dtype() == boolean) return replaced(out, x, places, updates, axis);
  const DType wide = computed_in(x.dtype());
  const HloValue made = scattered(out, out.convert(x, wide), places, out.convert(updates, wide), axis,
                                  [&](const HloValue& a, const HloValue& b) { return combined(out, kind, a, b); });
  return out.convert(made, x.dtype());
}

HloValue write_update_rows(const Site& s) { return replaced(s.out(), s.in[0], s.in[1], s.in[2], 0); }

HloValue write_check_range(const Site& s) {
  const CheckRange& op = *s.v.op.as<CheckRange>();
  const std::string what =
      text(op.subject(), " {value} at position {index} is outside [0, ", op.limit, ")",
           op.labels ? ": labels are numbers of classes; mend the data or the number of classes" : "");
  s.to.check_range(s.in[0], op.limit, s.message("check_range", what));
  return s.in[0];
}

HloValue write_check_indices(const Site& s) {
  const std::int64_t limit = s.v.op.as<CheckIndices>()->limit;
  s.to.check_range(s.in[0], limit, s.message("gather", outside(limit)));
  return s.in[0];
}

constexpr std::array index_table{Row{"gather", write_gather},           Row{"scatter_add", write_scatter_add},
                                 Row{"scatter", write_scatter},         Row{"update_rows", write_update_rows},
                                 Row{"check_range", write_check_range}, Row{"check_indices", write_check_indices}};

}  // namespace

std::span<const Row> index_rows() { return index_table; }

}  // namespace gradus::xla
