/// Collectives on host memory: all-reduce, reduce-scatter, all-gather, broadcast and barrier of the ranks of a group.
/// Every rank makes the same calls in the same order. Sums are those of tree_sum.h, so their bits do not depend on the
/// number of ranks. Large values travel in pieces; a started call makes progress whenever a caller calls `advance`.
///
/// This is the first header of collectives/. In flow the values of each rank in host memory; out flow, on all ranks,
/// their sums or all of the values. SumBuckets collects small sums before that, GatheredParts joins divided values.
#pragma once
#include <list>
#include <optional>
#include "gradus/distribute/collectives/tree_sum.h"
#include "gradus/distribute/messages/transport.h"
#include "gradus/tensor/cuts.h"

namespace gradus {

/// One call under way: its pieces, each a small exchange of its own.
class Collective;

class Collectives {
 public:
  /// `shards`: the number of values summed, at least the number of ranks; `bytes_of_piece`: bytes that travel at once.
  /// At most two pieces of a call are under way.
  Collectives(Transport& transport, int shards, std::chrono::milliseconds timeout,
              std::int64_t bytes_of_piece = std::int64_t{4} << 20);
  ~Collectives();
  Collectives(const Collectives&) = delete;

  /// The messages from now on are those of this step: a late one of another is never taken for one of them.
  void begin_step(std::uint64_t step);
  int rank() const { return transport_.rank(); }
  /// The shards that this rank adds.
  ShardRange own_shards() const { return shards_of(transport_.rank(), transport_.ranks(), shards_); }

  /// `out` becomes the sum over all shards on every rank. `own`: the values of own_shards(), in order, each as long as
  /// `out`, which may be the first of them.
  void all_reduce(DType type, std::span<const std::byte* const> own, std::span<std::byte> out);
  /// This rank gets the part of the sum that `cuts` assigns to it.
  void reduce_scatter(DType type, std::span<const std::byte* const> own, const Cuts& cuts, std::span<std::byte> out);
  /// Every rank's part, in place: `all` has this rank's part before, and all parts after.
  void all_gather(DType type, const Cuts& cuts, std::span<std::byte> all);
  /// `bytes` of rank `root` on every rank.
  void broadcast(int root, std::span<std::byte> bytes);
  /// `bytes` of rank `from` on rank `to`; the others only call it.
  void pass(int from, int to, std::span<std::byte> bytes);
  /// Until all ranks are here.
  void barrier();

  /// all_reduce that is under way when this returns: `own` and `out` stay until `finish`. Several may be started; each
  /// is finished once, in any order. `narrow`: as for tree_sum.
  Collective* start_all_reduce(DType type, std::span<const std::byte* const> own, std::span<std::byte> out,
                               bool narrow = false);
  /// The same of reduce_scatter and of all_gather.
  Collective* start_reduce_scatter(DType type, std::span<const std::byte* const> own, const Cuts& cuts,
                                   std::span<std::byte> out, bool narrow = false);
  Collective* start_all_gather(DType type, const Cuts& cuts, std::span<std::byte> all);
  /// Moves all that can be moved without waiting, as between two kernels; true if anything moved.
  bool advance();
  bool is_done(const Collective* started) const;
  void finish(Collective* started);
  /// Payload bytes that this rank has sent.
  std::int64_t sent_bytes() const { return sent_bytes_; }

 private:
  friend class Collective;
  Collective* start(DType type, std::span<const std::byte* const> own, const Cuts& cuts, std::byte* out,
                    std::int64_t out_begin, bool sums, bool gathers, std::string name, bool narrow = false);
  bool advance_pieces();
  Tag next_tag();

  Transport& transport_;
  const int shards_;
  const std::chrono::milliseconds timeout_;
  const std::int64_t bytes_of_piece_;
  std::uint64_t step_ = 0;
  std::uint32_t slot_ = 0;
  int calls_ = 0;  // of this step
  std::int64_t sent_bytes_ = 0;
  std::list<Collective> under_way_;
};

}  // namespace gradus
