/// Lines, constants, and ops that compute or move elements.
#include "gradus/backend/xla/hlo_writer.h"
#include <algorithm>
#include <cmath>
#include "gradus/base/numbered.h"
#include "gradus/scalar/scalar.h"

namespace gradus::xla {

std::string_view element_type(DType t) {
  constexpr std::string_view names[] = {"f64", "f32", "f16",  "bf16", "i64",  "i32", "i16",
                                        "i8",  "ui8", "ui16", "ui32", "ui64", "i1"};
  return names[static_cast<int>(t)];
}

std::string tensor_type(const Spec& spec) {
  std::string type = "tensor<";
  for (const std::int64_t d : spec.shape) {
    internal_check(d >= 0, "StableHLO text of a size that is not known: ", spec);  // libtpu ends the process
    type.append(std::to_string(d)).append("x");
  }
  return type.append(element_type(spec.dtype)).append(">");
}

std::string list_of(const Shape& numbers) {
  std::string list = "[";
  for (const std::int64_t d : numbers) list.append(list.size() > 1 ? ", " : "").append(std::to_string(d));
  return list + "]";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all.append(all.empty() ? "" : ", ").append(part);
  return all;
}

Shape repeated(std::int64_t number, int count) {
  Shape shape;
  for (int i = 0; i < count; ++i) shape.push_back(number);
  return shape;
}
Shape counted(std::int64_t begin, std::int64_t end) {
  Shape shape;
  for (; begin < end; ++begin) shape.push_back(begin);
  return shape;
}
Shape permuted(const Shape& shape, const Shape& order) {
  Shape to;
  for (const std::int64_t d : order) to.push_back(shape[static_cast<int>(d)]);
  return to;
}

namespace {

std::string types_of(const HloValues& values) {
  std::string types;
  for (const HloValue& v : values) types.append(types.empty() ? "" : ", ").append(tensor_type(v.spec));
  return types;
}

std::uint64_t lowest_bits(std::uint64_t bits, int count) {
  return count >= 64 ? bits : bits & ((std::uint64_t{1} << count) - 1);
}

/// A number as StableHLO's text has it.
std::string literal(DType dtype, std::uint64_t bits) {
  const int width = static_cast<int>(size_of(dtype)) * 8;
  if (dtype == boolean) return bits & 1 ? "true" : "false";
  if (is_floating(dtype)) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string hex = "0x";
    for (int at = width - 4; at >= 0; at -= 4) hex.push_back(digits[bits >> at & 15]);
    return hex;
  }
  if (!is_signed(dtype)) return std::to_string(lowest_bits(bits, width));
  return std::to_string(static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width));
}

}  // namespace

std::string array_of(const Shape& numbers) {
  const std::string list = list_of(numbers);
  return text("array<i64", numbers.rank() ? ": " : "", list.substr(1, list.size() - 2), ">");
}

std::string names_of(const HloValues& values) {
  std::vector<std::string> names;
  for (const HloValue& v : values) names.push_back(v.name);
  return joined(names);
}

// ---------------------------------------------------------------- lines

HloValue HloWriter::define(const Spec& spec, std::string_view right) {
  HloValue made{fresh(), {spec.dtype, spec.shape}};
  line(made.name + " = " + std::string(right));
  return made;
}

HloValue HloWriter::typed(std::string_view op, std::string_view arguments, const HloValues& operands,
                          const Spec& spec) {
  return define(spec, text("stablehlo.", op, " ", arguments, " : (", types_of(operands), ") -> ", tensor_type(spec)));
}

HloValue HloWriter::same(std::string_view op, const HloValues& operands) {
  for (const HloValue& x : operands)
    internal_check(x.spec == operands[0].spec, "StableHLO ", op, " of ", operands[0].spec, " and ", x.spec);
  return define(operands[0].spec,
                text("stablehlo.", op, " ", names_of(operands), " : ", tensor_type(operands[0].spec)));
}

// ---------------------------------------------------------------- constants

HloValue HloWriter::constant(DType dtype, std::uint64_t bits, const Shape& shape) {
  const Spec spec{dtype, shape};
  std::string right = text("stablehlo.constant dense<", literal(dtype, bits), "> : ", tensor_type(spec));
  const auto known = constants_.find(right);
  if (known != constants_.end()) return known->second;
  const HloValue made = define(spec, right);
  constants_.emplace(std::move(right), made);
  return made;
}

HloValue HloWriter::integer(std::int64_t number, DType dtype, const Shape& shape) {
  return constant(dtype, static_cast<std::uint64_t>(number), shape);
}

HloValue HloWriter::number(double value, DType dtype, const Shape& shape) {
  return constant(dtype, scalar::Literal(value).bits_as(dtype), shape);
}

HloValue HloWriter::hidden_constant(DType dtype, std::uint64_t bits, const Shape& shape) {
  std::string key = text("hidden ", literal(dtype, bits), tensor_type({dtype, shape}));
  const auto known = constants_.find(key);
  if (known != constants_.end()) return known->second;
  const HloValue made =
      shape.rank() == 0 ? barrier({constant(dtype, bits)})[0] : broadcast(hidden_constant(dtype, bits, {}), shape);
  constants_.emplace(std::move(key), made);
  return made;
}

// ---------------------------------------------------------------- elementwise

HloValue HloWriter::compare(std::string_view how, const HloValue& a, const HloValue& b) {
  internal_check(a.spec == b.spec, "StableHLO compare of ", a.spec, " and ", b.spec);
  const DType t = a.dtype();
  const std::string_view kind = is_floating(t) ? "FLOAT" : is_integer(t) && is_signed(t) ? "SIGNED" : "UNSIGNED";
  return typed("compare", text(how, ", ", a.name, ", ", b.name, ", ", kind), {a, b}, {boolean, a.shape()});
}

HloValue HloWriter::select(const HloValue& which, const HloValue& a, const HloValue& b) {
  internal_check(a.spec == b.spec, "StableHLO select of ", a.spec, " and ", b.spec);
  return define(a.spec, text("stablehlo.select ", names_of({which, a, b}), " : ", tensor_type(which.spec), ", ",
                             tensor_type(a.spec)));
}

HloValue HloWriter::float_to_integer(const HloValue& x, DType to) {
  // Beyond the ends StableHLO leaves the result open.
  const int bits = static_cast<int>(size_of(to)) * 8 - (is_signed(to) ? 1 : 0);
  const double end = std::ldexp(1.0, bits);
  const auto limit = [&](double v) { return number(v, x.dtype(), x.shape()); };
  const auto whole = [&](std::uint64_t v) { return constant(to, v, x.shape()); };
  const std::uint64_t high = lowest_bits(~std::uint64_t{0}, bits), low = is_signed(to) ? high + 1 : 0;
  HloValue y = typed("convert", x.name, {x}, {to, x.shape()});
  y = select(compare("GE", x, limit(end)), whole(high), y);
  y = is_signed(to) ? select(compare("LT", x, limit(-end)), whole(low), y)
                    : select(compare("LE", x, limit(0)), whole(low), y);
  return select(is_nan(x), whole(0), y);
}

/// f64 and wide integers to a narrow float by way of f32, which keeps in its last bit whether anything was cut off:
/// so the second rounding is the only one.
HloValue HloWriter::narrowed_once(const HloValue& x, DType to) {
  if (is_integer(x.dtype())) {
    HloValue whole = x;
    if (size_of(x.dtype()) == 8) {  // f64 lacks the lowest bits, which only break ties
      const auto bits = [&](std::uint64_t v) { return constant(x.dtype(), v, x.shape()); };
      const HloValue rest = both(x, bits(0x7ff)), without = both(x, bits(~std::uint64_t{0x7ff}));
      const HloValue marked = select(compare("EQ", rest, bits(0)), without, either(without, bits(0x400)));
      HloValue is_large = compare("GE", x, bits(std::uint64_t{1} << 53));
      if (is_signed(x.dtype())) is_large = either(is_large, compare("LE", x, bits(~((std::uint64_t{1} << 53) - 1))));
      whole = select(is_large, marked, x);
    }
    return narrowed_once(typed("convert", whole.name, {whole}, {f64, x.shape()}), to);
  }
  const HloValue near = typed("convert", x.name, {x}, {f32, x.shape()});
  const HloValue back = typed("convert", near.name, {near}, {f64, x.shape()});
  const HloValue bits = typed("bitcast_convert", near.name, {near}, {i32, x.shape()});
  const HloValue one = integer(1, i32, x.shape());
  const HloValue is_beyond = compare("GT", same("abs", {back}), same("abs", {x}));
  const HloValue towards_zero = select(is_beyond, subtract(bits, one), bits);
  const HloValue is_inexact = compare("NE", back, x), is_number = compare("EQ", x, x);
  const HloValue odd = select(both(is_inexact, is_number), either(towards_zero, one), bits);
  const HloValue kept = typed("bitcast_convert", odd.name, {odd}, {f32, x.shape()});
  return typed("convert", kept.name, {kept}, {to, x.shape()});
}

HloValue HloWriter::convert(const HloValue& x, DType to) {
  const DType from = x.dtype();
  if (from == to) return x;
  if (to == boolean) return compare("NE", x, zeros_like(x));
  if (is_floating(from) && is_integer(to)) return float_to_integer(is_narrow(from) ? convert(x, f32) : x, to);
  const bool is_wide = from == f64 || (is_integer(from) && size_of(from) >= 4);
  if (is_narrow(to) && is_wide) return narrowed_once(x, to);
  if (is_narrow(from) && is_narrow(to)) return convert(convert(x, f32), to);
  return typed("convert", x.name, {x}, {to, x.shape()});
}

HloValue HloWriter::rounded(const HloValue& x, DType to) {
  if (!is_narrow(to) || !is_floating(x.dtype()) || x.dtype() == to) return convert(x, to);
  const HloValue wide = is_narrow(x.dtype()) ? convert(x, f32) : x;
  if (wide.dtype() == f64) return convert(wide, to);
  const HloValue cut =
      define(wide.spec, text("stablehlo.reduce_precision ", wide.name, ", format = ", to == bf16 ? "e8m7" : "e5m10",
                             " : ", tensor_type(wide.spec)));
  // It flushes subnormals, which conversions keep.
  const HloValue least = number(to == bf16 ? 0x1p-126 : 0x1p-14, f32, x.shape());
  const HloValue kept = select(compare("GE", same("abs", {wide}), least), cut, wide);
  return typed("convert", kept.name, {kept}, {to, x.shape()});
}

HloValues HloWriter::barrier(const HloValues& operands) {
  std::vector<Spec> specs;
  for (const HloValue& x : operands) specs.push_back(x.spec);
  const std::string name = fresh();
  line(text(name, operands.size() > 1 ? text(":", operands.size()) : std::string(),
            " = stablehlo.optimization_barrier ", names_of(operands), " : ", types_of(operands)));
  return unpacked(name, specs);
}

// ---------------------------------------------------------------- moving

HloValue HloWriter::iota(const Spec& spec, int dimension) {
  return define(spec, text("stablehlo.iota dim = ", dimension, " : ", tensor_type(spec)));
}

HloValue HloWriter::reshape(const HloValue& x, const Shape& to) {
  return x.shape() == to ? x : typed("reshape", x.name, {x}, {x.dtype(), to});
}

HloValue HloWriter::transpose(const HloValue& x, const Shape& order) {
  if (order == counted(0, x.rank())) return x;
  return typed("transpose", text(x.name, ", dims = ", list_of(order)), {x}, {x.dtype(), permuted(x.shape(), order)});
}

HloValue HloWriter::broadcast_in(const HloValue& x, const Shape& to, const Shape& dims) {
  if (x.shape() == to) return x;
  return typed("broadcast_in_dim", text(x.name, ", dims = ", list_of(dims)), {x}, {x.dtype(), to});
}

HloValue HloWriter::broadcast(const HloValue& x, const Shape& to) {
  return broadcast_in(x, to, counted(to.rank() - x.rank(), to.rank()));
}

HloValue HloWriter::slice(const HloValue& x, const Shape& begin, const Shape& size, const Shape& step) {
  if (size == x.shape()) return x;
  std::string ranges;
  for (int d = 0; d < x.rank(); ++d) {
    const std::int64_t end = size[d] == 0 ? begin[d] : begin[d] + (size[d] - 1) * step[d] + 1;
    ranges += text(d ? ", " : "", begin[d], ":", end, ":", step[d]);
  }
  return typed("slice", text(x.name, " [", ranges, "]"), {x}, {x.dtype(), size});
}

HloValue HloWriter::slice_along(const HloValue& x, int axis, std::int64_t begin, std::int64_t size) {
  Shape first = repeated(0, x.rank()), sizes = x.shape();
  first.set(axis, begin);
  sizes.set(axis, size);
  return slice(x, first, sizes, repeated(1, x.rank()));
}

HloValue HloWriter::reverse(const HloValue& x, const Shape& dims) {
  if (dims.rank() == 0) return x;
  return define(x.spec, text("stablehlo.reverse ", x.name, ", dims = ", list_of(dims), " : ", tensor_type(x.spec)));
}

HloValue HloWriter::pad(const HloValue& x, const HloValue& with, const Shape& low, const Shape& high,
                        const Shape& interior) {
  Shape to;
  for (int d = 0; d < x.rank(); ++d)
    to.push_back(x.shape()[d] + low[d] + high[d] + std::max<std::int64_t>(x.shape()[d] - 1, 0) * interior[d]);
  if (to == x.shape() && low == repeated(0, x.rank())) return x;
  return typed("pad",
               text(x.name, ", ", with.name, ", low = ", list_of(low), ", high = ", list_of(high),
                    ", interior = ", list_of(interior)),
               {x, with}, {x.dtype(), to});
}

HloValue HloWriter::concatenate(const HloValues& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Shape to = parts[0].shape();
  for (std::size_t k = 1; k < parts.size(); ++k) to.set(axis, to[axis] + parts[k].shape()[axis]);
  return typed("concatenate", text(names_of(parts), ", dim = ", axis), parts, {parts[0].dtype(), to});
}

HloValue HloWriter::dynamic_slice(const HloValue& x, const HloValues& begin, const Shape& size) {
  HloValues operands{x};
  operands.insert(operands.end(), begin.begin(), begin.end());
  return typed("dynamic_slice", text(names_of(operands), ", sizes = ", list_of(size)), operands, {x.dtype(), size});
}

HloValue HloWriter::dynamic_update_slice(const HloValue& x, const HloValue& part, const HloValues& begin) {
  HloValues operands{x, part};
  operands.insert(operands.end(), begin.begin(), begin.end());
  return typed("dynamic_update_slice", names_of(operands), operands, x.spec);
}

namespace {

HloValues beginnings(HloWriter& out, const HloValue& at, int axis, int rank) {
  HloValues begin;
  for (int d = 0; d < rank; ++d) begin.push_back(d == axis ? at : out.integer(0, at.dtype()));
  return begin;
}

}  // namespace

HloValue HloWriter::row_at(const HloValue& x, const HloValue& at, int axis, std::int64_t rows) {
  Shape size = x.shape();
  size.set(axis, rows);
  return dynamic_slice(x, beginnings(*this, at, axis, x.rank()), size);
}

HloValue HloWriter::with_row_at(const HloValue& x, const HloValue& row, const HloValue& at, int axis) {
  return dynamic_update_slice(x, row, beginnings(*this, at, axis, x.rank()));
}

}  // namespace gradus::xla
