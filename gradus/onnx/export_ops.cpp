#include "gradus/onnx/export_ops.h"
#include <algorithm>
#include "gradus/onnx/export_control.h"
#include "gradus/onnx/export_windows.h"
#include "gradus/ops/barrier.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/cumulative_ops.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/signal_parts.h"
#include "gradus/ops/views.h"

namespace gradus::onnx {
namespace {

using Names = std::vector<std::string>;

[[noreturn]] void refuse(const Value& v, std::string_view why) {
  throw InvalidArgument(text("export_onnx: the op ", v.op->name, " has no form in ONNX", why));
}

// ---------------------------------------------------------------- elementwise

/// Ops that ONNX has too. All others are written as the arithmetic of their formulas.
struct SameOp {
  std::string_view ours, theirs;
};
constexpr SameOp same_ops[] = {{"add", "Add"},
                               {"subtract", "Sub"},
                               {"multiply", "Mul"},
                               {"divide", "Div"},
                               {"negative", "Neg"},
                               {"abs", "Abs"},
                               {"sign", "Sign"},
                               {"exp", "Exp"},
                               {"log", "Log"},
                               {"sqrt", "Sqrt"},
                               {"sin", "Sin"},
                               {"cos", "Cos"},
                               {"tan", "Tan"},
                               {"asin", "Asin"},
                               {"acos", "Acos"},
                               {"atan", "Atan"},
                               {"sinh", "Sinh"},
                               {"cosh", "Cosh"},
                               {"asinh", "Asinh"},
                               {"acosh", "Acosh"},
                               {"atanh", "Atanh"},
                               {"tanh", "Tanh"},
                               {"erf", "Erf"},
                               {"floor", "Floor"},
                               {"ceil", "Ceil"},
                               {"round", "Round"},
                               {"sigmoid", "Sigmoid"},
                               {"relu", "Relu"},
                               {"softplus", "Softplus"},
                               {"gelu", "Gelu"},
                               {"mish", "Mish"},
                               {"softsign", "Softsign"},
                               {"elu", "Elu"},
                               {"selu", "Selu"},
                               {"maximum", "Max"},
                               {"minimum", "Min"},
                               {"pow", "Pow"},
                               {"less", "Less"},
                               {"less_equal", "LessOrEqual"},
                               {"equal", "Equal"},
                               {"logical_and", "And"},
                               {"logical_or", "Or"},
                               {"logical_xor", "Xor"},
                               {"logical_not", "Not"},
                               {"is_nan", "IsNaN"},
                               {"where", "Where"},
                               {"stop_gradient", "Identity"}};

/// Functions that ONNX has not, by those that it has.
std::string write_function(GraphWriter& out, const Value& v, const Names& in) {
  const auto one = [&] { return out.scalar(v.spec.dtype, scalar::Literal(1).bits_as(v.spec.dtype)); };
  const std::string_view name = v.op->name;
  if (name == "expm1") return out.node("Sub", {out.node("Exp", in), one()});
  if (name == "log1p") return out.node("Log", {out.node("Add", {in[0], one()})});
  if (name == "rsqrt") return out.node("Reciprocal", {out.node("Sqrt", in)});
  if (name == "tanh_gate") {
    const std::string half = out.scalar(v.spec.dtype, scalar::Literal(0.5).bits_as(v.spec.dtype));
    const std::string gate = out.node("Add", {out.node("Tanh", {in[1]}), one()});
    return out.node("Mul", {out.node("Mul", {in[0], half}), gate});
  }
  if (name == "truncatemod" && is_floating(v.spec.dtype)) return out.node("Mod", in, {GraphWriter::integer("fmod", 1)});
  if (name == "mod" && is_floating(v.spec.dtype)) {
    const std::string rest = out.node("Mod", in, {GraphWriter::integer("fmod", 1)});
    const std::string zero = out.scalar(v.spec.dtype, 0);
    const std::string differs = out.node("Xor", {out.node("Less", {rest, zero}), out.node("Less", {in[1], zero})});
    const std::string moves = out.node("And", {differs, out.node("Not", {out.node("Equal", {rest, zero})})});
    return out.node("Where", {moves, out.node("Add", {rest, in[1]}), rest});
  }
  if (name == "silu") return out.node("Mul", {in[0], out.node("Sigmoid", in)});
  return {};
}

std::string cast_to(GraphWriter& out, const std::string& x, DType dtype) {
  return out.node("Cast", {x}, {GraphWriter::integer("to", code_of(dtype))});
}

std::string truncated(GraphWriter& out, const std::string& x, const std::string& zero) {
  return out.node("Where", {out.node("Less", {x, zero}), out.node("Ceil", {x}), out.node("Floor", {x})});
}

/// One instruction of a formula on values that are written under `a`, `b`, `c`.
std::string write_instruction(GraphWriter& out, const scalar::Instruction& i, const Value& v, const std::string& a,
                              const std::string& b, const std::string& c) {
  using scalar::Opcode;
  const bool logical = i.type == boolean;
  switch (i.op) {
    case Opcode::constant: return out.scalar(i.type, i.bits);
    case Opcode::extent: return out.reshape(out.dimension(static_cast<std::int64_t>(i.bits)), {});
    case Opcode::add: return out.node("Add", {a, b});
    case Opcode::subtract: return out.node("Sub", {a, b});
    case Opcode::multiply: return out.node("Mul", {a, b});
    case Opcode::divide: return out.node("Div", {a, b});
    case Opcode::negate: return out.node("Neg", {a});
    case Opcode::absolute: return out.node("Abs", {a});
    case Opcode::square_root: return out.node("Sqrt", {a});
    case Opcode::round_even: return out.node("Round", {a});
    case Opcode::floor: return out.node("Floor", {a});
    case Opcode::ceil: return out.node("Ceil", {a});
    case Opcode::truncate: return truncated(out, a, out.scalar(i.type, 0));
    case Opcode::fma: return out.node("Add", {out.node("Mul", {a, b}), c});
    case Opcode::minimum: return out.node("Where", {out.node("Less", {a, b}), a, b});
    case Opcode::maximum: return out.node("Where", {out.node("Less", {b, a}), a, b});
    case Opcode::less: return out.node("Less", {a, b});
    case Opcode::less_equal: return out.node("LessOrEqual", {a, b});
    case Opcode::equal: return out.node("Equal", {a, b});
    case Opcode::bit_and: return out.node(logical ? "And" : "BitwiseAnd", {a, b});
    case Opcode::bit_or: return out.node(logical ? "Or" : "BitwiseOr", {a, b});
    case Opcode::bit_xor: return out.node(logical ? "Xor" : "BitwiseXor", {a, b});
    case Opcode::select: return out.node("Where", {a, b, c});
    case Opcode::convert: return cast_to(out, a, i.type);
    default: refuse(v, ": its formula works on bits");
  }
}

std::string write_formula(GraphWriter& out, const Value& v, const scalar::Code& code, const Names& in) {
  Names names;
  const auto name = [&](int i) { return i < 0 ? std::string() : names[static_cast<std::size_t>(i)]; };
  for (const scalar::Instruction& i : code.instructions)
    names.push_back(i.op == scalar::Opcode::input ? in[static_cast<std::size_t>(i.a)]
                                                  : write_instruction(out, i, v, name(i.a), name(i.b), name(i.c)));
  return name(code.result);
}

std::string write_elementwise(GraphWriter& out, const Value& v, const Names& in, const std::vector<Spec>& specs) {
  if (v.op->name == "cast") return cast_to(out, in[0], v.spec.dtype);
  const auto same = std::ranges::find(same_ops, v.op->name, &SameOp::ours);
  if (same != std::end(same_ops)) return out.node(same->theirs, in);
  if (std::string written = write_function(out, v, in); !written.empty()) return written;
  std::vector<DType> dtypes;
  for (const Spec& spec : specs) dtypes.push_back(spec.dtype);
  return write_formula(out, v, v.op.formula(dtypes), in);
}

/// A function of the flat index: a range, put into the shape, and the arithmetic of its formula.
std::string write_index_function(GraphWriter& out, const Value& v) {
  const scalar::Code code = v.op.index_formula();
  const auto scalar = [&](std::int64_t d) { return out.reshape(out.dimension(d), {}); };
  const bool uses_index = std::ranges::any_of(
      code.instructions, [](const scalar::Instruction& i) { return i.op == scalar::Opcode::input; });
  const std::int64_t count = v.spec.shape.size();
  const bool short_and_known = count >= 0 && count <= 4096;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; uses_index && short_and_known && i < count; ++i) numbers.push_back(i);
  const std::string index = !uses_index       ? std::string()
                            : short_and_known ? out.integers(numbers)
                                              : out.node("Range", {scalar(0), scalar(count), scalar(1)});
  const std::string flat = write_formula(out, v, code, {index});
  if (uses_index) return out.reshape(flat, v.spec.shape);
  return v.spec.shape.rank() == 0 ? flat : out.node("Expand", {flat, out.shape(v.spec.shape)});
}

// ---------------------------------------------------------------- reductions

std::string write_reduction(GraphWriter& out, const Value& v, const std::string& x) {
  constexpr SameOp reductions[] = {{"sum", "ReduceSum"},   {"max", "ReduceMax"}, {"min", "ReduceMin"},
                                   {"prod", "ReduceProd"}, {"any", "ReduceMax"}, {"all", "ReduceMin"}};
  const auto same = std::ranges::find(reductions, v.op->name, &SameOp::ours);
  if (same == std::end(reductions)) refuse(v, "");
  return out.node(same->theirs, {x, out.integers({v.op.axis()})}, {GraphWriter::integer("keepdims", 1)});
}

// ---------------------------------------------------------------- views

std::string write_slice(GraphWriter& out, const Slice& slice, const std::string& x) {
  std::vector<std::int64_t> axes;
  Shape end;
  for (int d = 0; d < slice.begin.rank(); ++d) {
    axes.push_back(d);
    end.push_back(dimension::add(slice.begin[d], slice.size[d]));
  }
  return out.node("Slice", {x, out.shape(slice.begin), out.shape(end), out.integers(axes)});
}

std::string write_reverse(GraphWriter& out, const Reverse& reverse, const std::string& x) {
  std::vector<std::int64_t> axes;
  for (int bit = 0; bit < Shape::max_rank; ++bit)
    if (reverse.dimensions >> bit & 1) axes.push_back(-1 - bit);
  if (axes.empty()) return x;
  const std::vector<std::int64_t> last(axes.size(), -1), none(axes.size(), INT64_MIN), step(axes.size(), -1);
  return out.node("Slice", {x, out.integers(last), out.integers(none), out.integers(axes), out.integers(step)});
}

std::string write_transpose(GraphWriter& out, const Transpose& transpose, const std::string& x) {
  std::vector<std::int64_t> order;
  for (const std::int64_t from_last : transpose.order) order.push_back(transpose.order.rank() - 1 - from_last);
  return out.node("Transpose", {x}, {GraphWriter::integers("perm", order)});
}

/// ONNX's inverse is divided by the number of points.
std::string write_fourier(GraphWriter& out, const Fourier& fourier, const std::string& x, const Spec& spec) {
  const std::string y =
      out.node("DFT", {x},
               {GraphWriter::integer("inverse", fourier.inverse), GraphWriter::integer("onesided", fourier.onesided)});
  if (!fourier.inverse) return y;
  const scalar::Literal points(static_cast<double>(spec.shape[-2]));
  return out.node("Mul", {y, out.scalar(spec.dtype, points.bits_as(spec.dtype))});
}

std::string exchanged(GraphWriter& out, const std::string& x, int rank) {
  std::vector<std::int64_t> order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return out.node("Transpose", {x}, {GraphWriter::integers("perm", order)});
}

}  // namespace

std::string write_value(GraphWriter& out, const Graph& graph, const Value& v, const Names& in) {
  std::vector<Spec> specs;
  for (const int operand : v.in) specs.push_back(graph[operand].spec);
  if (std::string written = write_windows(out, graph, v, in); !written.empty()) return written;
  if (std::string written = write_control(out, v, in); !written.empty()) return written;
  const AnyOp& op = v.op;
  if (op.is_elementwise()) return write_elementwise(out, v, in, specs);
  if (op.is_reduction()) return write_reduction(out, v, in[0]);
  if (op.is_index()) return write_index_function(out, v);
  if (op.as<Broadcast>()) return out.node("Expand", {in[0], out.shape(v.spec.shape)});
  if (const auto* slice = op.as<Slice>()) return write_slice(out, *slice, in[0]);
  if (const auto* reverse = op.as<Reverse>()) return write_reverse(out, *reverse, in[0]);
  if (const auto* transpose = op.as<Transpose>()) return write_transpose(out, *transpose, in[0]);
  if (op.as<ReshapeOp>()) return out.reshape(in[0], v.spec.shape);
  if (op.as<Barrier>() || op.as<CheckRange>()) return out.node("Identity", {in[0]});
  if (const auto* concat = op.as<Concat>()) return out.node("Concat", in, {GraphWriter::integer("axis", concat->axis)});
  if (const auto* gather = op.as<Gather>()) return out.node("Gather", in, {GraphWriter::integer("axis", gather->axis)});
  if (const auto* sums = op.as<Cumsum>())
    return out.node(
        "CumSum", {in[0], out.reshape(out.integers({sums->axis}), {})},
        {GraphWriter::integer("exclusive", sums->exclusive), GraphWriter::integer("reverse", sums->reverse)});
  if (const auto* fourier = op.as<Fourier>()) return write_fourier(out, *fourier, in[0], specs[0]);
  if (const auto* product = op.as<Matmul>())
    return out.node("MatMul", {product->transpose_a ? exchanged(out, in[0], specs[0].shape.rank()) : in[0],
                               product->transpose_b ? exchanged(out, in[1], specs[1].shape.rank()) : in[1]});
  refuse(v, op.is_control() ? ": a loop whose end depends on data; a scan, of a length that is known, has one" : "");
}

}  // namespace gradus::onnx
