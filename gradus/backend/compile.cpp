/// Chooses the kind of program: of one device, of several, or of shards.
#include "gradus/backend/compile.h"
#include <algorithm>
#include "gradus/backend/parts/placed_program.h"
#include "gradus/backend/parts/sharded_program.h"
#include "gradus/backend/parts/shared_executables.h"
#include "gradus/backend/tiers.h"
#include "gradus/graph/rewriter.h"

namespace gradus {
namespace {

/// The graph of one device, without its name and without copies.
Graph without_devices(const Graph& graph) {
  Graph plain;
  GraphRewriter rewriter(graph, plain);
  for (int i = 0; i < graph.size(); ++i) {
    if (graph[i].op.is_copy()) rewriter.set(i, rewriter[graph[i].in[0]]);
    else plain[rewriter.keep(i)].spec.device = {};
  }
  rewriter.finish();
  return plain;
}

/// One executable, on a device of its kind.
class OnDevice final : public ForwardingExecutable {
 public:
  OnDevice(std::shared_ptr<const Executable> executable, const Device& device, Placement named)
      : ForwardingExecutable(std::move(executable)), graph_(inner_->graph()), device_(device) {
    for (Value& v : graph_.values) v.spec.device = named;
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    inner_->run(inputs, outputs, {.symbols = context.symbols, .device = device_});
  }
  const Graph& graph() const override { return graph_; }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override {
    ExecutableReport of = inner_->report(symbols);
    for (Kernel& kernel : of.kernels) kernel.device = device_;
    return of;
  }

 private:
  Graph graph_;  // with the device, if the program names it
  Device device_;
};

/// The devices of a graph: none if it names none.
std::vector<Device> devices_of(const Graph& graph) {
  std::vector<Device> all;
  bool has_unnamed = false;
  const auto add = [&](const Device& device) {
    if (std::ranges::find(all, device) == all.end()) all.push_back(device);
  };
  for (const Value& v : graph.values) {
    if (v.spec.device.is_named()) add(v.spec.device.device());
    else has_unnamed = has_unnamed || v.is_input() || v.op.is_copy();
  }
  if (!all.empty() && has_unnamed) add(Placement().physical());
  return all;
}

}  // namespace

std::shared_ptr<const Executable> compile(Graph graph, const CompileOptions& options) {
  if (is_of_shards(graph)) {
    if (options.shards) return compile_sharded(std::move(graph), *options.shards, options);
    graph = as_one_shard(graph);
  }
  const std::vector<Device> devices = devices_of(graph);
  const Device first = devices.empty() ? Placement().physical() : devices.front();
  if (devices.empty() && first == Device{}) return backend_of(first).compile(std::move(graph), options);
  if (devices.size() > 1) return compile_placed(std::move(graph), options);
  CompileOptions on_first = options;
  on_first.device = first;
  auto executable = compile_once(backend_of(first), without_devices(graph), on_first);
  return std::make_shared<OnDevice>(std::move(executable), first, devices.empty() ? Placement() : Placement(first));
}

bool is_interpreted_sooner(const Graph& graph, const CompileOptions& options) {
  if (options.shards && is_of_shards(graph)) return false;
  const std::vector<Device> devices = devices_of(graph);
  if (devices.size() > 1) return false;
  const Device device = devices.empty() ? Placement().physical() : devices.front();
  if (device.kind != DeviceKind::cpu) return false;  // the processor would have to do it for the device
  return gradus::is_interpreted_sooner(graph, options.symbols);
}

}  // namespace gradus
