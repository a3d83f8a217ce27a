/// Formulas, and values that have to stand in memory as they are.
#include <algorithm>
#include "gradus/backend/cpu/interpreter/lower.h"
#include "gradus/backend/cpu/interpreter/source.h"
#include "gradus/scalar/rare_parts.h"

namespace gradus::interpreter {
namespace {

struct Elementwise {
  std::vector<Source> sources;
  scalar::Interpreter formula;
  int target;
  std::int64_t result_bytes;  // of one element
};

scalar::Code formula_of(const Graph& graph, int value) {
  const Value& v = graph[value];
  if (!v.op.is_elementwise())  // itself
    return {{{.op = scalar::Opcode::input, .type = v.spec.dtype, .a = 0}}, 0};
  std::vector<DType> types;
  for (int operand : v.in) types.push_back(graph[operand].spec.dtype);
  return v.op.formula(types);
}

}  // namespace

BoundThunk bind_elementwise(const Graph& graph, int value, std::span<const std::int64_t> symbols) {
  const Value& v = graph[value];
  const scalar::Code code = formula_of(graph, value);
  auto work =
      std::make_shared<Elementwise>(Elementwise{{}, scalar::Interpreter(code, symbols), value, size_of(v.spec.dtype)});
  BoundThunk bound{.extent = v.spec.shape.evaluated(symbols).size(), .grain = block};
  if (v.op.is_elementwise())
    for (int operand : v.in) work->sources.emplace_back(graph, operand, symbols);
  else work->sources.emplace_back(graph, value, symbols);
  bound.worker_scratch = work->formula.scratch_bytes();
  std::int64_t moved = work->result_bytes;
  for (const Source& source : work->sources) {
    bound.worker_scratch += source.scratch_bytes();
    moved += size_of(source.dtype());
  }
  bound.bytes = bound.extent * moved;
  bound.flops = bound.extent * scalar::usual_instructions(code);
  bound.data = std::move(work);
  return bound;
}

void run_elementwise(const KernelArguments* arguments, std::int64_t begin, std::int64_t end) {
  const auto& work = *static_cast<const Elementwise*>(arguments->data);
  auto* target = static_cast<std::byte*>(arguments->slots[work.target]);
  std::array<const void*, 8> inputs{};
  for (std::int64_t at = begin; at < end; at += block) {
    const std::int64_t count = std::min(block, end - at);
    auto* scratch = static_cast<std::byte*>(arguments->scratch);
    for (std::size_t i = 0; i < work.sources.size(); ++i) {
      inputs[i] = work.sources[i].read(arguments->slots, at, count, scratch);
      scratch += work.sources[i].scratch_bytes();
    }
    work.formula.run(inputs.data(), target + at * work.result_bytes, count, scratch);
  }
}

}  // namespace gradus::interpreter
