/// Sums of padded parts are put together from parts: the gradient of slices of one tensor is a sum of cotangents with
/// zeros around them, each as large as the tensor. Where these slices do not cut each other, the sum is one
/// concatenation of sums. An element that met zeros alone becomes x + 0, as -0 + 0 is 0, so no bit changes.
#include <algorithm>
#include <optional>
#include <span>
#include "gradus/compiler/passes.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/concat.h"

namespace gradus {
namespace {

/// A sum of k slices makes k concatenations on its way, which `eliminate` drops. More parts than these stay padded.
constexpr std::size_t most_parts = 64;

bool is_zero(const Value& v) { return v.is_constant && v.constant == 0; }

/// True for a + b of two concatenations along one axis.
bool is_sum_of_joined(const Graph& graph, const Value& v) {
  if (!v.op || !v.op.is_elementwise() || v.in.size() != 2) return false;
  const auto axis = [&](int operand) {
    const Value& joined = graph[operand];
    const Concat* op = joined.op ? joined.op.as<Concat>() : nullptr;
    return op && joined.spec == v.spec ? op->axis : 0;
  };
  if (axis(v.in[0]) == 0 || axis(v.in[0]) != axis(v.in[1])) return false;
  const DType types[] = {v.spec.dtype, v.spec.dtype};
  const scalar::Code code = v.op.formula(types);
  const auto at = [&](int i) -> const scalar::Instruction& { return code.instructions[static_cast<std::size_t>(i)]; };
  // Between narrow floats and the type in which they are added there are conversions.
  const auto behind = [&](int i) { return at(i).op == scalar::Opcode::convert ? at(i).a : i; };
  const scalar::Instruction& sum = at(behind(code.result));
  if (sum.op != scalar::Opcode::add) return false;
  const scalar::Instruction &a = at(behind(sum.a)), &b = at(behind(sum.b));
  return a.op == scalar::Opcode::input && b.op == scalar::Opcode::input && a.a != b.a;
}

/// A part of a concatenation from its begin to its end along the axis.
struct Span {
  std::int64_t begin, end;
  int value;  // -1: zeros
};

/// The parts of `joined`; nothing where a size is not known.
std::optional<std::vector<Span>> spans_of(const Graph& graph, const Value& joined) {
  std::vector<Span> spans;
  std::int64_t end = 0;
  for (int part : joined.in) {
    const std::int64_t length = graph[part].spec.shape[joined.op.as<Concat>()->axis];
    if (length < 0) return {};
    if (length > 0) spans.push_back({end, end + length, is_zero(graph[part]) ? -1 : part});
    end += length;
  }
  return spans;
}

/// The sum of two lists of spans over one range, as pairs of what is added; nothing where a part would be cut.
struct Pair {
  std::int64_t length;
  int a, b;  // -1: zeros
};
std::optional<std::vector<Pair>> pairs_of(std::span<const Span> a, std::span<const Span> b) {
  std::vector<Pair> pairs;
  for (std::int64_t at = 0; !a.empty() && !b.empty();) {
    const std::int64_t end = std::min(a[0].end, b[0].end);
    const auto is_cut = [&](const Span& span) { return span.value >= 0 && (span.begin != at || span.end != end); };
    if (is_cut(a[0]) || is_cut(b[0])) return {};
    pairs.push_back({end - at, a[0].value, b[0].value});
    for (auto* spans : {&a, &b})
      if (spans->front().end == end) *spans = spans->subspan(1);
    at = end;
  }
  return pairs;
}

class PaddedSums {
 public:
  Graph run(const Graph& graph) {
    rewrite_values(graph, made_, [this](const Value& v) { return rewritten(v); });
    return std::move(made_);
  }

 private:
  std::optional<int> rewritten(const Value& v) {
    if (!is_sum_of_joined(made_, v)) return {};
    const auto a = spans_of(made_, made_[v.in[0]]), b = spans_of(made_, made_[v.in[1]]);
    if (!a || !b || a->size() + b->size() > most_parts) return {};
    const auto pairs = pairs_of(*a, *b);
    if (!pairs || pairs->empty()) return {};  // without elements
    const AnyOp concat = made_[v.in[0]].op;
    const int axis = concat.as<Concat>()->axis;
    std::vector<int> parts;
    for (const Pair& pair : *pairs) parts.push_back(part(v, axis, pair));
    if (parts.size() == 1) return parts[0];
    return add({.op = concat, .in = std::move(parts), .spec = v.spec, .scope = v.scope});
  }

  int part(const Value& sum, int axis, const Pair& pair) {
    Spec spec = sum.spec;
    spec.shape.set(axis, pair.length);
    const auto zeros = [&] { return add({.spec = spec, .is_constant = true}); };
    if (pair.a < 0 && pair.b < 0) return zeros();
    if (pair.b < 0 && is_sum(pair.a)) return pair.a;
    if (pair.a < 0 && is_sum(pair.b)) return pair.b;
    const int a = pair.a < 0 ? zeros() : pair.a, b = pair.b < 0 ? zeros() : pair.b;
    sums_.push_back(add({.op = sum.op, .in = {a, b}, .spec = spec, .scope = sum.scope}));
    return sums_.back();
  }

  /// A sum that was made here: zeros that are added again change nothing.
  bool is_sum(int value) const { return std::ranges::binary_search(sums_, value); }
  int add(Value v) { return made_.add(std::move(v)); }

  Graph made_;
  std::vector<int> sums_;  // ascending
};

}  // namespace

void join_padded_sums(Graph& graph) {
  const auto is_candidate = [&](const Value& v) { return is_sum_of_joined(graph, v); };
  if (std::ranges::any_of(graph.values, is_candidate)) graph = PaddedSums().run(graph);
}

}  // namespace gradus
