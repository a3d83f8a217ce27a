/// Matrix products and convolutions. Their precision is stated on each.
#include <algorithm>
#include <array>
#include <optional>
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/matmul_ops.h"

namespace gradus::xla {
namespace {

/// The dimensions of a product: paired ones of both operands, and summed ones.
struct Pairs {
  Shape batch_a, batch_b, summed_a, summed_b;
};

/// [batch..., rest of a..., rest of b...] in the type of sums.
HloValue write_dot(const Site& s, const HloValue& a, const HloValue& b, const Pairs& pairs) {
  Shape to;
  const auto is_in = [](const Shape& dims, int d) {
    for (const std::int64_t each : dims)
      if (each == d) return true;
    return false;
  };
  for (const std::int64_t d : pairs.batch_a) to.push_back(a.shape()[static_cast<int>(d)]);
  for (int d = 0; d < a.rank(); ++d)
    if (!is_in(pairs.batch_a, d) && !is_in(pairs.summed_a, d)) to.push_back(a.shape()[d]);
  for (int d = 0; d < b.rank(); ++d)
    if (!is_in(pairs.batch_b, d) && !is_in(pairs.summed_b, d)) to.push_back(b.shape()[d]);
  std::string dims;
  if (pairs.batch_a.rank() > 0)
    dims = text("batching_dims = ", list_of(pairs.batch_a), " x ", list_of(pairs.batch_b), ", ");
  // All bits of f64 and of integers, whatever the platform likes.
  const std::string_view precision = a.dtype() == f32 || is_narrow(a.dtype()) ? s.to.precision() : "HIGHEST";
  return s.out().typed("dot_general",
                       text(a.name, ", ", b.name, ", ", dims, "contracting_dims = ", list_of(pairs.summed_a), " x ",
                            list_of(pairs.summed_b), ", precision = [", precision, ", ", precision, "]"),
                       {a, b}, {computed_in(a.dtype()), to});
}

/// The narrow type that all numbers of value i are of, though it is f32: it is a view of a cast. A product of such
/// values is the same sum by units that are faster.
std::optional<DType> narrow_origin(const Graph& graph, int i) {
  const Value& v = behind_views(graph, i);
  if (!v.op || v.op->name != "cast" || v.spec.dtype != f32) return {};
  const DType from = graph[v.in[0]].spec.dtype;
  return is_narrow(from) ? std::optional(from) : std::nullopt;
}

HloValue write_matmul(const Site& s) {
  const Matmul& op = *s.v.op.as<Matmul>();
  HloWriter& out = s.out();
  HloValue a = s.in[0], b = s.in[1];
  if (const auto narrow = narrow_origin(s.graph, s.v.in[0]); narrow && narrow == narrow_origin(s.graph, s.v.in[1])) {
    a = out.convert(a, *narrow);
    b = out.convert(b, *narrow);
  }
  Pairs pairs;
  if (a.rank() > 2 && b.rank() > 2) pairs.batch_a = pairs.batch_b = counted(0, a.rank() - 2);
  pairs.summed_a = {a.rank() - (op.transpose_a ? 2 : 1)};
  pairs.summed_b = {b.rank() - (op.transpose_b ? 1 : 2)};
  if (a.shape()[static_cast<int>(pairs.summed_a[0])] == 0) return out.constant(s.spec().dtype, 0, s.spec().shape);
  HloValue y = write_dot(s, a, b, pairs);
  if (a.rank() <= 2 && b.rank() > 2) {  // [m, batch..., n]
    Shape order = counted(1, b.rank() - 1);
    order.push_back(0);
    order.push_back(b.rank() - 1);
    y = out.transpose(y, order);
  }
  return out.convert(y, s.spec().dtype);
}

// ---------------------------------------------------------------- convolutions

/// The arguments of StableHLO's convolution.
struct ConvolutionGeometry {
  std::string x, w, y;  // the roles of dimensions
  Shape strides, low, high, dilations_of_x, dilations_of_w;
  std::int64_t feature_groups = 1, batch_groups = 1;
};

/// "[b, 0, 1, f]", or "[0, 1, i, o]" with the spatial ones first.
std::string dimensions(const char* first, const char* last, int spatial, bool spatial_first = false) {
  std::string list = "[";
  if (!spatial_first) list += text(first, ", ");
  for (int d = 0; d < spatial; ++d) list += text(d, ", ");
  if (spatial_first) list += text(first, ", ");
  return list + last + "]";
}

HloValue convolve(const Site& s, const HloValue& x, const HloValue& w, const ConvolutionGeometry& g, const Shape& to) {
  std::string pads;
  for (int d = 0; d < g.low.rank(); ++d) pads += text(d ? ", [" : "[", g.low[d], ", ", g.high[d], "]");
  const std::string precision =
      text("#stablehlo<precision ", x.dtype() == f32 ? s.to.precision() : std::string_view("HIGHEST"), ">");
  return s.out().typed("convolution",
                       text("(", x.name, ", ", w.name, ") dim_numbers = ", g.x, "x", g.w, "->", g.y,
                            ", window = {stride = ", list_of(g.strides), ", pad = [", pads,
                            "], lhs_dilate = ", list_of(g.dilations_of_x), ", rhs_dilate = ", list_of(g.dilations_of_w),
                            "} {batch_group_count = ", g.batch_groups, " : i64, feature_group_count = ",
                            g.feature_groups, " : i64, precision_config = [", precision, ", ", precision, "]}"),
                       {x, w}, {x.dtype(), to});
}

/// The windows that reach past the input at its end.
std::int64_t padding_after(std::int64_t windows, std::int64_t stride, std::int64_t taps, std::int64_t dilation,
                           std::int64_t before, std::int64_t input) {
  return (windows - 1) * stride + (taps - 1) * dilation + 1 - before - input;
}

HloValue write_convolution(const Site& s) {
  const Convolution& op = *s.v.op.as<Convolution>();
  const int n = op.size.rank();
  const HloValue &x = s.in[0], &w = s.in[1];
  ConvolutionGeometry g{dimensions("b", "f", n),
                        dimensions("i", "o", n, true),
                        dimensions("b", "f", n),
                        op.strides,
                        op.before,
                        {},
                        repeated(1, n),
                        op.dilations,
                        op.groups,
                        1};
  for (int d = 0; d < n; ++d)
    g.high.push_back(
        padding_after(op.size[d], op.strides[d], w.shape()[d], op.dilations[d], op.before[d], x.shape()[d + 1]));
  return convolve(s, x, w, g, s.spec().shape);
}

/// w: [k..., G * f, c] -> [k..., f, G * c]: input and output channels change places within each group.
HloValue with_groups_exchanged(HloWriter& out, const HloValue& w, std::int64_t groups) {
  const int n = w.rank() - 2;
  const std::int64_t f = w.shape()[n] / groups, c = w.shape()[n + 1];
  Shape apart, together, order = counted(0, n);
  for (int d = 0; d < n; ++d) apart.push_back(w.shape()[d]), together.push_back(w.shape()[d]);
  for (const std::int64_t d : {f, groups * c}) together.push_back(d);
  for (const std::int64_t d : {groups, f, c}) apart.push_back(d);
  for (const std::int64_t d : {n + 1, n, n + 2}) order.push_back(d);
  return out.reshape(out.transpose(out.reshape(w, apart), order), together);
}

/// A convolution of the dilated y with the reversed kernel.
HloValue write_transposed_convolution(const Site& s) {
  const TransposedConvolution& op = *s.v.op.as<TransposedConvolution>();
  HloWriter& out = s.out();
  const int n = op.size.rank();
  const HloValue& y = s.in[0];
  HloValue w = out.reverse(s.in[1], counted(0, n));
  w = op.groups > 1 ? with_groups_exchanged(out, w, op.groups) : w;
  ConvolutionGeometry g{dimensions("b", "f", n),
                        dimensions("i", "o", n, true),
                        dimensions("b", "f", n),
                        repeated(1, n),
                        {},
                        {},
                        op.strides,
                        op.dilations,
                        op.groups,
                        1};
  for (int d = 0; d < n; ++d) {
    const std::int64_t reach = (w.shape()[d] - 1) * op.dilations[d], low = reach - op.before[d];
    g.low.push_back(low);
    g.high.push_back(op.size[d] - 1 - (y.shape()[d + 1] - 1) * op.strides[d] - low + reach);
  }
  return convolve(s, y, w, g, s.spec().shape);
}

/// Channels and examples change places.
HloValue write_kernel_convolution(const Site& s) {
  const KernelConvolution& op = *s.v.op.as<KernelConvolution>();
  const int n = op.size.rank();
  const HloValue &x = s.in[0], &dy = s.in[1];
  ConvolutionGeometry g{dimensions("f", "b", n),
                        dimensions("i", "o", n),
                        dimensions("b", "f", n, true),
                        op.dilations,
                        op.before,
                        {},
                        repeated(1, n),
                        op.strides,
                        1,
                        op.groups};
  for (int d = 0; d < n; ++d)
    g.high.push_back(
        padding_after(op.size[d], op.dilations[d], dy.shape()[d + 1], op.strides[d], op.before[d], x.shape()[d + 1]));
  return convolve(s, x, dy, g, s.spec().shape);
}

// ---------------------------------------------------------------- convolutions of integers

/// The part of x that tap `tap` of each window reads, zeros outside of x: [n, size..., C].
HloValue read_at(HloWriter& out, const HloValue& x, const Shape& tap, const Shape& strides, const Shape& before,
                 const Shape& size) {
  const int n = tap.rank();
  Shape low{0}, high{0}, begin{0}, sizes{x.shape()[0]}, step{1};
  for (int d = 0; d < n; ++d) {
    const std::int64_t first = tap[d] - before[d], last = first + (size[d] - 1) * strides[d];
    low.push_back(std::max<std::int64_t>(0, -first));
    high.push_back(std::max<std::int64_t>(0, last + 1 - x.shape()[d + 1]));
    begin.push_back(std::max<std::int64_t>(0, first));
    sizes.push_back(size[d]);
    step.push_back(strides[d]);
  }
  for (Shape* each : {&low, &high, &begin}) each->push_back(0);
  sizes.push_back(x.shape()[-1]);
  step.push_back(1);
  const HloValue wide = out.pad(x, out.constant(x.dtype(), 0), low, high, repeated(0, x.rank()));
  return out.slice(wide, begin, sizes, step);
}

/// Calls visit(place of the tap, its number in each dimension) in row-major order.
template <class Visit> void for_each_tap(const Shape& window, const Shape& dilations, Visit visit) {
  for (std::int64_t k = 0; k < window.size(); ++k) {
    Shape index = window, place = window;
    std::int64_t rest = k;
    for (int d = window.rank(); d-- > 0; rest /= window[d]) {
      index.set(d, rest % window[d]);
      place.set(d, rest % window[d] * dilations[d]);
    }
    visit(place, index);
  }
}

/// Channels as [..., groups, channels of one].
HloValue grouped(HloWriter& out, const HloValue& x, std::int64_t groups) {
  Shape apart = x.shape();
  apart.set(-1, groups);
  apart.push_back(x.shape()[-1] / groups);
  return out.reshape(x, apart);
}

/// Tap by tap, as products: no platform but the processor convolves integers. w: [k..., C / groups, F].
HloValue integer_convolution(const Site& s, const HloValue& x, const HloValue& w, const Shape& strides,
                             const Shape& dilations, const Shape& before, const Shape& size, std::int64_t groups) {
  HloWriter& out = s.out();
  const int n = size.rank();
  Shape window;
  for (int d = 0; d < n; ++d) window.push_back(w.shape()[d]);
  const std::int64_t c = w.shape()[n], f = w.shape()[n + 1] / groups;
  HloValue sum = out.constant(s.spec().dtype, 0, s.spec().shape);
  for_each_tap(window, dilations, [&](const Shape& place, const Shape& index) {
    const HloValue read = grouped(out, read_at(out, x, place, strides, before, size), groups);
    Shape begin = index, part = repeated(1, n);
    for (const std::int64_t d : {c, f * groups}) begin.push_back(0), part.push_back(d);
    const HloValue weights = out.reshape(out.slice(w, begin, part, repeated(1, n + 2)), {c, groups, f});
    const HloValue made = write_dot(s, read, weights, {{n + 1}, {1}, {n + 2}, {0}});  // [groups, n, size..., f]
    Shape order = counted(1, n + 2);
    order.push_back(0);
    order.push_back(n + 2);
    sum = out.add(sum, out.reshape(out.transpose(made, order), s.spec().shape));
  });
  return sum;
}

HloValue write_integer_transposed(const Site& s) {
  const TransposedConvolution& op = *s.v.op.as<TransposedConvolution>();
  HloWriter& out = s.out();
  const int n = op.size.rank();
  const HloValue& y = s.in[0];
  HloValue w = out.reverse(s.in[1], counted(0, n));
  w = op.groups > 1 ? with_groups_exchanged(out, w, op.groups) : w;
  Shape interior{0}, before;
  for (int d = 0; d < n; ++d) {
    interior.push_back(op.strides[d] - 1);
    before.push_back((w.shape()[d] - 1) * op.dilations[d] - op.before[d]);
  }
  interior.push_back(0);
  const HloValue spread = out.pad(y, out.constant(y.dtype(), 0), repeated(0, n + 2), repeated(0, n + 2), interior);
  return integer_convolution(s, spread, w, repeated(1, n), op.dilations, before, op.size, op.groups);
}

/// The sum over examples and windows for each tap.
HloValue write_integer_kernel(const Site& s) {
  const KernelConvolution& op = *s.v.op.as<KernelConvolution>();
  HloWriter& out = s.out();
  const int n = op.size.rank();
  Shape windows, one = repeated(1, n);
  for (int d = 0; d < n; ++d) windows.push_back(s.in[1].shape()[d + 1]);
  for (const int d : {-2, -1}) one.push_back(s.spec().shape[d]);
  const HloValue dy = grouped(out, s.in[1], op.groups);
  const Shape summed = counted(0, n + 1);
  HloValues taps;
  for_each_tap(op.size, op.dilations, [&](const Shape& place, const Shape&) {
    const HloValue read = grouped(out, read_at(out, s.in[0], place, op.strides, op.before, windows), op.groups);
    const HloValue made =
        write_dot(s, read, dy, {{n + 1}, {n + 1}, summed, summed});  // [groups, C / groups, F / groups]
    taps.push_back(out.reshape(out.transpose(made, {1, 0, 2}), {1, one[-2], one[-1]}));
  });
  return out.reshape(out.concatenate(taps, 0), s.spec().shape);
}

// ---------------------------------------------------------------- rows

bool is_without_terms(const Site& s) { return s.in[0].shape().size() == 0 || s.in[1].shape().size() == 0; }
HloValue zeros(const Site& s) { return s.out().constant(s.spec().dtype, 0, s.spec().shape); }

HloValue write_any_convolution(const Site& s) {
  if (is_without_terms(s)) return zeros(s);
  if (is_floating(s.spec().dtype)) return write_convolution(s);
  const Convolution& op = *s.v.op.as<Convolution>();
  return integer_convolution(s, s.in[0], s.in[1], op.strides, op.dilations, op.before, op.size, op.groups);
}
HloValue write_any_transposed(const Site& s) {
  if (is_without_terms(s)) return zeros(s);
  return is_floating(s.spec().dtype) ? write_transposed_convolution(s) : write_integer_transposed(s);
}
HloValue write_any_kernel(const Site& s) {
  if (is_without_terms(s)) return zeros(s);
  return is_floating(s.spec().dtype) ? write_kernel_convolution(s) : write_integer_kernel(s);
}

constexpr std::array product_table{Row{"matmul", write_matmul}, Row{"convolution", write_any_convolution},
                                   Row{"transposed_convolution", write_any_transposed},
                                   Row{"kernel_convolution", write_any_kernel}};

}  // namespace

std::span<const Row> product_rows() { return product_table; }

}  // namespace gradus::xla
