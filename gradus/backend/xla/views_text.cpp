/// Views: they rearrange without computing. Reductions, which take away a dimension, are here, too.
#include <array>
#include "gradus/backend/xla/formula_text.h"
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/barrier.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/pool_ops.h"
#include "gradus/ops/shards_ops.h"
#include "gradus/ops/strided_ops.h"
#include "gradus/ops/views.h"

namespace gradus::xla {
namespace {

/// The dimensions whose bit is set; bit 0 is the last.
Shape dimensions_of(int bits, int rank) {
  Shape dims;
  for (int d = 0; d < rank; ++d)
    if (bits >> (rank - 1 - d) & 1) dims.push_back(d);
  return dims;
}

HloValue write_reshape(const Site& s) { return s.out().reshape(s.in[0], s.spec().shape); }
HloValue write_broadcast(const Site& s) { return s.out().broadcast(s.in[0], s.spec().shape); }

HloValue write_transpose(const Site& s) {
  Shape order;
  for (const std::int64_t from_last : s.v.op.as<Transpose>()->order) order.push_back(s.in[0].rank() - 1 - from_last);
  return s.out().transpose(s.in[0], order);
}

HloValue write_slice(const Site& s) {
  const Slice& op = *s.v.op.as<Slice>();
  return s.out().slice(s.in[0], op.begin, op.size, repeated(1, s.in[0].rank()));
}

HloValue write_strided_slice(const Site& s) {
  const StridedSlice& op = *s.v.op.as<StridedSlice>();
  const HloValue part = s.out().slice(s.in[0], op.begin, op.size, op.step);
  return s.out().reverse(part, dimensions_of(op.backwards, part.rank()));
}

HloValue write_reverse(const Site& s) {
  return s.out().reverse(s.in[0], dimensions_of(s.v.op.as<Reverse>()->dimensions, s.in[0].rank()));
}

HloValue write_barrier(const Site& s) { return s.out().barrier(s.in)[0]; }

HloValue write_concat(const Site& s) {
  HloValues parts;
  for (const HloValue& x : s.in)
    if (x.shape().size() > 0) parts.push_back(x);
  if (parts.empty()) return s.out().constant(s.spec().dtype, 0, s.spec().shape);
  return s.out().concatenate(parts, s.spec().shape.rank() + s.v.op.as<Concat>()->axis);
}

/// Rows of x, which were found by indices that were checked.
HloValue write_indexed_rows(const Site& s) {
  HloWriter& out = s.out();
  const HloValue places = out.reshape(s.in[1], {s.in[1].shape().size()});
  Shape sizes = s.in[0].shape(), rows = s.in[0].shape();
  sizes.set(0, 1);
  rows.set(0, places.shape()[0]);
  const std::string numbers = list_of(sizes);
  const HloValue made =
      out.generic("gather", {s.in[0], places},
                  text("dimension_numbers = #stablehlo.gather<offset_dims = ", list_of(counted(1, rows.rank())),
                       ", collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
                       "indices_are_sorted = false, slice_sizes = array<i64: ",
                       numbers.substr(1, numbers.size() - 2), ">"),
                  {}, {{s.spec().dtype, rows}})[0];
  return out.reshape(made, s.spec().shape);
}

/// A slice a tap, one beside the other; many taps are read by index.
HloValue write_patches(const Site& s) {
  const Patches& op = *s.v.op.as<Patches>();
  HloWriter& out = s.out();
  const int n = op.window.rank();
  const HloValue& x = s.in[0];
  // Along each spatial dimension in turn: [.., size, .., window, ..].
  HloValue y = x;
  for (int d = 0; d < n; ++d) {
    HloValues taps;
    for (std::int64_t k = 0; k < op.window[d]; ++k) {
      Shape begin = repeated(0, y.rank()), size = y.shape(), step = repeated(1, y.rank());
      begin.set(d + 1, k * op.dilations[d]);
      size.set(d + 1, op.size[d]);
      step.set(d + 1, op.strides[d]);
      HloValue tap = out.slice(y, begin, size, step);
      Shape apart = tap.shape();
      apart.insert(tap.rank() - 1, 1);
      taps.push_back(out.reshape(tap, apart));
    }
    y = out.concatenate(taps, taps[0].rank() - 2);
  }
  return y;
}

constexpr std::array view_table{Row{"reshape", write_reshape},
                                Row{"broadcast", write_broadcast},
                                Row{"transpose", write_transpose},
                                Row{"slice", write_slice},
                                Row{"strided_slice", write_strided_slice},
                                Row{"reverse", write_reverse},
                                Row{"barrier", write_barrier},
                                Row{"concat", write_concat},
                                Row{"indexed_rows", write_indexed_rows},
                                Row{"patches", write_patches},
                                Row{"divisible", write_reshape}};

// ---------------------------------------------------------------- reductions

/// XLA's name for it. NaN wins a maximum or minimum, there as here.
std::string_view name_of_sum(std::string_view op, bool knows_extrema) {
  if (op == "sum") return "add";
  if (op == "prod") return "multiply";
  if (op == "any") return "or";
  if (op == "all") return "and";
  if (!knows_extrema) return {};
  if (op == "max") return "maximum";
  if (op == "min") return "minimum";
  return {};
}

}  // namespace

std::span<const Row> view_rows() { return view_table; }

HloValue write_reduction(const Site& s) {
  HloWriter& out = s.out();
  const AnyOp& op = s.v.op;
  const DType wide = computed_in(s.spec().dtype);
  const Shape dims{s.in[0].rank() + op.axis()};
  const HloValue x = out.convert(s.in[0], wide);
  const HloValue first = out.constant(wide, op->identity(wide).bits_as(wide));
  const std::string_view name = name_of_sum(op->name, !is_floating(wide) || s.to.options.extrema_keep_nan);
  HloValue y;
  if (!name.empty()) {
    y = out.reduce(name, x, first, dims);
  } else {
    const scalar::Code code = op.combination(s.spec().dtype);
    y = out.reduce({x}, {first}, dims, [&](const HloValues& a, const HloValues& b) {
      return HloValues{write_formula(out, code, {a[0], b[0]}, {})};
    })[0];
  }
  return out.convert(out.reshape(y, s.spec().shape), s.spec().dtype);
}

}  // namespace gradus::xla
