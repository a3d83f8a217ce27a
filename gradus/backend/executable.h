/// Executable: a compiled graph, which one device runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "gradus/backend/kernel.h"
#include "gradus/backend/run_context.h"
#include "gradus/graph/graph.h"
#include "gradus/tensor/buffer.h"

namespace gradus {

class Executable {
 public:
  virtual ~Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  /// Binds inputs in the order of graph().inputs; fills outputs[k], in the order of graph().outputs. A buffer already
  /// in outputs[k] is written instead of a new one: the caller puts there the input that output k may overwrite, if it
  /// holds the only reference. Throws OutOfRange when data are at fault; outputs are then to be thrown away. Any number
  /// of threads may run one executable at once.
  virtual void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
                   const RunContext& context = {}) const = 0;

  /// Waits until it is known whether the run failed, and throws its error. A device that computes on its own returns
  /// from run() at once; and this returns at once, too, unless data may make the run fail. Outputs must not be read, or
  /// acted on, before.
  virtual void wait(std::span<const Ref<Buffer>> /*outputs*/) const {}
  /// True if Variables may hold the outputs without a wait: if the run fails, the next values of inputs
  /// (CompileOptions::replaces) have the old bits, later runs change nothing either, and reading a result of such a run
  /// throws the error.
  virtual bool keeps_old_values() const { return false; }

  virtual const Graph& graph() const = 0;
  /// Per output: the position among the inputs of the one whose buffer it may take over, or -1.
  virtual const std::vector<int>& may_overwrite() const = 0;

  /// Per step, for the given symbols; those of branches and loops follow, as often as one iteration runs them.
  virtual std::vector<Kernel> kernels(std::span<const std::int64_t> symbols = {}) const = 0;
  /// Bytes of temporaries for the given symbols, scratch included.
  virtual std::int64_t arena_bytes(std::span<const std::int64_t> symbols = {}) const = 0;
  /// The part of these that lives between kernels, which a budget limits.
  virtual std::int64_t temporary_bytes(std::span<const std::int64_t> symbols = {}) const = 0;
  /// The bytes of values that are computed again instead of being kept, for the symbols that it was planned for.
  virtual std::int64_t recomputed_bytes() const = 0;
  /// The seconds that a run gains by running independent steps together, estimated.
  virtual double side_by_side_seconds(std::span<const std::int64_t> symbols = {}) const = 0;
  /// The number of threads that a run takes: as many as are worth it.
  virtual int team(std::span<const std::int64_t> symbols = {}) const = 0;
  /// The seconds of a run, the first one left out; 0 if it was not measured.
  virtual double measured_seconds() const = 0;
  /// The most threads that a measured run took.
  virtual int measured_team() const = 0;

  virtual double compile_seconds() const = 0;
  /// The place of execution, for explain(); empty: nothing to report.
  virtual std::string note() const { return {}; }
  /// The values of the symbols for which there is code now, in the order of their first use. Empty: one code serves
  /// all.
  virtual std::vector<std::vector<std::int64_t>> compiled_sizes() const { return {}; }
  /// The bytes that it takes in a cache: graph, steps and code.
  virtual std::size_t footprint() const = 0;

 protected:
  Executable() = default;
};

/// Decorator: forwards all but run() to `inner`, unless derived classes override more.
class ForwardingExecutable : public Executable {
 public:
  explicit ForwardingExecutable(std::shared_ptr<const Executable> inner) : inner_(std::move(inner)) {}

  void wait(std::span<const Ref<Buffer>> outputs) const override { inner_->wait(outputs); }
  bool keeps_old_values() const override { return inner_->keeps_old_values(); }
  std::string note() const override { return inner_->note(); }
  std::vector<std::vector<std::int64_t>> compiled_sizes() const override { return inner_->compiled_sizes(); }
  const Graph& graph() const override { return inner_->graph(); }
  const std::vector<int>& may_overwrite() const override { return inner_->may_overwrite(); }
  std::vector<Kernel> kernels(std::span<const std::int64_t> symbols) const override { return inner_->kernels(symbols); }
  std::int64_t arena_bytes(std::span<const std::int64_t> symbols) const override {
    return inner_->arena_bytes(symbols);
  }
  std::int64_t temporary_bytes(std::span<const std::int64_t> symbols) const override {
    return inner_->temporary_bytes(symbols);
  }
  std::int64_t recomputed_bytes() const override { return inner_->recomputed_bytes(); }
  double side_by_side_seconds(std::span<const std::int64_t> symbols) const override {
    return inner_->side_by_side_seconds(symbols);
  }
  int team(std::span<const std::int64_t> symbols) const override { return inner_->team(symbols); }
  double measured_seconds() const override { return inner_->measured_seconds(); }
  int measured_team() const override { return inner_->measured_team(); }
  double compile_seconds() const override { return inner_->compile_seconds(); }
  std::size_t footprint() const override { return inner_->footprint(); }

 protected:
  const std::shared_ptr<const Executable> inner_;
};

/// Reports for its parts together.
class ExecutableOfParts : public Executable {
 public:
  std::int64_t arena_bytes(std::span<const std::int64_t> symbols) const override;
  std::int64_t temporary_bytes(std::span<const std::int64_t> symbols) const override;
  std::int64_t recomputed_bytes() const override;
  double side_by_side_seconds(std::span<const std::int64_t> symbols) const override;
  int team(std::span<const std::int64_t> symbols) const override;
  double measured_seconds() const override;
  int measured_team() const override;
  double compile_seconds() const override;
  std::size_t footprint() const override;

 protected:
  std::vector<std::shared_ptr<const Executable>> executables_;
};

}  // namespace gradus
