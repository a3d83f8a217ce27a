/// Memory and runs of nested programs. The memory: the error word, a table of slots for each member, the arena.
#include "gradus/backend/cpu/run/nested.h"
#include <algorithm>
#include <cstring>
#include "gradus/backend/cpu/run/executor.h"
#include "gradus/base/divide.h"
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace {

std::int64_t aligned(std::int64_t bytes) { return round_up(bytes, 64); }

}  // namespace

NestedProgram::NestedProgram(std::shared_ptr<const CpuProgram> program, std::span<const std::int64_t> symbols,
                             std::vector<int> carries, std::int64_t iterations)
    : program_(std::move(program)), most_members_(ThreadPool::global().threads()) {
  static_assert(sizeof(ErrorWord) <= error_bytes);
  binding_ = program_->bound_within(symbols, most_members_, std::move(carries), iterations);
  const Graph& graph = program_->graph();
  may_fail_ = std::ranges::any_of(graph.values, [](const Value& v) { return v.op && v.op.may_fail(); });
  for (int o : graph.outputs)
    output_bytes_.push_back(bytes_of({graph[o].spec.dtype, graph[o].spec.shape.evaluated(symbols)}));
  for (std::size_t k = 0; k < output_bytes_.size(); ++k)
    if (binding_->outputs[k].slot < 0 && output_bytes_[k] > 0) copied_.push_back(k);
  bytes_ = arena_offset() + aligned(binding_->arena_bytes);
}

std::int64_t NestedProgram::bytes_for(std::int64_t slots, std::int64_t arena_bytes) {
  return error_bytes + ThreadPool::global().threads() * table_bytes(slots) + aligned(arena_bytes);
}
std::int64_t NestedProgram::table_bytes(std::int64_t slots) {
  return aligned(slots * static_cast<std::int64_t>(sizeof(void*)));
}
std::int64_t NestedProgram::arena_offset() const { return error_bytes + most_members_ * table_bytes(); }
void** NestedProgram::slots_in(const TeamMember& member, std::byte* memory) const {
  return reinterpret_cast<void**>(memory + error_bytes + member.worker * table_bytes());
}

bool NestedProgram::keeps_apart(const TeamMember& member) const {
  return !binding_->by_rows.jobs.empty() && member.team == binding_->team;
}
std::byte* NestedProgram::arena_of(const TeamMember& member, std::byte* memory) const {
  return memory + arena_offset() + (keeps_apart(member) ? member.worker * binding_->by_rows.stride : 0);
}

void NestedProgram::prepare(const TeamMember& member, std::byte* memory) const {
  internal_check(member.worker < most_members_, "a nested program was laid out for ", most_members_, " workers");
  void** slots = slots_in(member, memory);
  for (const auto& [slot, offset] : binding_->temporaries) slots[slot] = arena_of(member, memory) + offset;
  if (member.worker == 0) std::construct_at(&error_in(memory));
}

bool NestedProgram::run(const TeamMember& member, std::byte* memory, std::span<const void* const> inputs,
                        std::span<void* const> outputs) const {
  void** slots = slots_in(member, memory);
  const Graph& graph = program_->graph();
  for (std::size_t k = 0; k < inputs.size(); ++k) slots[graph.inputs[k]] = const_cast<void*>(inputs[k]);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (const int slot = binding_->outputs[k].slot; slot >= 0) slots[slot] = outputs[k];
  for (const Inside& inside : binding_->inside) slots[inside.value] = slots[inside.output];
  if (keeps_apart(member)) {
    execute_rows(member, *binding_, slots, arena_of(member, memory) + binding_->by_rows.scratch, error_in(memory));
    const auto first = binding_->by_rows.first.begin() + member.worker;
    copy_outputs(inputs, outputs, first[0], first[1], binding_->by_rows.rows);
    return true;
  }
  execute_within(member, *binding_, slots, memory + arena_offset(), error_in(memory));
  if (may_fail_ || !copied_.empty()) member.meet();
  if (may_fail_ && error_in(memory).thunk.load(std::memory_order_relaxed) != -1) [[unlikely]]
    return false;
  if (member.worker == 0) copy_outputs(inputs, outputs, 0, 1, 1);
  return true;
}

/// Rows [begin, end) of `rows`, or the same share of a value without such rows: an input that is passed through.
void NestedProgram::copy_outputs(std::span<const void* const> inputs, std::span<void* const> outputs,
                                 std::int64_t begin, std::int64_t end, std::int64_t rows) const {
  for (const std::size_t k : copied_) {
    const OutputSource& source = binding_->outputs[k];
    const void* from = source.input >= 0 ? inputs[at(source.input)] : outputs[at(source.earlier)];
    const std::int64_t row = output_bytes_[k] / rows, rest = output_bytes_[k] % rows;
    const std::int64_t first = begin * row + begin * rest / rows, last = end * row + end * rest / rows;
    if (from != outputs[k])
      std::memcpy(static_cast<std::byte*>(outputs[k]) + first, static_cast<const std::byte*>(from) + first,
                  static_cast<std::size_t>(last - first));
  }
}

std::exception_ptr NestedProgram::failure(std::byte* memory) const {
  std::exception_ptr failure = program_->failure(*binding_, error_in(memory));
  std::destroy_at(&error_in(memory));
  return failure;
}

}  // namespace gradus
