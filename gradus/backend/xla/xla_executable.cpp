#include "gradus/backend/xla/xla_executable.h"
#include <algorithm>
#include "gradus/backend/backend.h"
#include "gradus/backend/xla/counts.h"
#include "gradus/backend/xla/device_buffer.h"
#include "gradus/backend/xla/plugins.h"

namespace gradus::xla {
namespace {

std::int64_t bytes_of_all(std::span<const Spec> specs) {
  std::int64_t sum = 0;
  for (const Spec& spec : specs) sum += bytes_of(spec);
  return sum;
}

}  // namespace

XlaExecutable::XlaExecutable(Graph graph, const CompileOptions& options, DeviceKind kind)
    : graph_(std::move(graph)),
      disable_(options.disable),
      highest_precision_(keeps_all_bits(options.matmul_precision)),
      kind_(kind),
      donated_(donations(graph_, options.replaces)) {
  require<Unavailable>(options.max_bytes == 0, "max_bytes: the memory of a program on a device of kind ", kind,
                       " is planned by its plugin; leave max_bytes out there, or use micro_batches");
  for (std::size_t k = 0; k < options.replaces.size(); ++k)
    keeps_old_values_ = keeps_old_values_ && (options.replaces[k] == -1 || donated_[k] >= 0);
  const int symbols = graph_.symbols();
  if (symbols == 0 || static_cast<int>(options.symbols.size()) == symbols) sizes_.push_back(make(options.symbols));
  // Now rather than at the first run, if it is known where that will be.
  if (!sizes_.empty() && default_device().kind == kind_)
    bind(sizes_.front()->symbols, device_of_plugin(default_device()));
}

std::string XlaExecutable::what() const { return text("a program of ", graph_.size(), " values"); }

std::vector<Spec> XlaExecutable::specs_of(const std::vector<int>& values, std::span<const std::int64_t> symbols) const {
  std::vector<Spec> specs;
  for (const int i : values) specs.push_back({graph_[i].spec.dtype, graph_[i].spec.shape.evaluated(symbols)});
  return specs;
}

std::shared_ptr<XlaExecutable::Sized> XlaExecutable::make(std::span<const std::int64_t> symbols) const {
  auto sized = std::make_shared<Sized>();
  sized->symbols.assign(symbols.begin(), symbols.end());
  sized->inputs = specs_of(graph_.inputs, symbols);
  sized->outputs = specs_of(graph_.outputs, symbols);
  sized->module =
      std::make_shared<const StableHloModule>(to_stablehlo(prepared_for_stablehlo(graph_, symbols, disable_),
                                                           {.donated = donated_,
                                                            .highest_precision = highest_precision_,
                                                            .extrema_keep_nan = kind_ != DeviceKind::plugin,
                                                            .unrolled = kind_ == DeviceKind::gpu ? 16 : 1},
                                                           text(kind_)));
  return sized;
}

XlaExecutable::Bound XlaExecutable::bind(std::span<const std::int64_t> symbols, PluginDevice& on) const {
  std::shared_ptr<Sized> sized, dropped;
  const std::lock_guard lock(guard_);
  const auto known =
      std::ranges::find_if(sizes_, [&](const auto& each) { return std::ranges::equal(each->symbols, symbols); });
  if (known != sizes_.end()) {
    sized = *known;
    if (known + 1 != sizes_.end()) std::rotate(known, known + 1, sizes_.end());
  } else {
    sized = make(symbols);
    sizes_.push_back(sized);
    if (sizes_.size() > most_sizes) {
      dropped = std::move(sizes_.front());
      sizes_.erase(sizes_.begin());
    }
  }
  for (const auto& [device, code] : sized->codes)
    if (device == &on) return {code, sized->inputs, sized->outputs, sized};
  auto code = compiled_code(on, sized->module);
  seconds_ += code->seconds;
  sized->codes.emplace_back(&on, code);
  return {std::move(code), sized->inputs, sized->outputs, sized};
}

void XlaExecutable::run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
                        std::span<const std::int64_t> symbols, const Device& device) const {
  PluginDevice& on = device_of_plugin(device);
  const Bound bound = bind(symbols, on);
  const StableHloModule& module = *bound.code->module;

  std::vector<std::shared_ptr<const Holding>> held;  // to the end of the call
  std::vector<pjrt::Buffer*> arguments;
  std::int64_t number = 0;  // of the newest run that they are of
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    DeviceBuffer& input = DeviceBuffer::in(inputs[k]);
    internal_check(&input.on() == &on, "a program on ", device, " reads what is on ", input.on().device);
    held.push_back(input.holding(bound.inputs[k]));
    arguments.push_back(held.back()->buffer().get());
    number = std::max(number, input.number());
  }
  std::vector<std::int64_t> kept;
  std::int64_t new_bytes = bound.code->temporary_bytes;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k] && donated_[k] >= 0) kept.push_back(donated_[k]);
    if (!outputs[k]) new_bytes += bytes_of(bound.outputs[k]);
  }
  on.account.require_room(new_bytes, what());

  std::optional<Faults::Run> state;
  if (module.has_fault_state) {
    state.emplace(on.faults, bound.code->module);
    arguments.push_back(state->before());
    number = state->number();
  }
  std::vector<std::shared_ptr<pjrt::BufferOwner>> made;
  try {
    made = bound.code->loaded->run(arguments, kept, outputs.size() + (state ? 1 : 0));
  } catch (const pjrt::Refused&) {
    const std::exception_ptr problem = std::current_exception();
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k]) continue;
      const Holding& before = *held[static_cast<std::size_t>(donated_[k])];
      if (before.buffer().is_deleted())
        DeviceBuffer::in(outputs[k])
            .lose(std::make_exception_ptr(Unavailable(
                text("device ", device, " has lost ", before.spec(),
                     ": the program that was to compute its next value there has failed; load a checkpoint"))));
    }
    state.reset();  // others may run
    throw_for(problem, on, new_bytes, what());
  }
  ++counts().runs;
  if (!made.empty()) on.note_run(*made.back());
  if (state) {
    state->after(std::move(made.back()));
    made.pop_back();
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k]) held[static_cast<std::size_t>(donated_[k])]->leave();
    auto holding = std::make_shared<Holding>(on, std::move(made[k]), bound.outputs[k], "result of a program");
    const std::int64_t worth = donated_[k] >= 0 ? 0 : number;
    if (outputs[k]) DeviceBuffer::in(outputs[k]).replace(std::move(holding), worth);
    else outputs[k] = DeviceBuffer::of(std::move(holding), worth);
  }
}

void XlaExecutable::wait(std::span<const Ref<Buffer>> outputs) const {
  if (!outputs.empty()) return DeviceBuffer::in(outputs.front()).on().faults.observe();
  for (PluginDevice* const device : devices_of_plugins(kind_)) device->faults.observe();
}

std::vector<Kernel> XlaExecutable::kernels(std::span<const std::int64_t> symbols) const {
  Kernel all{.name = "program of the plugin"};
  for (const Value& v : graph_.values)
    if (v.op) all.ops.emplace_back(v.op->name);
  all.bytes_read = static_cast<std::size_t>(bytes_of_all(specs_of(graph_.inputs, symbols)));
  all.bytes_written = static_cast<std::size_t>(bytes_of_all(specs_of(graph_.outputs, symbols)));
  all.bytes_alive = static_cast<std::size_t>(arena_bytes(symbols));
  all.device = {kind_, 0};
  return {all};
}

std::int64_t XlaExecutable::arena_bytes(std::span<const std::int64_t> symbols) const {
  const std::lock_guard lock(guard_);
  for (const auto& sized : sizes_)
    if (std::ranges::equal(sized->symbols, symbols) && !sized->codes.empty())
      return sized->codes.front().second->temporary_bytes;
  return 0;
}

double XlaExecutable::compile_seconds() const {
  const std::lock_guard lock(guard_);
  return seconds_;
}

std::size_t XlaExecutable::footprint() const {
  const std::lock_guard lock(guard_);
  std::size_t bytes = sizeof *this + graph_.values.size() * (sizeof(Value) + 16);
  for (const auto& sized : sizes_) bytes += sized->module->text.size();
  return bytes;
}

std::vector<std::vector<std::int64_t>> XlaExecutable::compiled_sizes() const {
  std::vector<std::vector<std::int64_t>> all;
  if (graph_.symbols() == 0) return all;
  const std::lock_guard lock(guard_);
  for (const auto& sized : sizes_) all.push_back(sized->symbols);
  return all;
}

}  // namespace gradus::xla
