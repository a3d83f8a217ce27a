/// A step becomes an object file: it is compiled, bound to one thread, and the jobs that it runs are written down.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>
#include "gradus/backend/cpu/kernels/kernel_names.h"
#include "gradus/backend/cpu/object/c_header.h"
#include "gradus/backend/cpu/object/link.h"
#include "gradus/backend/cpu/object/targets.h"
#include "gradus/backend/cpu/object/table_images.h"
#include "gradus/backend/cpu/run/binding.h"
#include "gradus/backend/cpu/run/control.h"
#include "gradus/backend/cpu/tiles/used_tiles.h"
#include "gradus/backend/object.h"
#include "gradus/base/divide.h"
#include "gradus/base/thread_pool.h"

namespace gradus {
namespace object {
namespace {

using cpu_backend::Returns;

constexpr std::int64_t line = 64;  // bytes, and how many may be read and written behind the memory of kernels

Address in_state(std::int64_t offset) { return {Address::state, offset}; }
Address in_workspace(std::int64_t offset) { return {Address::workspace, offset}; }

/// Places things contiguously.
struct Space {
  std::int64_t end = 0;
  std::int64_t take(std::int64_t bytes) { return std::exchange(end, round_up(end + bytes + line, line)); }
};

class ObjectMaker {
 public:
  explicit ObjectMaker(const ObjectStep& step) : step_(step), title_("export_object of " + step.name) {}

  ObjectText make() {
    const cpu_backend::Processor& processor = chosen_processor();  // never with AMX, for which a process has to ask
    const cpu_backend::TargetScope target(&processor);             // sizes of scratch are its, too
    const ThreadPool::AtMost one(1);
    program_ = cpu_backend::compile(
        step_.graph, {.disable = step_.disable, .max_bytes = step_.max_bytes, .keeps_code = true}, &processor);
    binding_ = program_->bound_within({}, 1);
    gather_code(program_->lowered());
    lay_out();
    add_inputs();
    add_outputs();
    for (const auto& [slot, offset] : binding_->temporaries) set_slot(slot, in_workspace(arena_ + offset));
    for (const Inside& inside : binding_->inside) set_slot(inside.value, slots_.at(inside.output));
    add_jobs();
    fill_slots();
    return finish(processor.isa);
  }

 private:
  const cpu_backend::Processor& chosen_processor() const { return processor_for(step_.target, step_.instruction_set); }
  const Graph& graph() const { return program_->graph(); }

  void lay_out() {
    Space state;
    for (const ObjectField& field : step_.fields) offsets_.push_back(state.take(bytes_of(field.spec)));
    if (draws()) random_state_ = state.take(sizeof(std::uint64_t));
    failure_ = state.take(3 * sizeof(std::int64_t));
    workspace_start_ = state.end;
    slot_table_ = workspace_.take(program_->slots() * static_cast<std::int64_t>(sizeof(void*)));
    arena_ = workspace_.take(binding_->arena_bytes);
  }
  bool draws() const {
    return std::ranges::any_of(step_.inputs, [](const auto& i) { return i.kind == ObjectStep::Input::Kind::key; });
  }

  void set_slot(int slot, const Address& address) { slots_.insert_or_assign(slot, address); }

  Image bytes_of_buffer(const Ref<Buffer>& buffer, std::int64_t bytes) {
    Image& known = constants_[buffer.get()];
    if (!known)
      known = std::make_shared<const DataImage>(DataImage::of_bytes(buffer->host(), static_cast<std::size_t>(bytes)));
    return known;
  }

  void add_inputs() {
    using Kind = ObjectStep::Input::Kind;
    std::map<std::size_t, Address> arguments;
    for (std::size_t k = 0; k < step_.inputs.size(); ++k) {
      const ObjectStep::Input& input = step_.inputs[k];
      const int slot = graph().inputs[k];
      const std::int64_t bytes = bytes_of(graph()[slot].spec);
      switch (input.kind) {
        case Kind::field: set_slot(slot, in_state(offsets_[input.index])); break;
        case Kind::key:
          key_ = workspace_.take(bytes);
          set_slot(slot, in_workspace(key_));
          break;
        case Kind::constant:
          constant_slots_[slot] = bytes_of_buffer(input.constant, bytes);
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
  static Address argument(std::size_t index) { return {Address::argument, static_cast<std::int64_t>(index)}; }

  static void add_copy(TableImage<CopyEntry>& table, const Address& to, const Address& from, std::int64_t bytes) {
    if (bytes > 0) table.entries.push_back({to, from, bytes});
  }
  /// With bytes that are part of the object.
  static void add_copy_of(TableImage<CopyEntry>& table, const Address& to, const Image& from, std::int64_t bytes) {
    if (bytes == 0) return;
    table.pointers.push_back({table.entries.size(), offsetof(CopyEntry, from) + offsetof(Address, bytes), from});
    table.entries.push_back({to, {Address::constant}, bytes});
  }

  /// Where the memory of output k is; where it may write over a variable, there.
  void add_outputs() {
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
               in_place ? in_state(offsets_[assigned->first]) : in_workspace(workspace_.take(source.bytes)));
    }
    for (const auto& [field, output] : step_.assigned) store(output, in_state(offsets_[field]), true);
    for (std::size_t k = 0; k < step_.results.size(); ++k)
      store(step_.results[k].output, argument(place_of_result(k)), false);
  }
  /// Copies output k to its place. A variable that takes an input as it is waits until all have been read.
  void store(int k, const Address& to, bool may_be_read) {
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
  const OutputSource& source_of(int k) const {
    const OutputSource* source = &binding_->outputs[at(k)];
    while (source->earlier >= 0) source = &binding_->outputs[at(source->earlier)];
    return *source;
  }
  Returns returns() const {
    if (step_.results.empty() || step_.results[0].spec.shape.rank() != 0) return Returns::nothing;
    const DType t = step_.results[0].spec.dtype;
    return t == f32 ? Returns::f32 : t == f64 ? Returns::f64 : Returns::nothing;
  }
  /// The place among the pointers that the function gets; the returned value lies behind them.
  std::size_t place_of_result(std::size_t k) const {
    const std::size_t first = step_.arguments.size(), returned = returns() == Returns::nothing ? 0 : 1;
    return k == 0 && returned > 0 ? first + step_.results.size() - 1 : first + k - returned;
  }

  void add_jobs() {
    for (const Job& job : binding_->jobs) {
      const std::size_t t = at(job.thunk);
      JobEntry entry{
          .extent = job.extent, .thunk = job.thunk, .scratch = arena_ + job.scratch, .may_fail = job.may_fail};
      if (const std::string failure = failure_of(job); !failure.empty()) {
        failures_.push_back(failure);
        entry.failure = std::ssize(failures_);
      }
      jobs_.pointers.push_back({jobs_.entries.size(), offsetof(JobEntry, run), nullptr, job.run});
      jobs_.pointers.push_back({jobs_.entries.size(), offsetof(JobEntry, data), image_of_data(t)});
      jobs_.entries.push_back(entry);
    }
  }
  std::string failure_of(const Job& job) const {
    const Thunk& thunk = program_->lowered().thunks[at(job.thunk)];
    if (!thunk.controls || !job.may_fail) return binding_->failures[at(job.thunk)];
    return thunk.label + ": within it a check failed, of {value} at {index}";
  }
  Image image_of_data(std::size_t t) {
    Image& known = data_[binding_->data[t].get()];
    if (!known) known = std::make_shared<const DataImage>(image_of_thunk(program_->lowered(), *binding_, t));
    return known;
  }
  /// The code of a program and of its nested programs.
  void gather_code(const Lowered& lowered) {
    objects_.insert(objects_.end(), lowered.kept->objects.begin(), lowered.kept->objects.end());
    names_.insert(lowered.kept->names.begin(), lowered.kept->names.end());
    for (const Thunk& thunk : lowered.thunks) {
      if (const std::string_view name = standalone_name(thunk.run); !name.empty()) names_.emplace(thunk.run, name);
      for (const auto& nested : thunk.nested) gather_code(nested->lowered());
    }
  }
  std::string symbol(KernelFunction run) const {
    const auto found = names_.find(run);
    return found != names_.end() ? found->second : symbol_of(run);
  }

  void fill_slots() {
    for (const auto& [slot, address] : slots_) {
      if (const auto constant = constant_slots_.find(slot); constant != constant_slots_.end())
        slot_entries_.pointers.push_back(
            {slot_entries_.entries.size(), offsetof(SlotEntry, address) + offsetof(Address, bytes), constant->second});
      slot_entries_.entries.push_back({slot, address});
    }
  }

  ObjectText finish(cpu_backend::Isa isa) {
    const std::int64_t workspace_bytes = workspace_.end + line;  // from where it begins to a line's begin
    const std::int64_t bytes = workspace_start_ + workspace_bytes;
    const cpu_backend::Processor& processor = cpu_backend::processor_of(isa);
    const std::string set(processor.name);
    cpu_backend::ObjectModule module{
        .name = step_.name,
        .pointers =
            static_cast<int>(step_.arguments.size() + step_.results.size()) - (returns() == Returns::nothing ? 0 : 1),
        .returns = returns(),
        .step = step_image(),
        .init = has_weights_file() ? nullptr : init_image(bytes),
        .named = {{"gradus_object_facts", facts_image(isa)}, {processor.tile_table, tiles_image(processor)}},
        .symbol_of = [this](KernelFunction run) { return symbol(run); }};
    std::vector<std::string> objects = objects_;
    objects.push_back(object_of_module(module, isa));
    std::vector<std::string> functions{step_.name, step_.name + "_supported"};
    if (!has_weights_file()) functions.push_back(step_.name + "_init");
    return {linked(objects, functions, isa, title_),
            to_c({.step = step_,
                  .returns = returns(),
                  .offsets = offsets_,
                  .random_state = random_state_,
                  .failure = failure_,
                  .workspace = workspace_start_,
                  .workspace_bytes = workspace_bytes,
                  .bytes = bytes,
                  .failures = failures_,
                  .instruction_set = set}),
            has_weights_file() ? weights() : std::string()};
  }
  bool has_weights_file() const { return !step_.weights_file.empty(); }
  /// The state as NAME_init would write it, up to the workspace.
  std::string weights() const {
    std::string all(at(workspace_start_), 0);
    for (std::size_t k = 0; k < step_.fields.size(); ++k)
      if (const auto size = at(bytes_of(step_.fields[k].spec)))
        std::memcpy(all.data() + offsets_[k], step_.fields[k].now->host(), size);
    if (random_state_ >= 0) std::memcpy(all.data() + random_state_, &step_.random_state, sizeof step_.random_state);
    return all;
  }
  Image step_image() {
    Step step;
    step.workspace = workspace_start_, step.slot_table = slot_table_, step.failure = failure_;
    step.random_state = random_state_, step.key = key_;
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
  Image init_image(std::int64_t bytes) {
    Init init{.bytes = bytes};
    TableImage<CopyEntry> values;
    for (std::size_t k = 0; k < step_.fields.size(); ++k) {
      const std::int64_t size = bytes_of(step_.fields[k].spec);
      add_copy_of(values, in_state(offsets_[k]), bytes_of_buffer(step_.fields[k].now, size), size);
    }
    if (random_state_ >= 0)
      add_copy_of(values, in_state(random_state_),
                  std::make_shared<const DataImage>(DataImage::of_words(&step_.random_state, 1)),
                  sizeof(std::uint64_t));
    DataImage image = DataImage::of_bytes(&init, sizeof init);
    values.set(image, init, &Init::values);
    return std::make_shared<const DataImage>(std::move(image));
  }
  /// The table of tiles with the entries that the step calls. They are known by name alone: the processor may be of
  /// another architecture, whose tiles are not part of this library.
  Image tiles_image(const cpu_backend::Processor& processor) {
    using cpu_backend::tile_entries;
    static const char places[tile_entries] = {};  // one address for each
    DataImage image;
    image.bytes.resize(tile_entries * sizeof(void*));
    for (std::size_t i = 0; i < tile_entries; ++i) {
      if (!tiles_.all().test(i)) continue;
      const auto key = reinterpret_cast<KernelFunction>(reinterpret_cast<std::uintptr_t>(&places[i]));
      names_.emplace(key, text(processor.tile_table, "_", i));
      image.pointers.push_back({.offset = i * sizeof(void*), .code = key});
    }
    return std::make_shared<const DataImage>(std::move(image));
  }
  static Image facts_image(cpu_backend::Isa isa) {
    const cpu_backend::Processor& row = cpu_backend::processor_of(isa);
    const bool has_pairs = row.has_pair_tiles && cpu_backend::has_pair_products();
    const Facts facts{static_cast<std::int64_t>(isa), has_pairs, has_pairs && cpu_backend::prefers_pair_products(),
                      row.has_near_panels && cpu_backend::prefers_near_panels(), cpu_backend::second_level_cache()};
    return std::make_shared<const DataImage>(DataImage::of_bytes(&facts, sizeof facts));
  }

  const ObjectStep& step_;
  const std::string title_;
  std::shared_ptr<const CpuProgram> program_;
  std::shared_ptr<const Binding> binding_;
  std::vector<std::int64_t> offsets_;  // of fields
  std::int64_t random_state_ = -1, failure_ = 0, workspace_start_ = 0;
  Space workspace_;
  std::int64_t slot_table_ = 0, arena_ = 0, key_ = 0;
  std::map<int, Address> slots_;
  std::map<int, Image> constant_slots_;
  std::map<const void*, Image> constants_, data_;
  std::vector<std::string> objects_;
  std::map<KernelFunction, std::string> names_;
  std::vector<std::string> failures_;
  cpu_backend::UsedTiles tiles_;  // of everything that is bound meanwhile
  TableImage<SlotEntry> slot_entries_;
  TableImage<CopyEntry> before_, staged_, after_;
  TableImage<JobEntry> jobs_;
};

}  // namespace
}  // namespace object

ObjectText make_object(const ObjectStep& step) { return object::ObjectMaker(step).make(); }

}  // namespace gradus
