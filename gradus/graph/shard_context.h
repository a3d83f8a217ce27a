/// ShardContext: the shards of a batch, as a step that runs on all of them sees them while it is traced.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/context.h"

namespace gradus {

/// A shard of a batch, within a step that runs on all of them.
struct ShardPlace {
  int of_first, of_second;  // how many shards have each of the two lengths that shards have
  int all;                  // how many there are, those without rows included; 0: the data of some ranks have ended
  int length;               // which of the two this one has
  std::int64_t rows[2];     // of a shard of each length; 0: nothing is split
  Tensor number;            // among all: a scalar i64
};

namespace detail::inline rooms {

class ShardContext {
 public:
  virtual ~ShardContext() = default;
  /// The sum of `part` over all shards. InvalidArgument where shards cannot be added up, such as within the body of a
  /// loop.
  virtual Tensor sum(const Tensor& part) = 0;
  /// The result of `op`, which takes `part` of all shards, for each of them. As the sum.
  virtual Tensor over(const AnyOp& op, const Tensor& part) = 0;

  const ShardPlace* place = nullptr;  // of the present shard; null where nothing is known of the others
  int count = 0;                      // of the shards with rows; 0 where nothing is known of them
  bool divides_state = false;         // ranks divide the state of optimizers among themselves
  bool sums_in_bf16 = false;          // gradients are rounded to bf16 to be added up over shards
};

}  // namespace detail::inline rooms

// As the innermost context says; without shards the whole batch is one.
inline ShardContext* shard_context() {
  Context* const context = Context::current();
  return context ? context->shards() : nullptr;
}
inline Tensor sum_over_shards(const Tensor& part) {
  ShardContext* const shards = shard_context();
  return shards ? shards->sum(part) : part;
}
inline Tensor over_shards(const AnyOp& op, const Tensor& part) {
  ShardContext* const shards = shard_context();
  return shards ? shards->over(op, part) : part;
}
inline const ShardPlace* shard_place() {
  const ShardContext* const shards = shard_context();
  return shards ? shards->place : nullptr;
}
inline int number_of_shards() {
  const ShardContext* const shards = shard_context();
  return shards ? shards->count : 0;
}
inline bool divides_state() {
  const ShardContext* const shards = shard_context();
  return shards && shards->divides_state;
}

}  // namespace gradus
