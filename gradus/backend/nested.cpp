/// Memory and runs of nested programs.
#include "gradus/backend/nested.h"
#include <cstring>
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace {

constexpr std::int64_t alignment = 64;
std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

NestedProgram::NestedProgram(std::shared_ptr<const Program> program, std::span<const std::int64_t> symbols)
    : program_(std::move(program)), binding_(program_->bound(symbols, ThreadPool::global().threads())) {
  const Graph& graph = program_->graph();
  for (int o : graph.outputs)
    output_bytes_.push_back(bytes_of({graph[o].spec.dtype, graph[o].spec.shape.evaluated(symbols)}));
  bytes_ = arena_offset() + aligned(binding_->arena_bytes);
}

std::int64_t NestedProgram::arena_offset() const {
  return aligned(program_->slots() * static_cast<std::int64_t>(sizeof(void*)));
}

void NestedProgram::prepare(std::byte* memory) const {
  void** slots = reinterpret_cast<void**>(memory);
  for (const auto& [slot, offset] : binding_->temporaries) slots[slot] = memory + arena_offset() + offset;
}

void NestedProgram::run(std::byte* memory, std::span<const void* const> inputs, std::span<void* const> outputs) const {
  void** slots = reinterpret_cast<void**>(memory);
  const Graph& graph = program_->graph();
  for (std::size_t k = 0; k < inputs.size(); ++k) slots[graph.inputs[k]] = const_cast<void*>(inputs[k]);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (const int slot = binding_->outputs[k].slot; slot >= 0) slots[slot] = outputs[k];
  for (const Inside& inside : binding_->inside) slots[inside.value] = slots[inside.output];
  program_->run_bound(*binding_, slots, memory + arena_offset());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const OutputSource& source = binding_->outputs[k];
    if (source.slot >= 0 || output_bytes_[k] == 0) continue;
    const void* from = source.input >= 0 ? inputs[static_cast<std::size_t>(source.input)]
                                         : outputs[static_cast<std::size_t>(source.earlier)];
    if (from != outputs[k]) std::memcpy(outputs[k], from, static_cast<std::size_t>(output_bytes_[k]));
  }
}

}  // namespace gradus
