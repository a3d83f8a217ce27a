/// Runs of programs that are not worth compiling.
#include <algorithm>
#include "gradus/backend/backend.h"
#include "gradus/backend/replicated_value.h"
#include "gradus/backend/xla/counts.h"
#include "gradus/backend/xla/device_buffer.h"
#include "gradus/backend/xla/plugins.h"
#include "gradus/backend/xla/xla_executable.h"

namespace gradus::xla {
namespace {

/// Bytes that may be fetched from a device for an interpreted run.
constexpr std::int64_t most_fetched_bytes = 256 << 10;
/// Inputs of initializers are keys and sizes.
constexpr std::int64_t most_elements_of_key = 16;

/// True if the host has its bytes.
bool is_at_hand(const Ref<Buffer>& value) {
  if (const ReplicatedValue* const all = ReplicatedValue::of(*value)) return is_at_hand(all->copies().front());
  return !DeviceBuffer::is(value) || DeviceBuffer::in(value).mirror();
}

class FirstRun final : public ForwardingExecutable {
 public:
  FirstRun(std::shared_ptr<const Executable> on_processor, Graph graph, CompileOptions options, DeviceKind kind)
      : ForwardingExecutable(std::move(on_processor)),
        given_(std::move(graph)),
        options_(std::move(options)),
        kind_(kind),
        donated_(donations(given_, options_.replaces)),
        most_fetched_(options_.tier == Tier::interpreted ? most_fetched_bytes : 0) {
    options_.tier = Tier::compiled;
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    const std::span<const std::int64_t> symbols = context.symbols;
    PluginDevice& on = device_of_plugin(context.device);
    std::int64_t fetched = 0;
    for (const Ref<Buffer>& input : inputs)
      if (!is_at_hand(input)) fetched += input->bytes();
    if (fetched > most_fetched_) return compiled().run(inputs, outputs, context);
    on.faults.observe();  // after a failure there nothing is to change
    std::vector<Ref<Buffer>> from, made(outputs.size());
    for (const Ref<Buffer>& input : inputs) from.push_back(Buffer::on_host(input));
    inner_->run(from, made, {.symbols = symbols});
    ++counts().on_host;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Spec& spec = graph()[graph().outputs[k]].spec;
      made[k] = DeviceBuffer::from_host(on, made[k], {spec.dtype, spec.shape.evaluated(symbols)});
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {  // when nothing can fail any more
      if (outputs[k] && DeviceBuffer::is(outputs[k])) DeviceBuffer::in(outputs[k]).take(DeviceBuffer::in(made[k]));
      else outputs[k] = std::move(made[k]);
    }
  }
  void wait(std::span<const Ref<Buffer>> outputs) const override {
    if (!outputs.empty()) DeviceBuffer::in(outputs.front()).on().faults.observe();
  }
  bool keeps_old_values() const override { return false; }
  const Graph& graph() const override { return given_; }
  const std::vector<int>& may_overwrite() const override { return donated_; }

 private:
  const Executable& compiled() const {
    const std::lock_guard lock(guard_);
    if (!compiled_) compiled_ = std::make_shared<XlaExecutable>(given_, options_, kind_);
    return *compiled_;
  }
  const Graph given_;
  CompileOptions options_;
  const DeviceKind kind_;
  const std::vector<int> donated_;
  const std::int64_t most_fetched_;
  mutable std::mutex guard_;
  mutable std::shared_ptr<const Executable> compiled_;
};

}  // namespace

bool makes_numbers_of_nothing(const Graph& graph) {
  return std::ranges::all_of(graph.inputs, [&](int i) {
    const Shape& shape = graph[i].spec.shape;
    return !shape.is_symbolic() && shape.size() <= most_elements_of_key;
  });
}

std::shared_ptr<const Executable> first_run(Graph graph, const CompileOptions& options, DeviceKind kind) {
  Graph lasting = graph;
  lasting.dying.clear();  // its buffers may be shown to users
  auto on_processor = backend_of(DeviceKind::cpu).compile(std::move(lasting), {.tier = options.tier});
  return std::make_shared<FirstRun>(std::move(on_processor), std::move(graph), options, kind);
}

}  // namespace gradus::xla
