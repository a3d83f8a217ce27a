/// ShardTrace: the context of a shard within the trace of a step that a strategy runs. It defines sums over the shards,
/// assignments to Variables and the random numbers of a shard, and forbids C++ branches on values that differ.
#pragma once
#include <unordered_map>
#include "gradus/base/rooms.h"
#include "gradus/function/trace.h"
#include "gradus/graph/shard_context.h"

namespace gradus {

/// How a batch is divided, as far as the step's program depends on it.
struct ShardCounts {
  int of_first = 1, of_second = 0;  // how many shards have each of the two lengths
  int all = 1;                      // with those without rows; 0: the data of some ranks have ended
  std::int64_t rows[2] = {0, 0};    // of a shard of each length; 0: nothing is split
  int present() const { return of_first + of_second; }
};

/// How a strategy adds up and updates.
struct ShardOptions {
  bool divides_state = false;  // ranks divide the state of optimizers among themselves
  bool sums_in_bf16 = false;   // gradients are rounded to bf16 to be added up
};

/// The collective ops of a step, in order: sums, and others that take values of all shards. A sum has a scope of its
/// own, by which a Reducer knows it in whichever program of the step it is computed: later ones of a scope are
/// numbered.
class ShardSums {
 public:
  /// The result of `op` on the parts of all shards; `part` is that of one of the first length.
  Tensor add(const AnyOp& op, const Tensor& part);
  /// The same, for shards of the other length, which add `part`. Empty if these are to gather rows of a table, and
  /// those of the first length do not.
  Tensor join(const AnyOp& op, const Tensor& part);
  /// Further results of the program: the addends of shards of the second length.
  const Tensors& joins() const { return joins_; }
  /// InvalidArgument unless both lengths ask for as many sums.
  void check_joined() const;

 private:
  std::uint32_t numbered(std::uint32_t scope);

  Tensors sums_, joins_;
  std::size_t joined_ = 0;
  std::unordered_map<std::uint32_t, int> with_scope_;
};

class ShardTrace final : public Context, private ShardContext {
 public:
  /// `length`: 0 or 1, the shard's length of the two. `number`: its number, a scalar i64 that differs.
  ShardTrace(ShardSums& sums, const ShardCounts& counts, int length, Tensor number, const ShardOptions& options);

  ShardContext* shards() override { return this; }
  Tensor read(VariableCell& cell) override;
  void assign(VariableCell& cell, const Tensor& value) override;
  bool increase(VariableCell& cell, const Tensor& by, bool decreases) override;
  /// The end of the step: Variables get the aggregation of the shards' values.
  void finish();
  Tensor random_key(const Tensor& key) override;
  bool decide(const Tensor& predicate) override;
  Ref<Node>* place_of(const AnyOp& op, In inputs) override { return parent()->place_of(op, inputs); }

 private:
  Tensor sum(const Tensor& part) override;
  Tensor over(const AnyOp& op, const Tensor& part) override;

  ShardSums& sums_;
  const ShardPlace place_;
  struct Known {
    Tensor part, sum;
  };
  std::unordered_map<const Node*, Known> known_;
  std::vector<Known> scalars_;
  std::vector<std::shared_ptr<VariableCell>> differing_;  // which hold another value on each shard
  std::vector<std::shared_ptr<VariableCell>> state_;      // of optimizers, which was assigned
  /// The sum of a Variable's increments by shards, until it is read.
  struct Increase {
    std::shared_ptr<VariableCell> cell;
    Tensor by;
  };
  void take(const Increase& increase);
  Tensor asked_of_all(const AnyOp& op, const Tensor& part);
  std::vector<Increase> increases_;
};

}  // namespace gradus
