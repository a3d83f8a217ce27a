/// PerReplica: the results of the replicas of a strategy, which may differ. Results with masks (graph/mask.h) are
/// joined with their masks; a sum has none.
#pragma once
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

template <class T> class PerReplica;

/// A Tensor of each replica.
template <> class PerReplica<Tensor> {
 public:
  /// The number of replicas.
  std::size_t size() const { return replicas_.size(); }
  /// The result of replica i. Results of several shards are joined along axis 0, scalars to a vector; a result that all
  /// shards have in common is given as it is. OutOfRange past the last replica.
  Tensor operator[](std::size_t i) const;
  /// The results of all shards, joined along axis 0 in the order of the batch; scalars as a vector.
  Tensor concat() const;
  /// The sum over shards of results of one shape, by the tree over their numbers. Booleans: InvalidArgument.
  Tensor sum() const;
  friend std::ostream& operator<<(std::ostream& out, const PerReplica& values);

  // For the rooms of the library.
  /// `shards`: the values of shards with rows; `numbers`: their numbers; `replicas`: the first shard of each replica,
  /// among `all` of them.
  PerReplica(Tensors shards, std::vector<int> numbers, std::vector<int> replicas, int all);
  /// One value that all have in common.
  PerReplica(const Tensor& common, std::size_t replicas);
  /// Notes the masks of these values, which a step gave beside them (SequenceMask::append_all).
  void give_masks(const PerReplica& noted) const;

 private:
  Tensor joined(int from, int to) const;
  Tensors shards_;
  std::vector<int> numbers_;
  std::vector<int> replicas_;  // number of the first shard
  int all_ = 0;                // shards, empty ones included; 0: one value in common
};

}  // namespace gradus
