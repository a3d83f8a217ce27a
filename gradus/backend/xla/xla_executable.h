/// Programs of devices of plugins.
#pragma once
#include <mutex>
#include "gradus/backend/compile_options.h"
#include "gradus/backend/executable.h"
#include "gradus/backend/xla/compiled_code.h"

namespace gradus::xla {

/// A graph as code of a plugin: one for each set of open sizes; the most recently used are kept.
class XlaExecutable final : public Executable {
 public:
  /// Throws for ops that cannot be written as StableHLO, if all sizes are known. `replicas`: the devices that run it
  /// together; its inputs are then ReplicatedValues on them, and so are its outputs. Null: each run is on one device.
  XlaExecutable(Graph graph, const CompileOptions& options, DeviceKind kind, const DeviceGroup* replicas = nullptr);

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override;
  void wait(std::span<const Ref<Buffer>> outputs) const override;
  bool keeps_old_values() const override { return keeps_old_values_; }

  const Graph& graph() const override { return graph_; }
  const std::vector<int>& may_overwrite() const override { return donated_; }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override;
  /// As the plugin reports them; 0 before there is code.
  std::int64_t temporary_bytes(std::span<const std::int64_t> symbols) const override;
  std::size_t footprint() const override;
  /// The values of the symbols for which there is code now, in the order of their last use; none without symbols.
  std::vector<std::vector<std::int64_t>> compiled_sizes() const;

 private:
  static constexpr std::size_t most_sizes = 16;
  /// The code for one value of the symbols.
  struct Sized {
    std::vector<std::int64_t> symbols;
    std::shared_ptr<const StableHloModule> module;
    std::vector<Spec> inputs, outputs;
    std::vector<std::pair<const DeviceGroup*, std::shared_ptr<const CompiledCode>>> codes;
  };
  /// The code and specs of a run.
  struct Bound {
    std::shared_ptr<const CompiledCode> code;
    std::span<const Spec> inputs, outputs;
    std::shared_ptr<const Sized> owner;
  };
  std::shared_ptr<Sized> make(std::span<const std::int64_t> symbols) const;
  Bound bind(std::span<const std::int64_t> symbols, const DeviceGroup& on) const;
  class Launch;
  std::vector<Spec> specs_of(const std::vector<int>& values, std::span<const std::int64_t> symbols) const;
  std::string what() const;

  const Graph graph_;
  const std::vector<std::string> disable_;
  const bool highest_precision_;
  const DeviceKind kind_;
  const DeviceGroup* const replicas_;
  std::vector<int> donated_;
  bool keeps_old_values_ = true;
  mutable std::mutex guard_;                           // guards the members below
  mutable std::vector<std::shared_ptr<Sized>> sizes_;  // the last one was used last
};

/// True if `graph` computes from nothing but keys and sizes, as initializers do. Outside of functions it runs on the
/// processor: the first values of a model are the same bits on all devices.
bool makes_numbers_of_nothing(const Graph& graph);

/// A program that the processor runs where its inputs are at hand there, so that nothing is compiled for one use; else
/// as an XlaExecutable.
std::shared_ptr<const Executable> first_run(Graph graph, const CompileOptions& options, DeviceKind kind);

/// Per output of `graph` the input whose memory it takes, or -1: that which it replaces (CompileOptions::replaces),
/// else a dying one of its spec that it is a formula of.
std::vector<int> donations(const Graph& graph, const std::vector<int>& replaces);

}  // namespace gradus::xla
