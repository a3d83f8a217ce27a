/// Batches that several ranks read together. Each rank reads the rows of its own shards. A tensor with such rows knows
/// that it is a part of a batch, so that a strategy divides the batch, not the part.
#pragma once
#include <memory>
#include <string>
#include <vector>
#include "gradus/data/stage.h"

namespace gradus {

/// Shards [begin, end) of the `shards` of every batch: those of one rank.
struct BatchShare {
  int begin = 0, end = 1, shards = 1;
  /// Their rows in a batch of n.
  RowRange rows(std::int64_t n) const;
};

/// Where shard number i of `shards` begins in n rows.
std::int64_t first_row_of_shard(std::int64_t i, std::int64_t n, std::int64_t shards);

/// The ranks that read a data set together.
class detail::BatchReaders {
 public:
  virtual ~BatchReaders() = default;
  /// The rank of this process.
  virtual int rank() const = 0;
  virtual BatchShare share_of(int rank) const = 0;
  virtual std::string name_of(int rank) const = 0;
  /// Every rank's number, by rank; a collective call.
  virtual std::vector<std::int64_t> all_gather(std::int64_t own) const = 0;
  /// Before this rank throws what all others will: until they know it, too.
  virtual void announce_common_error() const noexcept {}
};

/// The global batch a rank-local tensor belongs to.
struct BatchPart {
  std::shared_ptr<const BatchReaders> readers;
  std::int64_t rows = 0;             // of the whole batch
  std::vector<bool> has_ended = {};  // by rank: its data have, and its rows are missing; empty: of none
  Tensors whole = {};                // the batch, if this rank has read all of it, and
  std::uint64_t fingerprint = 0;     // its fingerprint_of_batch; 0 otherwise
};

/// `rows`, which has its value, as a part of a batch.
Tensor as_part(const Tensor& rows, const std::shared_ptr<const BatchPart>& batch);
/// The batch of which `x` is a part; null: of none.
std::shared_ptr<const BatchPart> batch_of_part(const Tensor& x);

/// A pass of this rank over parts of batches, whose number is not known. It ends where the passes of all ranks have:
/// who has no more gives parts without rows. InvalidArgument on every rank if batches have other numbers of rows.
std::unique_ptr<Reading> shared_reading(std::unique_ptr<Reading> own, std::vector<Spec> specs,
                                        std::shared_ptr<const BatchReaders> readers);

}  // namespace gradus
