#include "gradus/backend/xla/xla_backend.h"
#include <array>
#include "gradus/backend/xla/counts.h"
#include "gradus/backend/xla/device_buffer.h"
#include "gradus/backend/xla/plugins.h"
#include "gradus/backend/xla/xla_executable.h"

namespace gradus::xla {
namespace {

class XlaBackend final : public Backend {
 public:
  explicit XlaBackend(DeviceKind kind) : kind_(kind) {}

  std::shared_ptr<const Executable> compile(Graph graph, const CompileOptions& options) override {
    const bool is_of_function = !options.replaces.empty();
    if (options.tier == Tier::interpreted || (!is_of_function && makes_numbers_of_nothing(graph)))
      return first_run(std::move(graph), options, kind_);
    return std::make_shared<XlaExecutable>(std::move(graph), options, kind_);
  }
  std::int64_t planned_bytes(Graph graph, std::span<const std::int64_t> symbols) override {
    return processor().planned_bytes(std::move(graph), symbols);
  }
  TargetModel target() const override {
    constexpr const char* names[] = {"cpu", "gpu", "tpu", "plugin"};
    return {.name = names[static_cast<std::size_t>(kind_)]};
  }
  Ref<Buffer> from_host(const Device& device, const Ref<Buffer>& host, const Spec& spec) override {
    return DeviceBuffer::from_host(device_of_plugin(device), host, spec);
  }
  Ref<Buffer> from_device(const Device& to, const Ref<Buffer>& source, const Spec& spec) override {
    DeviceBuffer& from = DeviceBuffer::in(source);
    PluginDevice& there = device_of_plugin(to);
    if (&from.on().session != &there.session) return from_host(to, Buffer::on_host(source), spec);
    from.on().faults.observe();  // which the other device would not hear of
    const std::shared_ptr<const Holding> holding = from.holding(spec);
    there.account.require_room(bytes_of(spec), "a copy from another device");
    try {
      auto copy = holding->buffer().copy_to(there.handle);
      return DeviceBuffer::of(std::make_shared<Holding>(there, std::move(copy), spec, "copy from another device"), 0);
    } catch (const pjrt::Refused&) {
      throw_for(std::current_exception(), there, bytes_of(spec), "a copy from another device");
    }
  }
  void synchronize() override {
    for (PluginDevice* const device : devices_of_plugins(kind_)) {
      ++counts().waits;
      device->wait_for_runs();
      device->faults.observe();
    }
  }

  // What the processor would interpret takes it less time than a plugin would compile.
  bool is_interpreted_sooner(const Graph& graph, std::span<const std::int64_t> symbols) override {
    return processor().is_interpreted_sooner(graph, symbols);
  }
  double runs_that_pay(const Graph& graph, std::span<const std::int64_t> symbols) override {
    return processor().runs_that_pay(graph, symbols);
  }

 private:
  static Backend& processor() { return gradus::backend_of(DeviceKind::cpu); }
  const DeviceKind kind_;
};

}  // namespace

Backend& backend_of_kind(DeviceKind kind) {
  static auto* all = new std::array<XlaBackend, 4>{XlaBackend(DeviceKind::cpu), XlaBackend(DeviceKind::gpu),
                                                   XlaBackend(DeviceKind::tpu), XlaBackend(DeviceKind::plugin)};
  return (*all)[static_cast<std::size_t>(kind)];
}

}  // namespace gradus::xla
