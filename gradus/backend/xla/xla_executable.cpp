#include "gradus/backend/xla/xla_executable.h"
#include <algorithm>
#include "gradus/backend/backend.h"
#include "gradus/backend/xla/counts.h"
#include "gradus/backend/xla/device_buffer.h"
#include "gradus/backend/replicated_value.h"
#include "gradus/backend/xla/plugins.h"

namespace gradus::xla {
namespace {

std::int64_t bytes_of_all(std::span<const Spec> specs) {
  std::int64_t sum = 0;
  for (const Spec& spec : specs) sum += bytes_of(spec);
  return sum;
}

}  // namespace

XlaExecutable::XlaExecutable(Graph graph, const CompileOptions& options, DeviceKind kind, const DeviceGroup* replicas)
    : graph_(std::move(graph)),
      disable_(options.disable),
      highest_precision_(keeps_all_bits(options.matmul_precision)),
      kind_(kind),
      replicas_(replicas),
      donated_(donations(graph_, options.replaces)) {
  require<Unavailable>(options.max_bytes == 0, "max_bytes: the memory of a program on a device of kind ", kind,
                       " is planned by its plugin; leave max_bytes out there, or use micro_batches");
  for (std::size_t k = 0; k < options.replaces.size(); ++k)
    keeps_old_values_ = keeps_old_values_ && (options.replaces[k] == -1 || donated_[k] >= 0);
  const int symbols = graph_.symbols();
  if (symbols == 0 || static_cast<int>(options.symbols.size()) == symbols) sizes_.push_back(make(options.symbols));
  // Now rather than at the first run, if it is known where that will be.
  if (sizes_.empty()) return;
  if (replicas_) bind(sizes_.front()->symbols, *replicas_);
  else if (options.device && options.device->kind == kind_)
    bind(sizes_.front()->symbols, device_of_plugin(*options.device).alone);
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
  sized->module = std::make_shared<const StableHloModule>(
      to_stablehlo(prepared_for_stablehlo(graph_, symbols, disable_),
                   {.donated = donated_,
                    .highest_precision = highest_precision_,
                    .extrema_keep_nan = kind_ != DeviceKind::plugin,
                    .unrolled = kind_ == DeviceKind::gpu ? 16 : 1,
                    .replicas = replicas_ ? static_cast<int>(replicas_->size()) : 0},
                   text(kind_)));
  return sized;
}

XlaExecutable::Bound XlaExecutable::bind(std::span<const std::int64_t> symbols, const DeviceGroup& on) const {
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
  for (const auto& [group, code] : sized->codes)
    if (group == &on) return {code, sized->inputs, sized->outputs, sized};
  auto code = compiled_code(on, sized->module);
  sized->codes.emplace_back(&on, code);
  return {std::move(code), sized->inputs, sized->outputs, sized};
}

namespace {

/// Programs of several devices wait for each other on them: they begin in one order everywhere.
std::mutex& launches() {
  static auto* only = new std::mutex;
  return *only;
}

}  // namespace

/// One run: on one device, or on all of a group.
class XlaExecutable::Launch {
 public:
  Launch(const XlaExecutable& program, const DeviceGroup& on, std::span<const std::int64_t> symbols)
      : program_(program), on_(on), bound_(program.bind(symbols, on)), module_(*bound_.code->module) {}

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs) {
    bring(inputs, outputs);
    const std::vector<std::int64_t> kept = kept_without(outputs);
    std::unique_lock<std::mutex> in_turn;
    if (on_.size() > 1) in_turn = std::unique_lock(launches());
    if (module_.has_fault_state) take_states();
    start(kept, outputs);
    ++counts().runs;
    hand_out(outputs);
  }

 private:
  bool is_replicated() const { return program_.replicas_ != nullptr; }
  PluginDevice& device(std::size_t d) const { return *on_.devices[d]; }
  std::size_t donated(std::size_t output) const { return static_cast<std::size_t>(program_.donated_[output]); }

  /// Brings input k to each device. An output is made in the place of an input that lies on it already.
  void bring(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs) {
    inputs_ = inputs.size();
    own_.resize(inputs_ * on_.size());
    for (std::size_t k = 0; k < inputs_; ++k) {
      const ReplicatedValue* const all = ReplicatedValue::of(*inputs[k]);
      internal_check(!is_replicated() || (all && all->is_on(on_.names)), "an input that is not on ", on_.text());
      for (std::size_t d = 0; d < on_.size(); ++d)
        own_[d * inputs_ + k] = is_replicated() ? all->copies()[d] : brought_to(device(d), inputs[k], bound_.inputs[k]);
    }
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (outputs[k] && !is_replicated() && own_[donated(k)].get() != outputs[k].get()) outputs[k] = nullptr;
    for (std::size_t d = 0; d < on_.size(); ++d) {
      std::int64_t number = 0;
      for (std::size_t k = 0; k < inputs_; ++k) {
        DeviceBuffer& input = DeviceBuffer::in(own_[d * inputs_ + k]);
        held_.push_back(input.holding(bound_.inputs[k]));
        number = std::max(number, input.number());
      }
      numbers_.push_back(number);
    }
  }

  /// The inputs whose memory no output takes. New results need room.
  std::vector<std::int64_t> kept_without(std::span<const Ref<Buffer>> outputs) {
    std::vector<std::int64_t> kept;
    new_bytes_ = bound_.code->temporary_bytes;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k] && program_.donated_[k] >= 0) kept.push_back(program_.donated_[k]);
      if (!outputs[k]) new_bytes_ += bytes_of(bound_.outputs[k]);
    }
    for (PluginDevice* const each : on_.devices) each->account.require_room(new_bytes_, program_.what());
    return kept;
  }

  void take_states() {
    std::vector<Faults*> faults;
    for (PluginDevice* const each : on_.devices) faults.push_back(&each->faults);
    states_.emplace(faults, bound_.code->module);
    for (std::size_t d = 0; d < on_.size(); ++d) numbers_[d] = (*states_)[d].number();
  }

  void start(std::span<const std::int64_t> kept, std::span<Ref<Buffer>> outputs) {
    std::vector<pjrt::Buffer*> arguments;
    for (std::size_t d = 0; d < on_.size(); ++d) {
      for (std::size_t k = 0; k < inputs_; ++k) arguments.push_back(held_[d * inputs_ + k]->buffer().get());
      if (states_) arguments.push_back((*states_)[d].before());
    }
    results_ = outputs.size() + (states_ ? 1 : 0);
    try {
      made_ = bound_.code->loaded->run(arguments, kept, results_, on_.size());
    } catch (const pjrt::Refused& refused) {
      const std::exception_ptr problem = std::current_exception();
      lose(outputs, refused.what());
      states_.reset();  // others may run
      throw_for(problem, on_.first(), new_bytes_, program_.what());
    }
  }

  /// A value that one device has lost is lost: this run has taken its memory, or an earlier one has failed unnoticed
  /// and not made it.
  void lose(std::span<Ref<Buffer>> outputs, const std::string& why) {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k]) continue;
      bool is_lost = false;
      for (std::size_t d = 0; d < on_.size(); ++d)
        is_lost = is_lost || before(d, k).buffer().is_deleted() || before(d, k).buffer().has_failed();
      if (!is_lost) continue;
      const std::exception_ptr told = lost_value(on_.text(), before(0, k).spec(), why);
      for (std::size_t d = 0; d < on_.size(); ++d) DeviceBuffer::in(own_[d * inputs_ + donated(k)]).lose(told);
    }
  }
  /// The value that output k replaces.
  const Holding& before(std::size_t d, std::size_t k) const { return *held_[d * inputs_ + donated(k)]; }

  void hand_out(std::span<Ref<Buffer>> outputs) {
    for (std::size_t d = 0; d < on_.size() && results_ > 0; ++d) {
      device(d).note_run(*made_[(d + 1) * results_ - 1]);
      if (states_) (*states_)[d].after(std::move(made_[(d + 1) * results_ - 1]));
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      std::vector<Ref<Buffer>> copies;
      for (std::size_t d = 0; d < on_.size(); ++d) {
        if (outputs[k]) before(d, k).leave();
        auto holding = std::make_shared<Holding>(device(d), std::move(made_[d * results_ + k]), bound_.outputs[k],
                                                 "result of a program");
        const std::int64_t worth = program_.donated_[k] >= 0 ? 0 : numbers_[d];
        if (outputs[k]) DeviceBuffer::in(own_[d * inputs_ + donated(k)]).replace(std::move(holding), worth);
        else copies.push_back(DeviceBuffer::of(std::move(holding), worth));
      }
      if (outputs[k]) continue;
      if (is_replicated()) outputs[k] = ReplicatedValue::buffer_of(std::move(copies), on_.names);
      else outputs[k] = std::move(copies.front());
    }
  }

  const XlaExecutable& program_;
  const DeviceGroup& on_;
  const Bound bound_;
  const StableHloModule& module_;
  std::size_t inputs_ = 0, results_ = 0;              // of a device
  std::vector<Ref<Buffer>> own_;                      // inputs, device by device
  std::vector<std::shared_ptr<const Holding>> held_;  // of these, to the end of the call
  std::vector<std::int64_t> numbers_;                 // of the newest run that they are of, or of this one
  std::int64_t new_bytes_ = 0;
  std::optional<Faults::Runs> states_;
  std::vector<std::shared_ptr<pjrt::BufferOwner>> made_;
};

void XlaExecutable::run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
                        const RunContext& context) const {
  const DeviceGroup& on = replicas_ ? *replicas_ : device_of_plugin(context.device).alone;
  Launch(*this, on, context.symbols).run(inputs, outputs);
}

void XlaExecutable::wait(std::span<const Ref<Buffer>> outputs) const {
  if (replicas_) return replicas_->first().faults.observe();
  if (!outputs.empty()) return DeviceBuffer::in(outputs.front()).on().faults.observe();
  for (PluginDevice* const device : devices_of_plugins(kind_)) device->faults.observe();
}

ExecutableReport XlaExecutable::report(std::span<const std::int64_t> symbols) const {
  Kernel all{.name = "program of the plugin"};
  for (const Value& v : graph_.values)
    if (v.op) all.ops.emplace_back(v.op->name);
  all.bytes_read = static_cast<std::size_t>(bytes_of_all(specs_of(graph_.inputs, symbols)));
  all.bytes_written = static_cast<std::size_t>(bytes_of_all(specs_of(graph_.outputs, symbols)));
  const std::int64_t bytes = temporary_bytes(symbols);
  all.bytes_alive = static_cast<std::size_t>(bytes);
  all.device = {kind_, 0};
  ExecutableReport report{.kernels = {std::move(all)}, .arena_bytes = bytes, .temporary_bytes = bytes};
  std::string sizes;  // "for the sizes 64, 40"
  for (const std::vector<std::int64_t>& each : compiled_sizes()) {
    sizes += sizes.empty() ? "code for the sizes " : ", ";
    for (std::size_t i = 0; i < each.size(); ++i) sizes += text(i > 0 ? "x" : "", each[i]);
  }
  if (!sizes.empty()) report.notes.push_back(std::move(sizes));
  return report;
}

std::int64_t XlaExecutable::temporary_bytes(std::span<const std::int64_t> symbols) const {
  const std::lock_guard lock(guard_);
  for (const auto& sized : sizes_)
    if (std::ranges::equal(sized->symbols, symbols) && !sized->codes.empty())
      return sized->codes.front().second->temporary_bytes;
  return 0;
}

/// A plugin's code takes more than it reports: on the processor a mapping or two for each kernel, and a process may
/// have 65,530 of these, on a GPU its memory. Code that is still to be compiled counts, too.
std::size_t XlaExecutable::footprint() const {
  constexpr std::size_t least_code = std::size_t{1} << 20, code_of_text = 32;
  const std::lock_guard lock(guard_);
  std::size_t bytes = sizeof *this + graph_.values.size() * (sizeof(Value) + 16);
  for (const auto& sized : sizes_) {
    const std::size_t text = sized->module->text.size(), least = least_code + code_of_text * text;
    bytes += text + (sized->codes.empty() ? least : 0);
    for (const auto& [group, code] : sized->codes)
      bytes += std::max(least, static_cast<std::size_t>(code->loaded->code_bytes()));
  }
  return bytes + (sizes_.empty() ? least_code : 0);
}

std::vector<std::vector<std::int64_t>> XlaExecutable::compiled_sizes() const {
  std::vector<std::vector<std::int64_t>> all;
  if (graph_.symbols() == 0) return all;
  const std::lock_guard lock(guard_);
  for (const auto& sized : sizes_) all.push_back(sized->symbols);
  return all;
}

}  // namespace gradus::xla
