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
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"
#include "gradus/tensor/buffer.h"

namespace gradus {

/// An account of a program, for explain() and budgets. A number that a device does not know stays as it is here.
struct ExecutableReport {
  /// Per step; those of branches and loops follow, as often as one iteration runs them.
  std::vector<Kernel> kernels = {};
  std::int64_t arena_bytes = 0;       // of temporaries, scratch included
  std::int64_t temporary_bytes = 0;   // the part of these that lives between kernels, which a budget limits
  std::int64_t recomputed_bytes = 0;  // of values that are computed again instead of being kept
  double side_by_side_seconds = 0;    // that a run gains by running independent steps together, estimated
  double measured_seconds = 0;        // of a run, the first one left out; 0: it was not measured
  int threads = 1;                    // that a run takes: as many as are worth it, or the most that a measured run took
  /// Facts for explain(), such as the place of execution.
  std::vector<std::string> notes = {};

  /// One more than the last stage of the kernels.
  int stages() const;
  /// Adds the report of another part of the program. Its first kernels run in stage `stage`.
  void add(ExecutableReport part, int stage);
};

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

  /// For these values of the graph's symbols.
  virtual ExecutableReport report(std::span<const std::int64_t> symbols = {}) const = 0;
  /// The report's temporary_bytes alone: a call of a function under a budget asks for them.
  virtual std::int64_t temporary_bytes(std::span<const std::int64_t> symbols = {}) const = 0;
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
  const Graph& graph() const override { return inner_->graph(); }
  const std::vector<int>& may_overwrite() const override { return inner_->may_overwrite(); }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override { return inner_->report(symbols); }
  std::int64_t temporary_bytes(std::span<const std::int64_t> symbols) const override {
    return inner_->temporary_bytes(symbols);
  }
  std::size_t footprint() const override { return inner_->footprint(); }

 protected:
  const std::shared_ptr<const Executable> inner_;
};

}  // namespace gradus
