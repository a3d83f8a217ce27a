/// Orders of rows, running sums, and recurrences.
#include <array>
#include "gradus/backend/xla/lowering.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/signal_parts.h"
#include "gradus/ops/sort_ops.h"

namespace gradus::xla {
namespace {

/// NaN stands last in both directions; among equals the first one first, since the sort is stable.
HloValue write_argsort(const Site& s) {
  const ArgSort& op = *s.v.op.as<ArgSort>();
  HloWriter& out = s.out();
  const DType t = s.in[0].dtype();
  const HloValue x = out.convert(s.in[0], t == boolean ? u8 : computed_in(t));
  const int last = x.rank() - 1;
  const HloValue number = out.iota({i32, x.shape()}, last);
  const std::string before =
      out.region({{x.dtype(), {}}, {x.dtype(), {}}, {i32, {}}, {i32, {}}}, [&](const HloValues& in) {
        const HloValue &a = in[0], &b = in[1];
        HloValue comes_first = out.compare(op.descending ? "GT" : "LT", a, b);
        if (is_floating(x.dtype()))
          comes_first = out.either(comes_first, out.both(out.compare("EQ", a, a), out.is_nan(b)));
        return HloValues{comes_first};
      });
  const HloValues sorted = out.generic("sort", {x, number}, text("dimension = ", last, " : i64, is_stable = true"),
                                       {before}, {x.spec, number.spec});
  return out.slice_along(sorted[1], last, 0, op.count);
}

/// x moved by `places` along the axis towards higher indices (with `reverse`: lower); zeros fill the gap.
HloValue moved(HloWriter& out, const HloValue& x, int axis, std::int64_t places, bool reverse) {
  Shape low = repeated(0, x.rank()), high = low;
  low.set(axis, reverse ? -places : places);
  high.set(axis, reverse ? places : -places);
  return out.pad(x, out.constant(x.dtype(), 0), low, high, repeated(0, x.rank()));
}

/// Each element takes in the sums 1, 2, 4 ... places before it.
HloValue write_cumsum(const Site& s) {
  const Cumsum& op = *s.v.op.as<Cumsum>();
  HloWriter& out = s.out();
  const int axis = s.spec().shape.rank() + op.axis;
  const std::int64_t n = s.spec().shape[axis];
  HloValue sums = out.convert(s.in[0], computed_in(s.spec().dtype));
  for (std::int64_t places = 1; places < n; places *= 2)
    sums = out.add(moved(out, sums, axis, places, op.reverse), sums);
  if (op.exclusive) sums = moved(out, sums, axis, 1, op.reverse);
  return out.convert(sums, s.spec().dtype);
}

/// One after the other: products of factors taken together would leave the range of numbers.
HloValue write_linear_recurrence(const Site& s) {
  const LinearRecurrence& op = *s.v.op.as<LinearRecurrence>();
  HloWriter& out = s.out();
  const int axis = s.spec().shape.rank() + op.axis;
  const std::int64_t n = s.spec().shape[axis];
  const DType wide = computed_in(s.spec().dtype);
  const HloValue a = out.convert(s.in[0], wide), b = out.convert(s.in[1], wide);
  const HloValue first = out.slice_along(b, axis, op.reverse ? n - 1 : 0, 1);
  // b holds the results as far as they are known.
  const HloValues end = out.for_loop(n - 1, {b, first}, [&](const HloValue& t, const HloValues& now) {
    const HloValue at = op.reverse ? out.subtract(out.integer(n - 2), t) : out.add(t, out.integer(1));
    const HloValue next = out.add(out.multiply(out.row_at(a, at, axis), now[1]), out.row_at(now[0], at, axis));
    return HloValues{out.with_row_at(now[0], next, at, axis), next};
  });
  return out.convert(end[0], s.spec().dtype);
}

/// "tensor<2x3xcomplex<f32>>".
std::string complex_type(const Spec& of_part) {
  const std::string type = tensor_type(of_part), element(element_type(of_part.dtype));
  return text(type.substr(0, type.size() - element.size() - 1), "complex<", element, ">>");
}

/// The inverse, which is not divided here, is the transform of exchanged parts.
HloValue write_fourier(const Site& s) {
  const Fourier& op = *s.v.op.as<Fourier>();
  HloWriter& out = s.out();
  const HloValue& x = s.in[0];
  const int last = x.rank() - 1;
  Shape shape = x.shape();
  shape.erase(last);
  if (s.spec().shape.size() == 0) return out.constant(s.spec().dtype, 0, s.spec().shape);
  const auto part = [&](int which) { return out.reshape(out.slice_along(x, last, which, 1), shape); };
  const Spec of_part{x.dtype(), shape};
  const HloValue first = part(op.inverse ? 1 : 0);
  const HloValue second = op.onesided ? out.zeros_like(first) : part(op.inverse ? 0 : 1);
  const std::string type = complex_type(of_part), number = out.fresh(), spectrum = out.fresh();
  out.line(text(number, " = \"stablehlo.complex\"(", first.name, ", ", second.name, ") : (", tensor_type(of_part), ", ",
                tensor_type(of_part), ") -> ", type));
  out.line(text(spectrum, " = \"stablehlo.fft\"(", number, ") <{fft_length = array<i64: ", shape.back(),
                ">, fft_type = #stablehlo<fft_type FFT>}> : (", type, ") -> ", type));
  const auto made = [&](std::string_view which) {
    Shape longer = shape;
    longer.push_back(1);
    return out.reshape(
        out.define(of_part, text("stablehlo.", which, " ", spectrum, " : (", type, ") -> ", tensor_type(of_part))),
        longer);
  };
  const HloValue re = made("real"), im = made("imag");
  const HloValue y = op.inverse ? out.concatenate({im, re}, last) : out.concatenate({re, im}, last);
  return op.onesided ? out.slice_along(y, last - 1, 0, s.spec().shape[-2]) : y;
}

constexpr std::array sequence_table{Row{"argsort", write_argsort}, Row{"cumsum", write_cumsum},
                                    Row{"linear_recurrence", write_linear_recurrence}, Row{"fourier", write_fourier}};

}  // namespace

std::span<const Row> sequence_rows() { return sequence_table; }

}  // namespace gradus::xla
