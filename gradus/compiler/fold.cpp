/// Constants of constants. Every element of a constant has the same bits, so one element is enough.
#include <optional>
#include "gradus/base/floating_point_state.h"
#include "gradus/compiler/passes.h"
#include "gradus/graph/known_formulas.h"
#include "gradus/scalar/interpret.h"

namespace gradus {
namespace {

using scalar::Code;
using scalar::Opcode;

/// True if the result can be known now: it depends on no input but constants, and on no symbol.
bool is_known(const Code& code, const std::vector<bool>& known_inputs) {
  std::vector<bool> needed(code.instructions.size());
  needed[at(code.result)] = true;
  for (int i = code.result; i >= 0; --i) {
    if (!needed[at(i)]) continue;
    const scalar::Instruction& in = code.instructions[at(i)];
    if (in.op == Opcode::extent && dimension::is_symbolic(static_cast<std::int64_t>(in.bits))) return false;
    if (in.op == Opcode::input) {
      if (!known_inputs[at(in.a)]) return false;
      continue;
    }
    for (int operand : {in.a, in.b, in.c})
      if (operand >= 0) needed[at(operand)] = true;
  }
  return true;
}

/// The bits of every element of `v`, if they are known and the same.
std::optional<std::uint64_t> folded(const Graph& graph, const Value& v, KnownFormulas& formulas) {
  if (v.op.is_index()) {
    const Code code = v.op.index_formula();
    if (!is_known(code, {false})) return {};
    return scalar::evaluate_bits(code, std::vector<std::uint64_t>{0});
  }
  if (v.op.joins_shards()) return {};  // it counts for each replica
  if (v.op.is_view() || v.op.is_alias()) {
    const Value& source = graph[v.in[0]];
    return source.is_constant ? std::optional(source.constant) : std::nullopt;
  }
  if (!v.op.is_elementwise()) return {};
  std::vector<std::uint64_t> bits;
  std::vector<bool> known;
  for (int operand : v.in) {
    bits.push_back(graph[operand].constant);
    known.push_back(graph[operand].is_constant);
  }
  const Code& code = formulas.of(graph, v);
  if (!is_known(code, known)) return {};
  return scalar::evaluate_bits(code, bits);
}

}  // namespace

void fold_constants(Graph& graph) {
  const KernelFloats as_when_it_runs;
  KnownFormulas formulas;
  for (Value& v : graph.values) {
    const std::optional<std::uint64_t> bits = folded(graph, v, formulas);
    if (!bits) continue;
    v.op = {};
    v.in.clear();
    v.is_constant = true;
    v.constant = *bits;
  }
}

}  // namespace gradus
