/// OneCall: the values of one call of a function: bindings of its programs, values that segments hand on, the path
/// taken so far. All segments of a call see the same values of Variables and the same random key.
#pragma once
#include <mutex>
#include <optional>
#include "gradus/base/rooms.h"
#include "gradus/function/segment.h"

namespace gradus {

class OneCall {
 public:
  /// `dispatches` counts the programs started; `max_bytes` is the budget of predicates too, 0: none.
  OneCall(const std::string& title, In arguments, std::atomic<std::int64_t>& dispatches, std::int64_t max_bytes)
      : title_(title), arguments_(arguments), dispatches_(dispatches), max_bytes_(max_bytes) {}
  OneCall(const OneCall&) = delete;

  /// Begins, or begins again: nothing has been committed yet. The random key stays.
  void begin(std::vector<std::int64_t> symbols);
  /// The shards of the batch that the call runs on; null: the batch is one shard.
  ShardRun* shards() const { return shards_; }
  /// The values of the symbols of the variant.
  const std::vector<std::int64_t>& symbols() const { return symbols_; }

  /// Runs a segment that ends in a guard: the way to go on.
  bool take_way(Segment& segment);
  /// The segments run so far.
  std::span<const PathStep> path() const { return path_; }
  /// Runs a leaf and commits its assignments. False: another thread has assigned one of those Variables since this call
  /// read it; then nothing has happened.
  bool finish(const Segment& leaf, Tensors& results);
  /// The call has failed: it has drawn no random numbers.
  void undo();

  /// While tracing: the value of a predicate, by the interpreter, which gives the bits of the compiled program, or
  /// within the budget.
  Trace::Decision evaluate(const Trace& trace, const Tensor& predicate);

 private:
  void bind(const Segment& segment);
  void compare_with_ranks(const Segment& segment) const;
  void run(const Executable& program);
  Ref<Buffer> value_of(const Source& source, const Segment& segment);
  Ref<Buffer> value_of(const Trace& trace, const Ref<Node>& node);
  Ref<Buffer> value_of_cell(int index, VariableCell& cell);
  const Tensor& key();
  bool is_as_read(const Segment& leaf) const;
  void overwrite(const Segment& leaf, const Executable& program, std::vector<std::unique_lock<CellLock>>& locks);
  void remember_path();
  std::vector<Ref<Node>> worth_keeping(const Trace& trace, Node& predicate) const;
  std::shared_ptr<const Executable> program_of_predicate(Graph graph) const;

  const std::string& title_;
  ShardRun* const shards_ = CallContext::here().shards;
  In arguments_;
  std::vector<std::int64_t> symbols_;
  Tensor key_;                         // drawn when it is first needed,
  std::optional<std::uint64_t> seed_;  // of this one of the global seeds
  bool is_guarded_ = false;            // more than one program sees the Variables
  std::vector<Ref<Buffer>> cells_;     // their values when first read, if guarded
  std::vector<PathStep> path_;
  std::vector<std::vector<Ref<Buffer>>> yields_;        // of each segment of the path, with its predicate
  std::unordered_map<const Node*, Ref<Buffer>> known_;  // values computed while tracing
  std::atomic<std::int64_t>& dispatches_;
  const std::int64_t max_bytes_;
};

}  // namespace gradus
