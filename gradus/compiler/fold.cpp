/// Constants of constants. Every element of a constant has the same bits, so one element is enough.
#include "gradus/base/flush_denormals.h"
#include "gradus/compiler/passes.h"
#include "gradus/reference/interpret.h"

namespace gradus {
namespace {

bool has_symbolic_extent(const scalar::Code& code) {
  for (const scalar::Instruction& in : code.instructions)
    if (in.op == scalar::Opcode::extent && dimension::is_symbolic(static_cast<std::int64_t>(in.bits))) return true;
  return false;
}

bool folds(const Graph& graph, const Value& v) {
  if (!v.op.is_elementwise() && !v.op.is_view() && !v.op.is_alias()) return false;
  for (int operand : v.in)
    if (!graph[operand].is_constant) return false;
  return !v.in.empty();
}

}  // namespace

void fold_constants(Graph& graph) {
  const FlushDenormals as_when_it_runs;
  for (Value& v : graph.values) {
    if (!folds(graph, v)) continue;
    std::vector<std::uint64_t> bits;
    std::vector<DType> types;
    for (int operand : v.in) {
      bits.push_back(graph[operand].constant);
      types.push_back(graph[operand].spec.dtype);
    }
    std::uint64_t result = bits[0];
    if (v.op.is_elementwise()) {
      const scalar::Code code = v.op.formula(types);
      if (has_symbolic_extent(code)) continue;
      result = reference::evaluate_bits(code, bits);
    }
    v.op = {};
    v.in.clear();
    v.is_constant = true;
    v.constant = result;
  }
}

}  // namespace gradus
