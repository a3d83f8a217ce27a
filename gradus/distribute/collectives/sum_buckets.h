/// SumBuckets: sums over shards on their way between processes. Small ones of one type are contiguous in a bucket,
/// which begins when it is complete, in the same order on every rank.
#pragma once
#include <chrono>
#include <span>
#include <vector>
#include "gradus/backend/shard_run.h"
#include "gradus/distribute/collectives/collectives.h"

namespace gradus::detail {

/// The exchanges so far.
struct Traffic {
  std::int64_t steps = 0, buckets = 0, bytes = 0;  // bytes of one rank's sums
  double seconds = 0, waited_seconds = 0;          // with something under way; of these, without computing meanwhile
};

class SumBuckets {
 public:
  /// A sum of at least `alone` bytes is a bucket of its own: to copy it would take longer than it gains.
  static constexpr std::int64_t most_bytes = std::int64_t{4} << 20, alone = std::int64_t{1} << 20;

  /// `sums` must stay where they are. Their parts may come later.
  SumBuckets(Collectives& collectives, std::span<ShardRun::Sum> sums);
  SumBuckets(const SumBuckets&) = delete;

  /// Sum `i` has its parts of this rank's shards.
  void is_there(std::size_t i);
  /// Moves all that can be moved without waiting.
  void drive();
  /// True if all have begun and come to their end.
  bool are_done() const;
  /// Call it when all parts are ready. Fills the results.
  void finish(Traffic& traffic);

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    DType type;
    bool is_divided;  // each rank gets a part of its sums
    bool narrow;      // as of ShardRun::Sum
    std::vector<std::size_t> sums = {};
    std::int64_t bytes = 0;
    std::size_t missing = 0;
    std::vector<Ref<Buffer>> parts = {};  // of own shards
    Ref<Buffer> result = {};
    Collective* under_way = nullptr;
    Cuts cuts = {};  // if divided: rank after rank, for each the parts of all sums
  };
  void start_complete();
  void start(Bucket& bucket);
  Cuts cuts_of(const Bucket& bucket) const;
  void join_parts(const Bucket& bucket, int shard, std::byte* at) const;
  bool have_ended() const;  // the started ones
  void note_ended();

  Collectives& collectives_;
  const std::span<ShardRun::Sum> sums_;
  std::vector<Bucket> buckets_;
  std::vector<std::size_t> bucket_of_;  // of each sum
  std::size_t started_ = 0;             // buckets
  Clock::time_point since_ = {};        // with something under way
  bool is_under_way_ = false;
  double seconds_ = 0;
};

}  // namespace gradus::detail
