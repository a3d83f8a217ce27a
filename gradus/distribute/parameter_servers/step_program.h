/// StepProgram: a step, traced once and cut in two for a strategy with parameter servers. The worker's part computes
/// results and pushes: gradients, from which optimizers make updates, and other values that Variables are assigned. The
/// server's part makes the new values of Variables from them.
///
/// In the worker's part Variables have the pulled values, in the server's part the server's own.
#pragma once
#include <memory>
#include <vector>
#include "gradus/distribute/strategy.h"
#include "gradus/function/tiered_program.h"
#include "gradus/function/trace.h"

namespace gradus::detail {

class StepProgram {
 public:
  using Cell = std::shared_ptr<VariableCell>;

  /// `examples`: arguments of the specs that it is for. `is_in_step`: it will run on the newest values alone.
  StepProgram(const StepIdentity& identity, In examples, const Body& body, bool is_in_step);

  /// True if the C++ would still be traced to this.
  bool holds() const;

  /// The Variables that it reads or assigns, in the order in which the C++ meets them.
  std::vector<Cell> cells() const;
  /// The Variables whose values a worker needs.
  const std::vector<Cell>& reads() const { return reads_; }
  const std::vector<Spec>& pushes() const { return pushed_specs_; }
  /// True if a call has a random key.
  bool is_random() const;
  /// A hash of the worker's part.
  std::uint64_t hash() const { return hash_; }

  struct Outcome {
    Tensors results;  // as the body gave them
    std::vector<Ref<Buffer>> pushes;
  };
  /// `read`: values of reads(), in order. From any thread.
  Outcome run(std::span<const Ref<Buffer>> arguments, std::span<const Ref<Buffer>> read, const Ref<Buffer>& key) const;
  const std::shared_ptr<const void>& structure() const { return structure_; }

  /// An assigned Variable, and the sources of its new value.
  struct Update {
    Cell cell;
    Tensor next;
    std::vector<Cell> reads;
  };
  const std::vector<Update>& updates() const { return updates_; }

  /// A server's part for some of the updates.
  struct ServerPart {
    struct Input {
      enum class Kind : std::uint8_t { cell, push, capture } kind;
      int index;  // in the list of its kind
    };
    Graph graph;
    std::vector<Input> inputs;  // of the graph, in order
    std::vector<Cell> reads, assigns;
    std::vector<int> pushes;  // places in pushes()
    std::vector<Tensor> captures;
  };
  ServerPart server_part(const std::vector<const Update*>& updates) const;

 private:
  struct KnownCell {
    std::weak_ptr<VariableCell> cell;
    int index;
    bool was_abandoned;
    std::uint64_t mask_id;
  };
  class Cut;
  void bind_worker(const std::vector<Ref<Node>>& roots, const CompileOptions& options);
  const KnownCell& known_cell(int index) const;
  Cell cell_of(int index) const;
  int push(const Tensor& made);

  std::shared_ptr<TraceMemory> memory_;  // owns the nodes of updates
  WatchedState watched_;
  mutable std::atomic<std::uint64_t> watched_until_{0};
  std::vector<KnownCell> cells_;
  std::shared_ptr<const void> structure_;

  std::unique_ptr<TieredProgram> worker_;
  std::uint64_t hash_ = 0;
  std::vector<Source> sources_;  // a cell by its place in reads_
  std::vector<Tensor> captures_;
  std::vector<Cell> reads_;
  std::vector<std::pair<int, Spec>> results_;  // output, -1: empty
  std::vector<Tensor> pushed_;                 // as the worker computes it
  std::vector<Spec> pushed_specs_;
  std::vector<int> push_outputs_;
  std::unordered_map<const Node*, int> cuts_;  // where the server's part stops: the pushes
  std::vector<Update> updates_;
};

}  // namespace gradus::detail
