/// Branches and loops in object files, on one thread: the counterpart of run/cond.cpp, scan.cpp and while.cpp. It comes
/// along in object files and is no part of the library.
#include <alloca.h>
#include <cstring>
#include "gradus/backend/cpu/object/standalone_runs.h"

namespace gradus {
namespace {

using object::CarryStep;
using object::NestedStep;
using object::Table;

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
}
void clear_bytes(void* to, std::int64_t bytes) {
  if (bytes > 0) std::memset(to, 0, static_cast<std::size_t>(bytes));
}
std::byte* advanced(void* base, std::int64_t bytes) { return static_cast<std::byte*>(base) + bytes; }

/// True if all went well; else `failure` says why not.
bool run_nested(const NestedStep& step, std::byte* memory, void* const* inputs, void* const* outputs,
                standalone::Failure& failure) {
  auto** const slots = reinterpret_cast<void**>(memory + NestedStep::slot_table);
  for (std::int64_t i = 0; i < step.slots.count; ++i)
    slots[step.slots.entries[i].slot] = memory + step.slots.entries[i].address.offset;
  for (std::int64_t k = 0; k < step.inputs.count; ++k) slots[step.inputs.entries[k]] = inputs[k];
  for (std::int64_t k = 0; k < step.outputs.count; ++k)
    if (const std::int64_t slot = step.outputs.entries[k].slot; slot >= 0) slots[slot] = outputs[k];
  for (std::int64_t i = 0; i < step.inside.count; ++i)
    slots[step.inside.entries[i].value] = slots[step.inside.entries[i].output];
  if (!standalone::run_jobs(step.jobs, step.dimensions, slots, memory, failure)) return false;
  for (std::int64_t k = 0; k < step.outputs.count; ++k) {
    const NestedStep::Output& output = step.outputs.entries[k];
    if (output.slot < 0)
      copy_bytes(outputs[k], output.input >= 0 ? inputs[output.input] : outputs[output.earlier], output.bytes);
  }
  return true;
}

void report(const KernelArguments* arguments, const standalone::Failure& failure) {
  report_failure(arguments, failure.index, failure.value);
}

/// Memory of this call for `count` pointers. (The caller's frame, so it has to be inlined.)
#define GRADUS_POINTERS(count) static_cast<void**>(alloca(static_cast<std::size_t>((count) + 1) * sizeof(void*)))

/// Where the carries of a loop are and go to.
struct CarryPlaces {
  const Table<CarryStep>& plans;
  void* const* slots;
  std::byte* memory;
  std::int64_t capacity;  // elements of a history
  void** now;

  void begin() const {
    for (std::int64_t i = 0; i < plans.count; ++i) now[i] = slots[plans.entries[i].operand];
  }
  const CarryStep& plan(std::int64_t i) const { return plans.entries[i]; }
  void* home(std::int64_t i) const { return plan(i).result >= 0 ? slots[plan(i).result] : memory + plan(i).offsets[0]; }
  void* history(std::int64_t i, std::int64_t element) const {
    return advanced(slots[plan(i).history], element * plan(i).bytes);
  }
  void enter(std::int64_t element) const {
    for (std::int64_t i = 0; i < plans.count; ++i) {
      if (plan(i).history < 0) continue;
      void* const place = history(i, element);
      copy_bytes(place, now[i], plan(i).bytes);
      now[i] = place;
    }
  }
  void* target(std::int64_t i, std::int64_t next) const {
    if (plan(i).history >= 0) return next >= 0 && next < capacity ? history(i, next) : home(i);
    if (plan(i).in_place != 0) return home(i);
    return now[i] == home(i) ? memory + plan(i).offsets[1] : home(i);
  }
  void leave(std::int64_t begin) const {
    for (std::int64_t i = 0; i < plans.count; ++i) {
      copy_bytes(home(i), now[i], plan(i).bytes);
      if (plan(i).history >= 0) clear_bytes(history(i, begin), (capacity - begin) * plan(i).bytes);
    }
  }
};

}  // namespace
}  // namespace gradus

extern "C" {

void gradus_object_cond(const gradus::KernelArguments* arguments, std::int64_t, std::int64_t) {
  using namespace gradus;
  const auto& branch = *static_cast<const object::BranchStep*>(arguments->data);
  void** const inputs = GRADUS_POINTERS(branch.operands.count);
  void** const outputs = GRADUS_POINTERS(branch.outputs.count);
  for (std::int64_t i = 1; i < branch.operands.count; ++i) inputs[i - 1] = arguments->slots[branch.operands.entries[i]];
  for (std::int64_t k = 0; k < branch.outputs.count; ++k) outputs[k] = arguments->slots[branch.outputs.entries[k]];
  const bool chosen = *static_cast<const bool*>(arguments->slots[branch.operands.entries[0]]);
  auto* const memory = static_cast<std::byte*>(arguments->slots[branch.memory]);
  standalone::Failure failure;
  if (!run_nested(chosen ? *branch.if_true : *branch.if_false, memory, inputs, outputs, failure))
    report(arguments, failure);
}

void gradus_object_scan(const gradus::KernelArguments* arguments, std::int64_t, std::int64_t) {
  using namespace gradus;
  const auto& scan = *static_cast<const object::ScanStep*>(arguments->data);
  void* const* const slots = arguments->slots;
  auto* const memory = static_cast<std::byte*>(slots[scan.memory]);
  std::byte* const programs = memory + scan.carry_bytes;
  const std::int64_t first = scan.first_carry, inner_inputs = scan.operands.count - first, carried = scan.plans.count;
  void** const inputs = GRADUS_POINTERS(inner_inputs);
  void** const outputs = GRADUS_POINTERS(carried + scan.outputs.count);
  const CarryPlaces carries{scan.plans, slots, memory, scan.iterations, GRADUS_POINTERS(carried)};
  carries.begin();
  std::int64_t count = scan.iterations;
  if (scan.counted != 0) {
    count = *static_cast<const std::int64_t*>(slots[scan.operands.entries[0]]);
    count = count < 0 ? 0 : count > scan.iterations ? scan.iterations : count;
  }
  const auto element = [&](std::int64_t t) { return t < 0 || t >= count ? -1 : scan.reverse != 0 ? count - 1 - t : t; };
  for (std::int64_t k = 0; k < inner_inputs; ++k) inputs[k] = slots[scan.operands.entries[k + first]];
  for (std::int64_t t = 0; t < count; ++t) {
    const std::int64_t i = element(t);
    carries.enter(i);
    for (std::int64_t c = 0; c < carried; ++c) {
      inputs[carries.plan(c).number] = carries.now[c];
      outputs[carries.plan(c).output] = carries.target(c, element(t + 1));
    }
    for (std::int64_t k = scan.carries; k < inner_inputs; ++k)
      if (scan.step_in.entries[k] != 0)
        inputs[k] = advanced(slots[scan.operands.entries[k + first]], i * scan.step_in.entries[k]);
    for (std::int64_t k = 0; k < scan.outputs.count; ++k)
      outputs[carried + k] = advanced(slots[scan.outputs.entries[k]], i * scan.step_out.entries[carried + k]);
    const bool is_last = scan.last != nullptr && i + 1 == scan.iterations;
    standalone::Failure failure;
    if (!run_nested(is_last ? *scan.last : *scan.body, programs, inputs, outputs, failure))
      return report(arguments, failure);
    for (std::int64_t c = 0; c < carried; ++c) carries.now[c] = outputs[carries.plan(c).output];
  }
  carries.leave(count);
  if (scan.counted == 0) return;
  for (std::int64_t k = 0; k < scan.outputs.count; ++k) {
    const std::int64_t bytes = scan.step_out.entries[carried + k];
    clear_bytes(advanced(slots[scan.outputs.entries[k]], count * bytes), (scan.iterations - count) * bytes);
  }
}

void gradus_object_while(const gradus::KernelArguments* arguments, std::int64_t, std::int64_t) {
  using namespace gradus;
  constexpr std::int64_t answer_bytes = 128;
  const auto& loop = *static_cast<const object::WhileStep*>(arguments->data);
  void* const* const slots = arguments->slots;
  auto* const memory = static_cast<std::byte*>(slots[loop.memory]);
  std::byte* const answer = memory + loop.carry_bytes;
  std::byte* const asking = answer + answer_bytes;
  std::byte* const doing = asking + loop.condition_bytes;
  void** const inputs = GRADUS_POINTERS(loop.operands.count);
  void** const outputs = GRADUS_POINTERS(loop.plans.count);
  const CarryPlaces carries{loop.plans, slots, memory, loop.most, GRADUS_POINTERS(loop.plans.count)};
  carries.begin();
  for (std::int64_t k = 0; k < loop.operands.count; ++k) inputs[k] = slots[loop.operands.entries[k]];
  const auto take = [&] {
    for (std::int64_t c = 0; c < loop.plans.count; ++c) inputs[carries.plan(c).number] = carries.now[c];
  };
  std::int64_t count = 0;
  for (; loop.most == 0 || count < loop.most; ++count) {
    void* const asked[] = {answer};
    take();
    standalone::Failure failure;
    if (!run_nested(*loop.condition, asking, inputs, asked, failure)) return report(arguments, failure);
    if (!*reinterpret_cast<const bool*>(answer)) break;
    carries.enter(count);
    take();
    for (std::int64_t c = 0; c < loop.plans.count; ++c) outputs[c] = carries.target(c, count + 1);
    if (!run_nested(*loop.body, doing, inputs, outputs, failure)) return report(arguments, failure);
    for (std::int64_t c = 0; c < loop.plans.count; ++c) carries.now[c] = outputs[c];
  }
  carries.leave(count);
  if (loop.count >= 0) *static_cast<std::int64_t*>(slots[loop.count]) = count;
}
}
