/// PartedProgram: the parts of a graph, compiled. A PartsRun runs them stage by stage, those of a stage side by side.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>
#include "gradus/backend/backend.h"
#include "gradus/backend/parts/lane.h"
#include "gradus/backend/parts/partition.h"

namespace gradus {

struct CompiledPart : GraphPart {
  Device device = {};
  std::shared_ptr<const Executable> executable = {};
};

class PartedProgram : public Executable {
 public:
  const Graph& graph() const override { return graph_; }
  const std::vector<int>& may_overwrite() const override { return may_overwrite_; }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override;
  std::int64_t temporary_bytes(std::span<const std::int64_t> symbols) const override;
  std::size_t footprint() const override;

 protected:
  friend class PartsRun;
  explicit PartedProgram(Graph graph) : graph_(std::move(graph)) {}
  /// Compiles the parts for the devices of their places.
  void compile_parts_of(Partition& partition, CompileOptions options, const std::function<Device(int place)>& device_of,
                        int last_exchange = -1);

  const Graph graph_;
  CompileOptions options_;           // of the parts
  std::vector<CompiledPart> parts_;  // by stage
  PerValue<int> places_;             // of the values
  std::vector<int> sources_;         // of the outputs
  std::vector<int> may_overwrite_;
  int last_stage_ = -1;

 private:
  int input_taken_by(int source) const;
};

/// One run of a program. Derived classes say where parts run, where values lie, and what happens between stages.
class PartsRun {
 public:
  PartsRun(const PartedProgram& program, std::span<const std::int64_t> symbols)
      : graph_(program.graph_), symbols_(symbols), values_(graph_), program_(program) {}
  virtual ~PartsRun() = default;
  PartsRun(const PartsRun&) = delete;
  PartsRun& operator=(const PartsRun&) = delete;

  /// As Executable::run. An output in whose place none can be computed must be null.
  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs);

 protected:
  struct Task {
    const CompiledPart& part;
    Device device;
    std::size_t shard = 0;  // that the part is run for, if it is of one
    RunListener* listener = nullptr;
  };

  virtual void run_stage(int /*stage*/, std::span<const CompiledPart> parts) { run_side_by_side(work_of(parts)); }
  /// The work of a stage: by default, each part on its device.
  virtual std::vector<LaneWork> work_of(std::span<const CompiledPart> parts);
  void run_task(const Task& task);
  /// Value i as an input of `task`.
  virtual Ref<Buffer> brought(int i, const Task& task) = 0;
  virtual void keep(int i, const Task& /*task*/, Ref<Buffer> made) { values_[i] = std::move(made); }
  virtual Ref<Buffer> output(std::size_t k) = 0;

  Spec spec_of(int i) const { return {graph_[i].spec.dtype, graph_[i].spec.shape.evaluated(symbols_)}; }

  const Graph& graph_;
  const std::span<const std::int64_t> symbols_;
  PerValue<Ref<Buffer>> values_;

 private:
  const PartedProgram& program_;
  std::unordered_map<int, Ref<Buffer>> given_;  // memory for outputs of parts
};

}  // namespace gradus
