/// ReplicaGroup: the implementation of a Strategy, the replicas of one process. It divides a batch into shards, traces
/// a step for them, runs its program on them and adds up.
///
/// This is the first header of mirrored/. In flow a step of the user's and a global batch; out flow the results of each
/// shard, the sums over all shards, and Variables that are the same on every replica. A WorkerGroup is the ReplicaGroup
/// of one rank among several.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include "gradus/backend/shard_run.h"
#include "gradus/data/batch_readers.h"
#include "gradus/data/fingerprint.h"
#include "gradus/distribute/mirrored/shard_trace.h"
#include "gradus/distribute/strategy.h"

namespace gradus::detail {

struct Division;

class ReplicaGroup {
 public:
  /// `devices`: one replica of this process each. `micro_shards`: 0: one a replica.
  /// `exchange`: null: sums in memory, by the tree over the shards' numbers.
  ReplicaGroup(std::vector<Device> devices, int micro_shards, ShardOptions options = {}, int rank = 0, int ranks = 1,
               std::unique_ptr<ShardExchange> exchange = nullptr);
  virtual ~ReplicaGroup();
  ReplicaGroup(const ReplicaGroup&) = delete;

  /// This process's rank, and the number of processes.
  virtual int rank() const { return rank_; }
  virtual int ranks() const { return ranks_; }
  int replicas() const { return ranks_ * own_replicas(); }
  int shards() const { return micro_shards_ > 0 ? micro_shards_ : replicas(); }
  virtual StepResults run(const StepIdentity& identity, In global, StaticArguments statics, const Body& body);
  virtual Explanation explain(const StepIdentity& identity) { return traced_of(identity)->explain(); }

  /// True if each process keeps a part of the state of optimizers.
  bool divides_state() const { return options_.divides_state; }
  /// The values of all processes, by rank; all call it. `question`, for people, as "the rows of the next batch":
  /// InvalidArgument on all if processes ask different ones.
  virtual std::vector<std::uint64_t> all_gather(std::uint64_t mine, std::string_view) { return {mine}; }
  /// Texts of all processes, by rank, which are cut after 119 bytes; all call it.
  virtual std::vector<std::string> all_gather_texts(std::string_view mine) { return {std::string(mine)}; }
  /// True if `mine` holds in any process; all ask.
  bool any(bool mine);
  /// InvalidArgument, opened by `what`, unless all processes have the same value; a collective call.
  void check_same(std::uint64_t value, const std::string& what, std::string_view question = "a common value");
  /// InvalidArgument that names the first of these values that differs between processes; a collective call.
  void check_same(std::span<const ShardRun::Common> values, const std::string& when = "strategy.run");
  /// True if several processes each have all Variables, which then have to be the same.
  virtual bool keeps_variables() const { return ranks_ > 1; }
  bool has_micro_shards() const { return micro_shards_ > 0; }
  /// The exchange of values between the shards of a run, and between processes.
  ShardExchange& exchange() { return *exchange_; }
  /// Called before this process throws a common error: returns when the others know it, too, so that no end of this
  /// process comes before.
  virtual void announce_common_error() noexcept {}
  /// This process cannot go on, and tells the others.
  virtual void report_failure(const std::string&) noexcept {}
  virtual std::string name_of(int rank) const { return text("rank ", rank); }
  /// The process that computes this shard.
  int rank_of(int shard) const { return replica_of(shard) / own_replicas(); }

  /// InvalidArgument that names the first of these numbers that differs between processes, with its values: "fit: the
  /// first epoch is 3 on rank 0 and 5 on rank 1: ...", where `when` is "fit", and `remedy` follows; all call it.
  void check_same(std::span<const NamedNumber> numbers, std::string_view when, std::string_view remedy);
  /// InvalidArgument, on all, unless this data set has the same known numbers of elements and rows in each process, or
  /// unknown ones in all, and is made by the same stages of the same source.
  void check_data(const Pipeline& batches);
  /// These batches, which are checked, as this process reads them. `by_hand`:
  /// they are for calls of run().
  Pipeline distributed(const Pipeline& batches, bool by_hand);

 protected:
  /// Readers that read the rows of their own shards alone; null: each reads whole batches.
  virtual std::shared_ptr<const BatchReaders> readers() { return nullptr; }
  /// A call begins; it is over; it has failed.
  virtual void begin() {}
  /// The fingerprint of the current call's batch, if this process has the whole batch; else 0.
  std::uint64_t fingerprint_of_call() const { return fingerprint_of_call_; }
  /// InvalidArgument, on all, unless these fingerprints, by rank, are the same, apart from 0. It gives the first values
  /// that differ.
  void check_batches(std::span<const std::uint64_t> fingerprints);
  virtual void end() {}
  virtual void failed(const std::string&) noexcept {}
  /// InvalidArgument if the step is to run op by op.
  static void check_is_traced(const StepIdentity& identity);
  int replica_of(int shard) const;
  /// From now on `exchange`, which lives as long as this group.
  void exchange_by(ShardExchange& exchange) { exchange_ = &exchange; }
  int own_replicas() const { return static_cast<int>(devices_.size()); }
  const std::vector<Device> devices_;
  const int micro_shards_, rank_, ranks_;
  const ShardOptions options_;

 private:
  struct Known {
    std::weak_ptr<const void> step;
    std::shared_ptr<TracedFunction> traced;
  };
  Called traced_on_shards(In in, std::size_t lengths, const ShardCounts& counts, const Body& body) const;
  ShardRun shard_run(In global, const Division& division);
  StepResults results_of(const Called& called, const ShardRun& run, const Division& division);
  std::shared_ptr<TracedFunction> traced_of(const StepIdentity& identity);
  bool are_alike(std::uint64_t mine, std::string_view question);
  int first_that_differs(std::span<const std::uint64_t> all);
  void compare_batch(In global, const BatchPart* part);
  void compare_batch_without_vote();
  std::string difference_of_batches(int first, int other);
  std::string advice_about_batch() const;
  void check_stages(std::span<const StageFingerprint> own, bool of_shards);
  void say_rows(const Pipeline& batches, const BatchReaders& readers);
  const std::unique_ptr<ShardExchange> own_exchange_;
  ShardExchange* exchange_;
  bool checks_batches_ = false, has_said_rows_ = false;
  // The state of the current call.
  In whole_batch_;  // empty if this process has rows alone
  std::uint64_t fingerprint_of_call_ = 0;
  bool has_read_batch_ = false;  // from a data set that is distributed
  bool may_be_of_part_ = false;  // strategy.distribute has not made it, and has made others
  bool is_batch_compared_ = false;
  std::int64_t calls_ = 0;               // so far, of those that compare batches
  std::atomic<std::int64_t> steps_ = 0;  // calls of run() so far
  std::mutex guard_;
  std::map<const void*, Known> known_;
};

/// The remedy where tensors of strategy.distribute are used in a wrong way.
inline constexpr const char* part_advice =
    "; tensors of strategy.distribute go to strategy.run as they are, all of one batch";

/// The sum of parts of some shards, of `shards` in all; missing ones are zeros. `narrow`: as for AllReduce.
Ref<Buffer> sum_of_parts(const Spec& spec, std::span<const ShardRun::Part> parts, int shards, bool narrow = false);

}  // namespace gradus::detail
