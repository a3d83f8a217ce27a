/// Where carries go.
#include "gradus/backend/cpu/run/carries.h"
#include <cstring>
#include "gradus/base/divide.h"

namespace gradus::construct {
namespace {

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, at(bytes));
}

}  // namespace

void clear_bytes(void* to, std::int64_t bytes) {
  if (bytes > 0) std::memset(to, 0, at(bytes));
}

Carries::Carries(const LoopCode& code, int carries, int first_result, int first_history, Symbols symbols)
    : first_result_(first_result), first_history_(first_history) {
  const Graph& graph = code.body->graph();
  for (std::size_t k = 0; k < code.outputs.size() && code.outputs[k] < carries; ++k) {
    CarryPlan plan{.number = code.outputs[k], .output = k};
    plan.bytes = bytes_for(graph[graph.outputs[k]].spec, symbols);
    plan.in_place = code.may_overwrite(k, plan.number);
    const bool has_result = result_slot(code.place, plan) >= 0, has_history = history_slot(code.place, plan) >= 0;
    if (!has_result) plan.offsets[0] = take(plan.bytes);
    if (!has_history && !plan.in_place) plan.offsets[1] = take(plan.bytes);
    plans_.push_back(plan);
  }
}

std::vector<object::CarryStep> steps_of(const Carries& carries, const Place& place, int first_operand) {
  std::vector<object::CarryStep> steps;
  for (const CarryPlan& plan : carries.plans())
    steps.push_back({.number = plan.number,
                     .output = static_cast<std::int64_t>(plan.output),
                     .bytes = plan.bytes,
                     .in_place = plan.in_place,
                     .offsets = {plan.offsets[0], plan.offsets[1]},
                     .operand = place.operands[at(first_operand + plan.number)],
                     .result = carries.result_slot(place, plan),
                     .history = carries.history_slot(place, plan)});
  return steps;
}

std::int64_t Carries::take(std::int64_t bytes) { return std::exchange(bytes_, bytes_ + round_up(bytes, 64)); }

CarryPlaces::CarryPlaces(const Carries& carries, const LoopCode& code, int first_operand,
                         const KernelArguments& arguments, std::byte* memory, std::int64_t capacity)
    : carries_(carries), member_(*arguments.member), capacity_(capacity) {
  void* const* slots = arguments.slots;
  for (const CarryPlan& plan : carries.plans()) {
    const int result = carries.result_slot(code.place, plan), history = carries.history_slot(code.place, plan);
    now_.push_back(slots[code.place.operands[at(first_operand + plan.number)]]);
    home_.push_back(result >= 0 ? slots[result] : memory + plan.offsets[0]);
    spare_.push_back(plan.offsets[1] >= 0 ? memory + plan.offsets[1] : nullptr);
    history_.push_back(history >= 0 ? slots[history] : nullptr);
  }
}

void CarryPlaces::enter(std::int64_t element) {
  for (std::size_t i = 0; i < now_.size(); ++i) {
    if (!history_[i]) continue;
    void* place = advanced(history_[i], element * bytes(i));
    if (copies()) copy_bytes(place, now_[i], bytes(i));
    now_[i] = place;
  }
}

void* CarryPlaces::target(std::size_t i, std::int64_t next) const {
  if (history_[i]) return next >= 0 && next < capacity_ ? advanced(history_[i], next * bytes(i)) : home_[i];
  if (plan(i).in_place) return home_[i];
  return now_[i] == home_[i] ? spare_[i] : home_[i];
}

void CarryPlaces::leave(std::int64_t begin) {
  member_.meet();
  for (std::size_t i = 0; copies() && i < now_.size(); ++i) {
    copy_bytes(home_[i], now_[i], bytes(i));
    if (history_[i]) clear_bytes(advanced(history_[i], begin * bytes(i)), (capacity_ - begin) * bytes(i));
  }
}

void fail_in_iteration(const KernelArguments& arguments, const NestedProgram& program, std::byte* memory,
                       std::int64_t iteration, std::string_view loop) {
  if (arguments.member->worker != 0) return;
  try {
    std::rethrow_exception(program.failure(memory));
  } catch (const OutOfRange& error) {
    const OutOfRange located(text(error.what(), ", in iteration ", iteration, " of ", loop));
    report(arguments, std::make_exception_ptr(located));
  }
}

}  // namespace gradus::construct
