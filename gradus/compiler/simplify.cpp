/// Rewrites that change no bit. Rules look at formulas and views, not at the names of ops.
#include <bit>
#include <optional>
#include "gradus/compiler/passes.h"
#include "gradus/graph/known_formulas.h"
#include "gradus/ops/attention_ops.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

using scalar::Opcode;

std::uint64_t number_bits(double number, DType t) { return scalar::Literal(number).bits_as(t); }

bool is_number(const Graph& graph, int value, double number) {
  const Value& v = graph[value];
  return v.is_constant && v.constant == number_bits(number, v.spec.dtype);
}

/// x*1, 1*x, x/1, x-0, x+(-0), for integers x+0: the operand that the result equals, except for flushed numbers.
std::optional<int> neutral_operand(const Graph& graph, const Value& v, Opcode op) {
  if (v.in.size() != 2) return {};
  const double neutral = op == Opcode::multiply || op == Opcode::divide   ? 1.0
                         : op == Opcode::add && is_floating(v.spec.dtype) ? -0.0
                                                                          : 0.0;
  if (op != Opcode::multiply && op != Opcode::divide && op != Opcode::add && op != Opcode::subtract) return {};
  if (is_number(graph, v.in[1], neutral)) return v.in[0];
  const bool commutes = op == Opcode::multiply || op == Opcode::add;
  if (commutes && is_number(graph, v.in[0], neutral)) return v.in[1];
  return {};
}

/// For f64, f32 and bf16.
bool is_subnormal(DType t, std::uint64_t bits) {
  const auto among = [bits](std::uint64_t exponent, std::uint64_t mantissa) {
    return (bits & exponent) == 0 && (bits & mantissa) != 0;
  };
  if (t == f64) return among(0x7ff0000000000000, 0x000fffffffffffff);
  return t == f32 ? among(0x7f800000, 0x007fffff) : among(0x7f80, 0x007f);
}

/// Values without numbers that arithmetic would flush, such as results of arithmetic. Only for them x*1 is x: inputs,
/// and values only moved since, may be subnormal. (Subnormals of f16 are none in the type of their arithmetic, and are
/// never flushed.)
class Flushed {
 public:
  explicit Flushed(const Graph& graph) : graph_(graph) {}

  /// Asked of values that are simplified already.
  bool has(int value) {
    while (std::ssize(known_) <= value) known_.push_back(look_at(graph_[static_cast<int>(known_.size())]));
    return known_[value];
  }

 private:
  static bool is_concerned(DType t) { return is_floating(t) && t != f16; }

  bool look_at(const Value& v) {
    if (!is_concerned(v.spec.dtype)) return true;
    if (v.is_constant) return !is_subnormal(v.spec.dtype, v.constant);
    const auto operand = [&](int k) {
      const int i = v.in[static_cast<std::size_t>(k)];
      return is_concerned(graph_[i].spec.dtype) ? static_cast<bool>(known_[i]) : true;
    };
    if (v.op.is_view() || v.op.is_alias()) return graph_[v.in[0]].spec.dtype == v.spec.dtype && operand(0);
    if (v.op.is_elementwise()) return is_flushed(formulas_.of(graph_, v), operand);
    if (v.op.is_reduction()) return is_flushed(v.op.combination(v.spec.dtype), [&](int) { return operand(0); });
    if (v.op.is_index()) return is_flushed(v.op.index_formula(), [](int) { return true; });
    return v.op.as<Matmul>() != nullptr;
  }

  /// `operand(k)`: true if input k of the formula is flushed.
  template <class Operand> static bool is_flushed(const scalar::Code& code, Operand operand) {
    std::vector<bool> flushed;
    const auto at = [&](int i) { return static_cast<bool>(flushed[static_cast<std::size_t>(i)]); };
    for (const scalar::Instruction& in : code.instructions) {
      if (!is_concerned(in.type)) {
        flushed.push_back(true);
        continue;
      }
      switch (in.op) {
        case Opcode::input: flushed.push_back(operand(in.a)); break;
        case Opcode::constant: flushed.push_back(!is_subnormal(in.type, in.bits)); break;
        case Opcode::negate:
        case Opcode::absolute: flushed.push_back(at(in.a)); break;
        case Opcode::minimum:
        case Opcode::maximum: flushed.push_back(at(in.a) && at(in.b)); break;
        case Opcode::select: flushed.push_back(at(in.b) && at(in.c)); break;
        case Opcode::convert: {  // bits of bf16 are moved or rounded; between f32 and f64 it is arithmetic
          const DType from = code.instructions[static_cast<std::size_t>(in.a)].type;
          flushed.push_back(from == bf16 || in.type == bf16 ? at(in.a) && from != f64 : true);
          break;
        }
        case Opcode::bitcast: flushed.push_back(false); break;
        default: flushed.push_back(true);
      }
    }
    return at(code.result);
  }

  const Graph& graph_;
  KnownFormulas formulas_;
  PerValue<bool> known_;  // of the first values
};

/// The instruction behind a conversion between a narrow float and the type in which it is computed, if `i` is one.
int unrounded(const scalar::Code& code, int i) {
  const scalar::Instruction& in = code.instructions[static_cast<std::size_t>(i)];
  if (in.op != Opcode::convert) return i;
  const DType from = code.instructions[static_cast<std::size_t>(in.a)].type;
  const bool widens = is_narrow(from) && in.type == computed_in(from);
  const bool rounds = is_narrow(in.type) && from == computed_in(in.type);
  return widens || rounds ? in.a : i;
}

struct PassedOn {
  std::optional<int> operand;
  bool is_computed = false;  // by arithmetic without effect, but for flushing
};
/// For a formula that gives back an operand, such as a cast to the same type, or that has no effect.
PassedOn passed_on(const Graph& graph, const Value& v) {
  std::vector<DType> types;
  for (int operand : v.in) types.push_back(graph[operand].spec.dtype);
  const scalar::Code code = v.op.formula(types);
  const auto at = [&](int i) -> const scalar::Instruction& { return code.instructions[static_cast<std::size_t>(i)]; };
  if (const auto& result = at(code.result); result.op == Opcode::input)
    return {v.in[static_cast<std::size_t>(result.a)]};
  if (graph[v.in[0]].spec.dtype != v.spec.dtype) return {};
  const scalar::Instruction& result = at(unrounded(code, code.result));
  if (result.a < 0 || result.b < 0) return {};
  const scalar::Instruction &a = at(unrounded(code, result.a)), &b = at(unrounded(code, result.b));
  const bool of_operands = a.op == Opcode::input && b.op == Opcode::input && a.a == 0 && b.a == 1;
  if (!of_operands) return {};
  return {neutral_operand(graph, v, result.op), is_floating(v.spec.dtype)};
}

std::optional<int> unchanged_operand(const Graph& graph, const Value& v, Flushed& flushed) {
  const PassedOn same = passed_on(graph, v);
  return same.operand && same.is_computed && !flushed.has(*same.operand) ? std::nullopt : same.operand;
}

bool is_identity(const Graph& graph, const Value& v) {
  const Shape& source = graph[v.in[0]].spec.shape;
  if (source != v.spec.shape || is_by_table(v)) return false;
  const View view = v.op->view(v.op.attributes(), source, v.spec.shape);
  return view.offset == 0 && view.backwards == 0 && view.strides == dense_strides(source);
}

/// Two transposes that cancel, as where heads are split and joined again.
std::optional<int> transposed_back(const Graph& graph, const Value& v) {
  const Transpose* second = v.op.as<Transpose>();
  const Value& before = graph[v.in[0]];
  const Transpose* first = second && before.op ? before.op.as<Transpose>() : nullptr;
  if (!first) return {};
  const int rank = v.spec.shape.rank();
  // Numbers in orders count from the last dimension.
  for (int i = 0; i < rank; ++i)
    if (first->order[rank - 1 - static_cast<int>(second->order[i])] != rank - 1 - i) return {};
  return before.in[0];
}

/// The same bytes as its operand has. A sum over replicas is none, though it is an alias where there is one.
bool is_same_again(const Value& v) { return is_plain_alias(v) && !v.op.joins_shards(); }

/// An earlier value that `v` equals.
std::optional<int> same_as(const Graph& graph, const Value& v, Flushed& flushed) {
  if (v.op.is_elementwise()) return unchanged_operand(graph, v, flushed);
  if (is_same_again(v) && graph[v.in[0]].spec == v.spec) return v.in[0];
  if (v.op.is_view() && is_identity(graph, v)) return v.in[0];
  if (v.op.is_view()) return transposed_back(graph, v);
  return {};
}

/// The matrices that `operand` is a view of with rows and columns exchanged.
std::optional<int> transposed_source(const Graph& graph, int operand) {
  const Value& v = graph[operand];
  if (!v.op.is_view() || is_by_table(v)) return {};
  const Shape& source = graph[v.in[0]].spec.shape;
  if (source.rank() < 2 || source.rank() != v.spec.shape.rank()) return {};
  const auto exchanged = [](Shape shape) {
    const std::int64_t last = shape[-1];
    shape.set(-1, shape[-2]);
    shape.set(-2, last);
    return shape;
  };
  const View view = v.op->view(v.op.attributes(), source, v.spec.shape);
  const bool exchanges = view.offset == 0 && view.backwards == 0 && v.spec.shape == exchanged(source) &&
                         view.strides == exchanged(dense_strides(source));
  return exchanges ? std::optional(v.in[0]) : std::nullopt;
}

/// A product reads a transposed operand in place.
void absorb_transposes(const Graph& graph, Value& v) {
  const Matmul* product = v.op.as<Matmul>();
  if (!product) return;
  Matmul absorbed = *product;
  bool* const transposed[] = {&absorbed.transpose_a, &absorbed.transpose_b};
  for (std::size_t k = 0; k < 2; ++k)
    while (const auto source = transposed_source(graph, v.in[k])) {
      v.in[k] = *source;
      *transposed[k] = !*transposed[k];
    }
  v.op = AnyOp::of(absorbed);
}

/// The tensor that `operand` exchanges the second and the third of four dimensions of.
std::optional<int> exchanged_source(const Graph& graph, int operand) {
  const Transpose* transpose = graph[operand].op ? graph[operand].op.as<Transpose>() : nullptr;
  const bool exchanges = transpose && transpose->order == Shape{3, 1, 2, 0};  // counted from the last dimension
  return exchanges ? std::optional(graph[operand].in[0]) : std::nullopt;
}

/// Attention of few queries reads keys and values in place, time first or heads first.
void absorb_exchanges(const Graph& graph, Value& v) {
  const BlockedAttention* attention = v.op.as<BlockedAttention>();
  if (!attention || attention->heads_first || v.spec.dtype == bf16) return;
  if (v.spec.shape[1] < 0 || v.spec.shape[1] > BlockedAttention::few_queries) return;
  const auto keys = exchanged_source(graph, v.in[1]), values = exchanged_source(graph, v.in[2]);
  if (!keys || !values) return;
  BlockedAttention absorbed = *attention;
  absorbed.heads_first = true;
  v.in[1] = *keys;
  v.in[2] = *values;
  v.op = AnyOp::of(absorbed);
}

}  // namespace

std::optional<int> operand_passed_on(const Graph& graph, const Value& v) {
  return v.op && v.op.is_elementwise() && !v.in.empty() ? passed_on(graph, v).operand : std::nullopt;
}

void simplify(Graph& graph) {
  multiply_repeated_rows_once(graph);
  join_padded_sums(graph);
  Flushed flushed(graph);
  PerValue<int> stands_for(graph);
  for (int i = 0; i < graph.size(); ++i) {
    Value& v = graph[i];
    for (int& operand : v.in) operand = stands_for[operand];
    if (v.op.as<ReshapeOp>() && graph[v.in[0]].op.as<ReshapeOp>()) v.in[0] = graph[v.in[0]].in[0];
    absorb_transposes(graph, v);
    absorb_exchanges(graph, v);
    stands_for[i] = same_as(graph, v, flushed).value_or(i);
  }
  for (int& output : graph.outputs) output = stands_for[output];
}

}  // namespace gradus
