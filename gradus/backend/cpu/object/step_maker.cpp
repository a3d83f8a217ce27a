#include "gradus/backend/cpu/object/step_maker.h"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include "gradus/backend/cpu/kernels/kernel_names.h"
#include "gradus/backend/cpu/run/control.h"

namespace gradus::object {
namespace {

using cpu_backend::Returns;

Address in_state(std::int64_t offset) { return {Address::state, offset}; }
Address in_workspace(std::int64_t offset) { return {Address::workspace, offset}; }
Address argument(std::size_t index) { return {Address::argument, static_cast<std::int64_t>(index)}; }

}  // namespace

cpu_backend::Returns returns_of(const ObjectStep& step) {
  if (step.results.empty() || step.results[0].spec.shape.rank() != 0) return Returns::nothing;
  const DType t = step.results[0].spec.dtype;
  return t == f32 ? Returns::f32 : t == f64 ? Returns::f64 : Returns::nothing;
}

void add_copy(TableImage<CopyEntry>& table, const Address& to, const Address& from, std::int64_t bytes) {
  if (bytes > 0) table.entries.push_back({to, from, bytes});
}
void add_copy_of(TableImage<CopyEntry>& table, const Address& to, const Image& from, std::int64_t bytes) {
  if (bytes == 0) return;
  table.pointers.push_back({table.entries.size(), offsetof(CopyEntry, from) + offsetof(Address, bytes), from});
  table.entries.push_back({to, {Address::constant}, bytes});
}

Image ObjectParts::bytes_of(const Ref<Buffer>& buffer, std::int64_t bytes) {
  Image& known = constants[buffer.get()];
  if (!known)
    known = std::make_shared<const DataImage>(DataImage::of_bytes(buffer->host(), static_cast<std::size_t>(bytes)));
  return known;
}

Image StepMaker::make() {
  program_ =
      cpu_backend::compile(step_.graph, {.disable = step_.disable, .max_bytes = step_.max_bytes, .keeps_code = true},
                           &cpu_backend::processor());
  binding_ = program_->bound_within({}, 1);
  gather_code(program_->lowered());
  parts_.tiles |= binding_->tiles;
  slot_table_ = workspace_.take(program_->slots() * static_cast<std::int64_t>(sizeof(void*)));
  arena_ = workspace_.take(binding_->arena_bytes);
  add_inputs();
  add_outputs();
  for (const auto& [slot, offset] : binding_->temporaries) set_slot(slot, in_workspace(arena_ + offset));
  for (const Inside& inside : binding_->inside) set_slot(inside.value, slots_.at(inside.output));
  add_jobs();
  fill_slots();
  return step_image();
}

void StepMaker::add_inputs() {
  using Kind = ObjectStep::Input::Kind;
  std::map<std::size_t, Address> arguments;
  for (std::size_t k = 0; k < step_.inputs.size(); ++k) {
    const ObjectStep::Input& input = step_.inputs[k];
    const int slot = graph().inputs[k];
    const std::int64_t bytes = bytes_of(graph()[slot].spec);
    switch (input.kind) {
      case Kind::field: set_slot(slot, in_state(state_.fields[input.index])); break;
      case Kind::key:
        key_ = workspace_.take(bytes);
        set_slot(slot, in_workspace(key_));
        break;
      case Kind::constant:
        constant_slots_[slot] = parts_.bytes_of(input.constant, bytes);
        set_slot(slot, {Address::constant});
        break;
      case Kind::argument:
        if (!arguments.contains(input.index)) {
          arguments[input.index] = in_workspace(workspace_.take(bytes));
          add_copy(before_, arguments[input.index], argument(input.index), bytes);
        }
        set_slot(slot, arguments[input.index]);
        break;
    }
  }
}

/// Where the memory of output k is; where it may write over a variable, there.
void StepMaker::add_outputs() {
  const std::vector<int>& may_overwrite = program_->may_overwrite();
  for (std::size_t k = 0; k < binding_->outputs.size(); ++k) {
    const OutputSource& source = binding_->outputs[k];
    if (source.slot < 0) continue;
    const int over = may_overwrite[k];
    const auto assigned =
        std::ranges::find(step_.assigned, static_cast<int>(k), [](const auto& a) { return a.second; });
    const bool in_place = over >= 0 && assigned != step_.assigned.end() &&
                          step_.inputs[at(over)].kind == ObjectStep::Input::Kind::field &&
                          step_.inputs[at(over)].index == assigned->first;
    set_slot(source.slot,
             in_place ? in_state(state_.fields[assigned->first]) : in_workspace(workspace_.take(source.bytes)));
  }
  for (const auto& [field, output] : step_.assigned) store(output, in_state(state_.fields[field]), true);
  for (std::size_t k = 0; k < step_.results.size(); ++k)
    store(step_.results[k].output, argument(place_of_result(k)), false);
}

/// Copies output k to its place. A variable that takes an input as it is waits until all have been read.
void StepMaker::store(int k, const Address& to, bool may_be_read) {
  const OutputSource& source = source_of(k);
  const std::int64_t bytes = bytes_of(graph()[graph().outputs[at(k)]].spec);
  const int slot = source.slot >= 0 ? source.slot : graph().inputs[at(source.input)];
  const Address from = slots_.at(slot);
  if (from.kind == to.kind && from.offset == to.offset) return;
  if (const auto constant = constant_slots_.find(slot); constant != constant_slots_.end())
    return add_copy_of(after_, to, constant->second, bytes);
  if (from.kind == Address::state && may_be_read) {
    const Address staged = in_workspace(workspace_.take(bytes));
    add_copy(staged_, staged, from, bytes);
    return add_copy(after_, to, staged, bytes);
  }
  // Results first: they may be a variable's old value.
  if (may_be_read) add_copy(after_, to, from, bytes);
  else add_copy(staged_, to, from, bytes);
}

const OutputSource& StepMaker::source_of(int k) const {
  const OutputSource* source = &binding_->outputs[at(k)];
  while (source->earlier >= 0) source = &binding_->outputs[at(source->earlier)];
  return *source;
}

/// The place among the pointers that the function gets; the returned value lies behind them.
std::size_t StepMaker::place_of_result(std::size_t k) const {
  const std::size_t first = step_.arguments.size(), returned = returns_of(step_) == Returns::nothing ? 0 : 1;
  return k == 0 && returned > 0 ? first + step_.results.size() - 1 : first + k - returned;
}

void StepMaker::add_jobs() {
  for (const Job& job : binding_->jobs) {
    const std::size_t t = at(job.thunk);
    JobEntry entry{.extent = job.extent, .thunk = job.thunk, .scratch = arena_ + job.scratch, .may_fail = job.may_fail};
    if (const std::string failure = failure_of(job); !failure.empty()) {
      parts_.failures.push_back(step_.title.empty() ? failure : text(step_.title, ": ", failure));
      entry.failure = std::ssize(parts_.failures);
    }
    jobs_.pointers.push_back({jobs_.entries.size(), offsetof(JobEntry, run), nullptr, job.run});
    jobs_.pointers.push_back({jobs_.entries.size(), offsetof(JobEntry, data), image_of_data(t)});
    jobs_.entries.push_back(entry);
  }
}

std::string StepMaker::failure_of(const Job& job) const {
  const Thunk& thunk = program_->lowered().thunks[at(job.thunk)];
  if (!thunk.controls || !job.may_fail) return binding_->failures[at(job.thunk)];
  return thunk.label + ": within it a check failed, of {value} at {index}";
}

Image StepMaker::image_of_data(std::size_t t) {
  Image& known = data_[binding_->data[t].get()];
  if (!known) known = std::make_shared<const DataImage>(image_of_thunk(program_->lowered(), *binding_, t));
  return known;
}

/// The code of a program and of its nested programs.
void StepMaker::gather_code(const Lowered& lowered) {
  parts_.objects.insert(parts_.objects.end(), lowered.kept->objects.begin(), lowered.kept->objects.end());
  parts_.names.insert(lowered.kept->names.begin(), lowered.kept->names.end());
  for (const Thunk& thunk : lowered.thunks) {
    if (const std::string_view name = standalone_name(thunk.run); !name.empty()) parts_.names.emplace(thunk.run, name);
    for (const auto& nested : thunk.nested) gather_code(nested->lowered());
  }
}

void StepMaker::fill_slots() {
  for (const auto& [slot, address] : slots_) {
    if (const auto constant = constant_slots_.find(slot); constant != constant_slots_.end())
      slot_entries_.pointers.push_back(
          {slot_entries_.entries.size(), offsetof(SlotEntry, address) + offsetof(Address, bytes), constant->second});
    slot_entries_.entries.push_back({slot, address});
  }
}

Image StepMaker::step_image() const {
  Step step;
  step.workspace = state_.workspace, step.slot_table = slot_table_, step.failure = state_.failure;
  step.random_state = step_.draws() ? state_.random_state : -1, step.key = key_;
  DataImage image = DataImage::of_bytes(&step, sizeof step);
  slot_entries_.set(image, step, &Step::slots);
  before_.set(image, step, &Step::before);
  staged_.set(image, step, &Step::staged);
  after_.set(image, step, &Step::after);
  jobs_.set(image, step, &Step::jobs);
  const auto& dimensions = binding_->dimensions;
  if (!dimensions.empty())
    image.pointers.push_back(
        {.offset = offsetof(Step, dimensions),
         .to = std::make_shared<const DataImage>(DataImage::of_words(dimensions.data(), std::ssize(dimensions)))});
  return std::make_shared<const DataImage>(std::move(image));
}

}  // namespace gradus::object

namespace gradus {

bool ObjectStep::draws() const {
  return std::ranges::any_of(inputs, [](const Input& input) { return input.kind == Input::Kind::key; });
}

}  // namespace gradus
