/// WorkerGroup: the replicas of one rank among several. It has met the others, and adds up with them.
#pragma once
#include <exception>
#include <optional>
#include "gradus/distribute/collectives/collectives.h"
#include "gradus/distribute/collectives/sum_buckets.h"
#include "gradus/distribute/membership/meeting.h"
#include "gradus/distribute/messages/ucx.h"
#include "gradus/distribute/mirrored/replica_group.h"

namespace gradus::detail {

/// Stand-ins for gRPC and UCX where ranks are threads of a test.
struct GroupMeans {
  std::shared_ptr<MeetingDesk> desk = nullptr;
  std::shared_ptr<CommitWitness> witness = nullptr;
  std::unique_ptr<Transport> transport = nullptr;
};

/// Where UCX opens its ports: nowhere on one host, unless UCX_TLS says otherwise; between hosts on `interface`, or on
/// that by which this host reaches the meeting.
UcxChoice ucx_choice(const Cluster& cluster, bool is_on_one_host);
/// The medium of tensors, for people; the user's settings for UCX take precedence over `choice`.
std::string way_of(const UcxChoice& choice);

/// It is the exchange of its own runs, if it is one rank of several.
class WorkerGroup final : public ReplicaGroup, private ShardExchange, public std::enable_shared_from_this<WorkerGroup> {
 public:
  /// Returns when all have joined. Unavailable, which names the missing ranks, after the cluster's timeout.
  WorkerGroup(const Cluster& cluster, std::vector<Device> devices, int micro_shards, ShardOptions options,
              GroupMeans means = {});
  /// A rank's account of itself at the meeting.
  static Introduction introduction(const Cluster& cluster, std::size_t devices, int micro_shards,
                                   const ShardOptions& options);
  ~WorkerGroup() override;

  Explanation explain(const StepIdentity& identity) override;
  std::vector<std::uint64_t> all_gather(std::uint64_t mine, std::string_view question) override;
  std::vector<std::string> all_gather_texts(std::string_view mine) override;
  std::string name_of(int rank) const override { return meeting_.names()[static_cast<std::size_t>(rank)]; }
  void announce_common_error() noexcept override;
  void report_failure(const std::string& why) noexcept override;

 private:
  class Readers;
  std::shared_ptr<const BatchReaders> readers() override;
  std::vector<std::uint64_t> gathered(std::uint64_t mine, std::string_view question);
  [[noreturn]] void tell_questions(std::string_view mine);
  void begin() override;
  void check_all_here();
  void end() override { is_whole_ = true; }
  void failed(const std::string& why) noexcept override;

  bool begins_early() const override { return true; }
  void expect(std::span<ShardRun::Sum> sums) override;
  void sum_is_ready(std::size_t sum) override;
  void drive() override;
  void add_up(std::span<ShardRun::Sum> sums, std::int64_t step) override;
  void gather(std::span<ShardRun::Gathered> values) override;
  void compare(std::span<const ShardRun::Common> values) override { check_same(values); }
  void compare_program(std::uint64_t fingerprint) override;
  void vote_commit() override;
  void share(std::span<ShardRun::Part> parts, std::span<const std::int64_t> bytes) override;

  const Cluster cluster_;
  Meeting meeting_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<Collectives> collectives_;
  std::shared_ptr<const BatchReaders> readers_;
  std::optional<SumBuckets> buckets_;  // of the sums that are expected
  Traffic traffic_;
  std::uint64_t step_ = 1;  // before the first one ranks may agree on something
  std::uint64_t commits_ = 0;
  bool is_whole_ = true;  // no step has been left in its midst
  const int exceptions_before_ = std::uncaught_exceptions();
};

}  // namespace gradus::detail
