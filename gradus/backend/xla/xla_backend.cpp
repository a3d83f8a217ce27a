#include "gradus/backend/xla/xla_backend.h"
#include <array>
#include "gradus/backend/xla/client_options.h"
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
  std::shared_ptr<const Executable> compile_on_replicas(Graph graph, const CompileOptions& options,
                                                        std::span<const Device> replicas) override {
    return std::make_shared<XlaExecutable>(std::move(graph), options, kind_, &group_of(replicas));
  }
  std::string why_no_replicas(std::span<const Device> replicas) override {
    const pjrt::Session& first = device_of_plugin(replicas.front()).session;
    for (const Device& each : replicas)
      if (&device_of_plugin(each).session != &first) return "its devices are of several plugins";
    // One replica waits in a thread while another one is to be started: a client with fewer would wait for ever.
    const auto needed = 2 * std::ssize(replicas);
    if (first.platform() == "cpu" && threads_of_client() < needed)
      return text("a client on the processor needs ", needed, " threads for them, and has ", threads_of_client(),
                  "; PJRT_NPROC says how many");
    return {};
  }
  Ref<Buffer> from_host(const Device& device, const Ref<Buffer>& host, const Spec& spec) override {
    return DeviceBuffer::from_host(device_of_plugin(device), host, spec);
  }
  Ref<Buffer> from_device(const Device& to, const Ref<Buffer>& source, const Spec& spec) override {
    return brought_to(device_of_plugin(to), source, spec);
  }
  void synchronize() override {
    std::exception_ptr first;
    for (PluginDevice* const device : devices_of_plugins(kind_)) try {
        ++counts().waits;
        device->wait_for_runs();
        device->faults.observe();
      } catch (const pjrt::Refused&) {
        if (!first) first = std::current_exception();
        device->faults.forget();  // a failed run's report on the data would fail the next one
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
  }

 private:
  static const DeviceGroup& group_of(std::span<const Device> replicas) {
    std::vector<PluginDevice*> all;
    for (const Device& each : replicas) all.push_back(&device_of_plugin(each));
    return DeviceGroup::of(all);
  }
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
