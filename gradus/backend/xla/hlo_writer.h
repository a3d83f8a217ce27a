/// HloWriter: StableHLO as text, line by line, in single-assignment form. Every method writes one op and gives its
/// result; shapes of results are worked out here. Names are made here, too: nothing that a user wrote enters the text.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/tensor/shape.h"

namespace gradus::xla {

/// A value of the text: its name, such as %12, and its type. The spec names no device.
struct HloValue {
  std::string name;
  Spec spec;

  const Shape& shape() const { return spec.shape; }
  DType dtype() const { return spec.dtype; }
  int rank() const { return spec.shape.rank(); }
};
using HloValues = std::vector<HloValue>;

/// The type of an element: "f32", "ui8", "i1".
std::string_view element_type(DType t);
/// "tensor<2x3xf32>". InternalError if a size is not known: no plugin is ever sent an open dimension.
std::string tensor_type(const Spec& spec);
/// "[1, 2]".
std::string list_of(const Shape& numbers);
/// "a, b".
std::string joined(const std::vector<std::string>& parts);
/// "array<i64: 1, 2>", which attributes are made of.
std::string array_of(const Shape& numbers);
/// Their names, joined.
std::string names_of(const HloValues& values);

/// `count` times `number`.
Shape repeated(std::int64_t number, int count);
/// begin, begin + 1, ... end - 1.
Shape counted(std::int64_t begin, std::int64_t end);
Shape permuted(const Shape& shape, const Shape& order);

class HloWriter {
 public:
  HloWriter() = default;
  HloWriter(const HloWriter&) = delete;

  // ---------------------------------------------------------------- lines
  std::string take_text() { return std::move(text_); }
  std::string fresh() { return "%" + std::to_string(next_++); }
  void line(std::string_view written) { text_.append(indent_, ' ').append(written).append("\n"); }
  HloValue define(const Spec& spec, std::string_view right);
  /// `stablehlo.OP ARGUMENTS : (types of operands) -> type`.
  HloValue typed(std::string_view op, std::string_view arguments, const HloValues& operands, const Spec& spec);
  /// An op whose operands and result have one type.
  HloValue same(std::string_view op, const HloValues& operands);

  // ---------------------------------------------------------------- constants
  /// Floats are written by their bits: exact, NaN and infinities too.
  HloValue constant(DType dtype, std::uint64_t bits, const Shape& shape = {});
  HloValue integer(std::int64_t number, DType dtype = i64, const Shape& shape = {});
  /// The number as any dtype; 0.5 is 0 as an integer.
  HloValue number(double value, DType dtype, const Shape& shape = {});
  /// A constant that no algebraic rewriting looks into.
  HloValue hidden_constant(DType dtype, std::uint64_t bits, const Shape& shape);
  HloValue zeros_like(const HloValue& x) { return constant(x.dtype(), 0, x.shape()); }

  // ---------------------------------------------------------------- elementwise
  HloValue add(const HloValue& a, const HloValue& b) { return same("add", {a, b}); }
  HloValue subtract(const HloValue& a, const HloValue& b) { return same("subtract", {a, b}); }
  HloValue multiply(const HloValue& a, const HloValue& b) { return same("multiply", {a, b}); }
  HloValue divide(const HloValue& a, const HloValue& b) { return same("divide", {a, b}); }
  HloValue both(const HloValue& a, const HloValue& b) { return same("and", {a, b}); }
  HloValue either(const HloValue& a, const HloValue& b) { return same("or", {a, b}); }
  HloValue negation(const HloValue& a) { return same("not", {a}); }
  /// `how`: EQ, NE, LT, LE, GT, GE.
  HloValue compare(std::string_view how, const HloValue& a, const HloValue& b);
  /// `which` has the shape of the others, or is one boolean.
  HloValue select(const HloValue& which, const HloValue& a, const HloValue& b);
  HloValue is_nan(const HloValue& x) { return compare("NE", x, x); }
  /// As the scalar instruction `convert` (scalar/scalar.h): float to integer truncates and saturates, NaN gives 0.
  HloValue convert(const HloValue& x, DType to);
  /// convert() to a narrow float that XLA, which is allowed excess precision, does not leave out before one back.
  HloValue rounded(const HloValue& x, DType to);
  /// The operands, not to be looked through.
  HloValues barrier(const HloValues& operands);

  // ---------------------------------------------------------------- moving
  HloValue iota(const Spec& spec, int dimension);
  HloValue reshape(const HloValue& x, const Shape& to);
  /// Dimension i of the result is dimension order[i] of x.
  HloValue transpose(const HloValue& x, const Shape& order);
  /// Dimension i of x becomes dimension dims[i] of the result.
  HloValue broadcast_in(const HloValue& x, const Shape& to, const Shape& dims);
  /// As NumPy's: aligned at the last dimension.
  HloValue broadcast(const HloValue& x, const Shape& to);
  HloValue slice(const HloValue& x, const Shape& begin, const Shape& size, const Shape& step);
  HloValue slice_along(const HloValue& x, int axis, std::int64_t begin, std::int64_t size);
  HloValue reverse(const HloValue& x, const Shape& dims);
  /// Negative padding cuts off.
  HloValue pad(const HloValue& x, const HloValue& with, const Shape& low, const Shape& high, const Shape& interior);
  HloValue concatenate(const HloValues& parts, int axis);
  /// The part of `size` that begins at `begin`, one scalar a dimension.
  HloValue dynamic_slice(const HloValue& x, const HloValues& begin, const Shape& size);
  HloValue dynamic_update_slice(const HloValue& x, const HloValue& part, const HloValues& begin);
  /// Row `at` along `axis`, which stays with size 1.
  HloValue row_at(const HloValue& x, const HloValue& at, int axis, std::int64_t rows = 1);
  HloValue with_row_at(const HloValue& x, const HloValue& row, const HloValue& at, int axis);

  // ---------------------------------------------------------------- regions
  using Combine = std::function<HloValue(const HloValue& a, const HloValue& b)>;
  /// Over `dims`, which are gone from the result. `op`: add, multiply, and, or, maximum ..., which XLA knows by name.
  HloValue reduce(std::string_view op, const HloValue& x, const HloValue& first, const Shape& dims);
  /// The same for several operands of one shape at once; `combine` takes (a..., b...).
  using CombineAll = std::function<HloValues(const HloValues& a, const HloValues& b)>;
  HloValues reduce(const HloValues& x, const HloValues& first, const Shape& dims, const CombineAll& combine);

  using Condition = std::function<HloValue(const HloValues&)>;
  using Body = std::function<HloValues(const HloValues&)>;
  HloValues while_loop(const HloValues& first, const Condition& condition, const Body& body);
  /// body(t, carries) for t = 0 ... count - 1 (i64).
  HloValues for_loop(std::int64_t count, const HloValues& first,
                     const std::function<HloValues(const HloValue& t, const HloValues&)>& body);
  /// One of two regions, which give `specs`.
  HloValues branch(const HloValue& condition, const std::vector<Spec>& specs, const std::function<HloValues()>& if_true,
                   const std::function<HloValues()>& if_false);

  /// An op written in its generic form, whose `regions` (text) were written by region().
  HloValues generic(std::string_view op, const HloValues& operands, std::string_view properties,
                    const std::vector<std::string>& regions, const std::vector<Spec>& results);
  /// `({ ^bb0(arguments): ... stablehlo.return results })` without the outer brackets.
  std::string region(const std::vector<Spec>& arguments, const Body& body);
  /// A region of a, b.
  std::string combination(DType dtype, const Combine& combine);

 private:
  /// Text written in its lifetime stands in a block: constants in it are unknown outside.
  class Block;
  HloValue float_to_integer(const HloValue& x, DType to);
  HloValue narrowed_once(const HloValue& x, DType to);
  HloValues unpacked(const std::string& name, const std::vector<Spec>& specs);
  std::string bound_return(const HloValues& values);

  std::string text_;
  std::size_t indent_ = 4;
  int next_ = 0;
  std::map<std::string, HloValue, std::less<>> constants_;
};

}  // namespace gradus::xla
