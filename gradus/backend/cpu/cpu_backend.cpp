/// The processor as a backend.
#include <cstring>
#include "gradus/backend/backend.h"
#include "gradus/backend/cpu/budget.h"
#include "gradus/backend/cpu/run/program.h"

namespace gradus::cpu_backend {
namespace {

class CpuBackend final : public Backend {
 public:
  std::shared_ptr<const Executable> compile(Graph graph, const CompileOptions& options) override {
    CompileOptions here = options;
    here.target = {};
    return cpu_backend::compile(std::move(graph), here);
  }
  std::int64_t planned_bytes(Graph graph, std::span<const std::int64_t> symbols) override {
    return gradus::planned_bytes(std::move(graph), symbols);
  }
  std::optional<TargetModel> target() const override { return TargetModel(); }
  Ref<Buffer> from_host(const Device& device, const Ref<Buffer>& host, const Spec&) override {
    const OnLogicalDevice account(device.index);
    Ref<Buffer> copy = Buffer::allocate(host->bytes());
    if (host->bytes() > 0) std::memcpy(copy->data(), host->data(), static_cast<std::size_t>(host->bytes()));
    return copy;
  }
};

const bool is_registered = [] {
  static CpuBackend backend;
  register_backend(DeviceKind::cpu, backend, 1);
  return true;
}();

}  // namespace
}  // namespace gradus::cpu_backend
