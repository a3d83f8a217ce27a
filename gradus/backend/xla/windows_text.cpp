/// Pooling. Few taps are written one by one: a slice each, which fuses with its neighbours. Many taps are a
/// reduce_window, and elements are read and written at their places.
#include <algorithm>
#include <array>
#include <limits>
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/pool_ops.h"
#include "gradus/ops/window_geometry.h"
#include "gradus/scalar/scalar.h"

namespace gradus::xla {
namespace {

constexpr std::int64_t most_taps = 32;  // that are written one by one

/// Where windows stand: one number a spatial dimension.
struct WindowGeometry {
  Shape window, strides, dilations, before;
  Shape input, size;  // spatial sizes, and numbers of windows

  std::int64_t count() const { return window.size(); }
  /// Where tap k stands within its window.
  Shape place(std::int64_t k) const {
    Shape at = window;
    for (int d = window.rank(); d-- > 0; k /= window[d]) at.set(d, k % window[d] * dilations[d]);
    return at;
  }
  /// Padding behind the input.
  std::int64_t after(int d) const {
    const std::int64_t reach = (size[d] - 1) * strides[d] + (window[d] - 1) * dilations[d] + 1;
    return std::max<std::int64_t>(0, reach - before[d] - input[d]);
  }
  bool pads() const {
    for (int d = 0; d < window.rank(); ++d)
      if (before[d] > 0 || after(d) > 0) return true;
    return false;
  }
};

/// [first, spatial..., last].
Shape with_ends(const Shape& spatial, std::int64_t first, std::int64_t last) {
  Shape all{first};
  for (const std::int64_t d : spatial) all.push_back(d);
  all.push_back(last);
  return all;
}

HloValue padded(HloWriter& out, const HloValue& x, const WindowGeometry& g, const HloValue& with) {
  if (!g.pads()) return x;
  Shape high;
  for (int d = 0; d < g.window.rank(); ++d) high.push_back(g.after(d));
  return out.pad(x, with, with_ends(g.before, 0, 0), with_ends(high, 0, 0), repeated(0, x.rank()));
}

/// The elements of x, which is padded, at tap k of all windows, [n, size..., C].
HloValue at_tap(HloWriter& out, const HloValue& x, const WindowGeometry& g, std::int64_t k) {
  return out.slice(x, with_ends(g.place(k), 0, 0), with_ends(g.size, x.shape()[0], x.shape()[-1]),
                   with_ends(g.strides, 1, 1));
}

HloValue is_tap(HloWriter& out, const HloValue& taps, std::int64_t k) {
  return out.compare("EQ", taps, out.integer(k, i32, taps.shape()));
}

// ---------------------------------------------------------------- choosing

/// The identity of a maximum.
std::uint64_t lowest_bits(DType t) {
  if (is_floating(t)) return scalar::Literal(-std::numeric_limits<double>::infinity()).bits_as(t);
  return is_signed(t) ? std::uint64_t{1} << (8 * size_of(t) - 1) : 0;
}

/// x in the type in which it is compared.
HloValue compared(HloWriter& out, const HloValue& x) { return out.convert(x, computed_in(x.dtype())); }

HloValue argmax_by_taps(const Site& s, const WindowGeometry& g) {
  HloWriter& out = s.out();
  const HloValue x = compared(out, s.in[0]);
  const DType t = x.dtype();
  const HloValue all = padded(out, x, g, out.constant(t, lowest_bits(t)));
  const HloValue inside = padded(out, out.integer(1, boolean, x.shape()), g, out.constant(boolean, 0));
  const Shape& shape = s.spec().shape;
  HloValue best = out.constant(t, lowest_bits(t), shape), which = out.integer(-1, i32, shape);
  for (std::int64_t k = 0; k < g.count(); ++k) {
    const HloValue tap = at_tap(out, all, g, k);
    HloValue is_better = out.either(out.compare("GT", tap, best), out.compare("LT", which, out.zeros_like(which)));
    if (is_floating(t)) {  // the first NaN
      is_better = out.either(is_better, out.is_nan(tap));
      const HloValue is_final = out.both(out.is_nan(best), out.compare("GE", which, out.zeros_like(which)));
      is_better = out.both(is_better, out.negation(is_final));
    }
    if (g.pads()) is_better = out.both(is_better, at_tap(out, inside, g, k));
    best = out.select(is_better, tap, best);
    which = out.select(is_better, out.integer(k, i32, shape), which);
  }
  return which;
}

/// The position of the chosen element within the spatial dimensions, then the tap that stands there.
HloValue argmax_by_window(const Site& s, const WindowGeometry& g) {
  HloWriter& out = s.out();
  const HloValue x = compared(out, s.in[0]);
  const DType t = x.dtype();
  const int n = g.window.rank();
  const Shape& shape = s.spec().shape;
  HloValue position = out.integer(0, i32, x.shape());
  for (int d = 0; d < n; ++d) {
    const HloValue place = out.iota({i32, x.shape()}, d + 1), extent = out.integer(g.input[d], i32, x.shape());
    position = out.add(out.multiply(position, extent), place);
  }
  std::string pads = "[0, 0]";
  for (int d = 0; d < n; ++d) pads += text(", [", g.before[d], ", ", g.after(d), "]");
  const HloValues first{out.constant(t, lowest_bits(t)), out.integer(-1, i32)};
  const std::string better = out.region({{t, {}}, {i32, {}}, {t, {}}, {i32, {}}}, [&](const HloValues& in) {
    const HloValue &a = in[0], &at_a = in[1], &b = in[2], &at_b = in[3];
    const HloValue zero = out.integer(0, i32);
    const HloValue no_a = out.compare("LT", at_a, zero), some_b = out.compare("GE", at_b, zero);
    const HloValue comes_first = out.compare("LT", at_b, at_a);
    HloValue wins = out.compare("GT", b, a), ties = out.compare("EQ", b, a);
    if (is_floating(t)) {
      const HloValue nan_a = out.is_nan(a), nan_b = out.is_nan(b);
      wins = out.either(wins, out.both(nan_b, out.negation(nan_a)));
      ties = out.either(ties, out.both(nan_a, nan_b));
    }
    wins = out.either(wins, out.both(ties, comes_first));
    const HloValue takes_b = out.both(some_b, out.either(no_a, wins));
    return HloValues{out.select(takes_b, b, a), out.select(takes_b, at_b, at_a)};
  });
  const HloValue chosen = out.generic("reduce_window", {x, position, first[0], first[1]},
                                      text("padding = dense<[", pads, ", [0, 0]]> : tensor<", n + 2,
                                           "x2xi64>, window_dilations = ", array_of(with_ends(g.dilations, 1, 1)),
                                           ", window_dimensions = ", array_of(with_ends(g.window, 1, 1)),
                                           ", window_strides = ", array_of(with_ends(g.strides, 1, 1))),
                                      {better}, {{t, shape}, {i32, shape}})[1];
  // Back from the position to the tap.
  HloValue rest = chosen, tap = out.integer(0, i32, shape);
  std::int64_t below = 1;
  const auto whole = [&](std::int64_t v) { return out.integer(v, i32, shape); };
  for (int d = n; d-- > 0;) {
    const HloValue up = out.divide(rest, whole(g.input[d]));
    const HloValue at = out.subtract(rest, out.multiply(up, whole(g.input[d])));
    const HloValue window = out.multiply(out.iota({i32, shape}, d + 1), whole(g.strides[d]));
    const HloValue within = out.subtract(out.add(at, whole(g.before[d])), window);
    tap = out.add(tap, out.multiply(out.divide(within, whole(g.dilations[d])), whole(below)));
    below *= g.window[d];
    rest = up;
  }
  return out.select(out.compare("LT", chosen, whole(0)), whole(-1), tap);
}

HloValue write_window_argmax(const Site& s) {
  const WindowArgmax& op = *s.v.op.as<WindowArgmax>();
  const WindowGeometry g{op.window, op.strides, op.dilations, op.before, spatial_of(s.in[0].shape()), op.size};
  if (s.in[0].shape().size() == 0) return s.out().integer(-1, i32, s.spec().shape);
  return g.count() <= most_taps ? argmax_by_taps(s, g) : argmax_by_window(s, g);
}

// ---------------------------------------------------------------- reading and adding

/// The flat index in an array [n, input..., C] of the element at `taps`: [n, size..., C]; -1 where there is none.
HloValue flat_places(HloWriter& out, const WindowGeometry& g, const HloValue& taps, std::int64_t channels) {
  const Shape& shape = taps.shape();
  const auto whole = [&](std::int64_t v) { return out.integer(v, i64, shape); };
  const auto along = [&](int d) { return out.iota({i64, shape}, d); };
  HloValue rest = out.convert(taps, i64), flat = whole(0), is_inside = out.compare("GE", rest, whole(0));
  Shape scale = dense_strides(with_ends(g.input, shape[0], channels));
  for (int d = g.window.rank(); d-- > 0;) {
    const HloValue up = out.divide(rest, whole(g.window[d]));
    const HloValue tap = out.subtract(rest, out.multiply(up, whole(g.window[d])));
    const HloValue at =
        out.subtract(out.add(out.multiply(along(d + 1), whole(g.strides[d])), out.multiply(tap, whole(g.dilations[d]))),
                     whole(g.before[d]));
    is_inside =
        out.both(is_inside, out.both(out.compare("GE", at, whole(0)), out.compare("LT", at, whole(g.input[d]))));
    flat = out.add(flat, out.multiply(at, whole(scale[d + 1])));
    rest = up;
  }
  flat = out.add(flat, out.multiply(along(0), whole(scale[0])));
  flat = out.add(flat, along(shape.rank() - 1));
  return out.select(is_inside, flat, whole(-1));
}

HloValue write_window_select(const Site& s) {
  const WindowSelect& op = *s.v.op.as<WindowSelect>();
  HloWriter& out = s.out();
  const HloValue &x = s.in[0], &taps = s.in[1];
  const WindowGeometry g{
      op.window, op.strides, op.dilations, op.before, spatial_of(x.shape()), spatial_of(s.spec().shape)};
  const HloValue none = out.constant(x.dtype(), 0, s.spec().shape);
  if (x.shape().size() == 0) return none;
  if (g.count() <= most_taps) {
    const HloValue all = padded(out, x, g, out.constant(x.dtype(), 0));
    HloValue y = none;
    for (std::int64_t k = 0; k < g.count(); ++k) y = out.select(is_tap(out, taps, k), at_tap(out, all, g, k), y);
    return y;
  }
  const HloValue places = flat_places(out, g, taps, x.shape()[-1]);
  const HloValue flat = out.reshape(x, {x.shape().size()});
  const HloValue read =
      out.generic("gather", {flat, places},
                  text("dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], "
                       "start_index_map = [0], index_vector_dim = ",
                       places.rank(), ">, indices_are_sorted = false, slice_sizes = array<i64: 1>"),
                  {}, {{x.dtype(), places.shape()}})[0];
  return out.select(out.compare("GE", places, out.zeros_like(places)), read, none);
}

/// Each tap's share, spread by the strides and put in its place, added in the order of taps.
HloValue deposit_by_taps(const Site& s, const WindowGeometry& g, const HloValue& y) {
  HloWriter& out = s.out();
  const HloValue none = out.zeros_like(y), zero = out.constant(y.dtype(), 0);
  HloValue sum;
  for (std::int64_t k = 0; k < g.count(); ++k) {
    const HloValue share = out.select(is_tap(out, s.in[1], k), y, none);
    Shape low, high, interior;
    for (int d = 0; d < g.window.rank(); ++d) {
      low.push_back(g.place(k)[d] - g.before[d]);
      interior.push_back(g.strides[d] - 1);
      high.push_back(g.input[d] - low[d] - ((g.size[d] - 1) * g.strides[d] + 1));
    }
    const HloValue spread =
        out.pad(share, zero, with_ends(low, 0, 0), with_ends(high, 0, 0), with_ends(interior, 0, 0));
    sum = k == 0 ? spread : out.add(sum, spread);
  }
  return sum;
}

HloValue write_window_deposit(const Site& s) {
  const WindowDeposit& op = *s.v.op.as<WindowDeposit>();
  HloWriter& out = s.out();
  const DType wide = computed_in(s.spec().dtype);
  const HloValue y = out.convert(s.in[0], wide);
  const WindowGeometry g{op.window, op.strides, op.dilations, op.before, op.size, spatial_of(y.shape())};
  if (y.shape().size() == 0) return out.constant(s.spec().dtype, 0, s.spec().shape);
  if (g.count() <= most_taps) return out.convert(deposit_by_taps(s, g, y), s.spec().dtype);
  const Shape flat{y.shape().size()}, all{s.spec().shape.size()};
  const HloValue places = out.reshape(flat_places(out, g, s.in[1], s.spec().shape[-1]), flat);
  const HloValue sums = out.generic(
      "scatter", {out.constant(wide, 0, all), places, out.reshape(y, flat)},
      "indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], "
      "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false",
      {out.combination(wide, [&](const HloValue& a, const HloValue& b) { return out.add(a, b); })}, {{wide, all}})[0];
  return out.convert(out.reshape(sums, s.spec().shape), s.spec().dtype);
}

/// p: [n, out..., window..., C]. Along each spatial dimension in turn, the last one first.
HloValue write_fold(const Site& s) {
  const Fold& op = *s.v.op.as<Fold>();
  HloWriter& out = s.out();
  const int n = op.strides.rank();
  const DType wide = computed_in(s.spec().dtype);
  HloValue p = out.convert(s.in[0], wide);
  if (p.shape().size() == 0) return out.constant(s.spec().dtype, 0, s.spec().shape);
  const HloValue zero = out.constant(wide, 0);
  for (int d = n; d-- > 0;) {
    const int axis = d + 1, taps = p.rank() - 2;  // the window's last dimension goes with the last spatial one
    HloValue sum;
    for (std::int64_t k = 0; k < p.shape()[taps]; ++k) {
      HloValue tap = out.slice_along(p, taps, k, 1);
      Shape less = tap.shape();
      less.erase(taps);
      tap = out.reshape(tap, less);
      Shape low = repeated(0, tap.rank()), high = low, interior = low;
      low.set(axis, k * op.dilations[d]);
      interior.set(axis, op.strides[d] - 1);
      high.set(axis, op.size[d] - low[axis] - ((tap.shape()[axis] - 1) * op.strides[d] + 1));
      tap = out.pad(tap, zero, low, high, interior);
      sum = k == 0 ? tap : out.add(sum, tap);
    }
    p = sum;
  }
  return out.convert(p, s.spec().dtype);
}

constexpr std::array window_table{Row{"window_argmax", write_window_argmax}, Row{"window_select", write_window_select},
                                  Row{"window_deposit", write_window_deposit}, Row{"fold", write_fold}};

}  // namespace

std::span<const Row> window_rows() { return window_table; }

}  // namespace gradus::xla
