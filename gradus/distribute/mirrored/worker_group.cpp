/// Meeting, adding and sharing between processes.
#include "gradus/distribute/mirrored/worker_group.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/base/hash.h"
#include "gradus/base/notice.h"
#include "gradus/base/version.h"
#include "gradus/data/batch_readers.h"
#include "gradus/distribute/collectives/gathered_parts.h"
#include "gradus/graph/activity_scope.h"

namespace gradus::detail {
namespace {

/// The interface by which this host reaches the meeting; empty where it knows its own name by its loopback, which
/// others do not reach.
std::string interface_to(const Address& meeting) {
  if (meeting.is_loopback()) return interface_of("127.0.0.1");
  const std::string own = own_host(meeting, {});
  return Address{own, meeting.port}.is_loopback() ? std::string() : interface_of(own);
}

/// Logs once the configuration that was read, and its result.
std::unique_ptr<Transport> by_ucx(const Meeting& meeting, const Cluster& cluster) {
  const UcxChoice choice = ucx_choice(cluster, meeting.is_on_one_host());
  notice(text("gradus: ", cluster.describe(), "; tensors travel by ", way_of(choice), "\n"));
  return ucx_transport(choice);
}

void join(Transport& transport, Meeting& meeting, const Cluster& cluster) {
  const std::vector<std::string> addresses = meeting.share("addresses 1", transport.open());
  Group group{.rank = cluster.rank};
  for (std::size_t rank = 0; rank < addresses.size(); ++rank)
    group.members.push_back({meeting.names()[rank], addresses[rank]});
  transport.join(std::move(group));
  meeting.share("joined 1", "");  // no rank is gone before all can be reached
}

/// Parts of `each` elements for every rank, contiguous.
Cuts even_parts(int ranks, std::size_t each) {
  Cuts cuts;
  for (int rank = 0; rank <= ranks; ++rank) cuts.push_back(static_cast<std::int64_t>(each) * rank);
  return cuts;
}

}  // namespace

UcxChoice ucx_choice(const Cluster& cluster, bool is_on_one_host) {
  UcxChoice choice{.timeout = cluster.timeout};
  if (is_on_one_host && std::getenv("UCX_TLS") == nullptr) {
    choice.transports = shared_memory_transports();
    return choice;
  }
  choice.devices = cluster.interface;
  if (!choice.devices.empty() || std::getenv("UCX_NET_DEVICES") != nullptr) return choice;
  const Address meeting = cluster.meeting();
  try {
    choice.devices = interface_to(meeting);
  } catch (const Unavailable& error) { choice.problem = error.what(); }  // a rank may not know the name of its own host
  return choice;
}

std::string way_of(const UcxChoice& choice) {
  if (!choice.transports.empty()) return "shared memory";
  const char *const transports = std::getenv("UCX_TLS"), *const devices = std::getenv("UCX_NET_DEVICES");
  std::string where = devices != nullptr ? devices : choice.devices.empty() ? "all interfaces" : choice.devices;
  if (devices == nullptr && !choice.problem.empty())
    where += text(" (the one that leads to the meeting is not known: ", choice.problem, ")");
  return transports != nullptr ? text(where, ", UCX_TLS=", transports) : where;
}

Introduction WorkerGroup::introduction(const Cluster& cluster, std::size_t devices, int micro_shards,
                                       const ShardOptions& options) {
  return {
      .fingerprint = text("multi-worker mirrored, ", cluster.ranks(), " ranks with ", devices,
                          " replicas each, micro_shards ", micro_shards,
                          options.divides_state ? ", shard_optimizer" : "", options.sums_in_bf16 ? ", bf16_sums" : ""),
      .version = std::string(version_and_contract())};
}

WorkerGroup::WorkerGroup(const Cluster& cluster, std::vector<Device> devices, int micro_shards, ShardOptions options,
                         GroupMeans means)
    : ReplicaGroup(std::move(devices), micro_shards,
                   {options.divides_state && cluster.ranks() > 1, options.sums_in_bf16}, cluster.rank, cluster.ranks()),
      cluster_(cluster),
      meeting_(cluster, introduction(cluster, devices_.size(), micro_shards, options), std::move(means.desk),
               std::move(means.witness)) {
  if (cluster.ranks() == 1) return;
  try {
    if (means.transport == nullptr) means.transport = by_ucx(meeting_, cluster_);
    join(*means.transport, meeting_, cluster_);
  } catch (const std::exception& error) {
    meeting_.fail(error.what(), means.transport != nullptr && means.transport->is_failed_by_peers());
    throw;
  }
  transport_ = std::move(means.transport);
  collectives_ = std::make_unique<Collectives>(*transport_, shards(), cluster_.timeout);
  meeting_.on_failure([transport = std::weak_ptr(transport_)](const std::string& why) {
    if (const auto still = transport.lock()) still->fail(why);
  });
  meeting_.on_left([transport = std::weak_ptr(transport_)](int rank, const std::string& did) {
    if (const auto still = transport.lock()) still->note_left(rank, did);
  });
  transport_->hear_of_peers();
  exchange_by(*this);
}

/// Destruction during unwinding, between two steps too, counts as a failure: then the others learn it at once.
WorkerGroup::~WorkerGroup() {
  if (is_whole_ && std::uncaught_exceptions() == exceptions_before_) meeting_.leave();
}

void WorkerGroup::begin() {
  if (!collectives_) return;
  meeting_.check();
  require<Unavailable>(is_whole_,
                       "strategy.run: this strategy has failed in a step before; the group has to form again: "
                       "make the strategy again on every rank");
  check_all_here();
  is_whole_ = false;
  meeting_.set_doing(text("step ", step_));
  collectives_->begin_step(step_++);
  ++traffic_.steps;
}

void WorkerGroup::check_all_here() {
  try {
    meeting_.check_all_here();
  } catch (const Unavailable& error) {
    transport_->note_failed_by_peers();
    report_failure(error.what());
    throw;
  }
}

void WorkerGroup::failed(const std::string& why) noexcept {
  if (!collectives_) return;
  meeting_.fail(why, transport_->is_failed_by_peers());
  transport_->close(why);  // touches no memory of sums any more
  buckets_.reset();
}

void WorkerGroup::announce_common_error() noexcept {
  try {
    gathered(0, "an error that all ranks have");
  } catch (...) {}  // they have ended by it already
}

void WorkerGroup::report_failure(const std::string& why) noexcept {
  is_whole_ = false;
  failed(why);
}

void WorkerGroup::expect(std::span<ShardRun::Sum> sums) { buckets_.emplace(*collectives_, sums); }
void WorkerGroup::sum_is_ready(std::size_t sum) { buckets_->is_there(sum); }
void WorkerGroup::drive() try {
  if (buckets_) buckets_->drive();
} catch (const std::exception& error) {
  transport_->close(error.what());  // so that peers hear the reason
  throw;
}

void WorkerGroup::add_up(std::span<ShardRun::Sum> sums, std::int64_t) {
  ActivityScope activity(Activity::communication, ActivityEvent::Kind::communication, "sums over processes");
  const auto before = traffic_.bytes;
  if (!buckets_) expect(sums);
  buckets_->finish(traffic_);
  activity.add_bytes(static_cast<std::int64_t>(traffic_.bytes - before));
  buckets_.reset();
}

/// All vote that they have their sums, and rank 0 decides, so that the meeting knows it, too. It tells rank 1, which
/// notes the commit and tells the others. A rank that misses it, since a message is lost or a rank fails, asks the
/// meeting, where nothing is decided any more after a failure; and if rank 0 is lost, rank 1. So all assign the results
/// of the step, or none. Only a rank that is lost may know of another end.
void WorkerGroup::vote_commit() {
  const ActivityScope activity(Activity::communication, ActivityEvent::Kind::communication, "vote on a step");
  const std::uint64_t number = ++commits_;
  bool is_decided = false;
  try {
    check_batches(gathered(fingerprint_of_call(), "the vote on a step"));
    if (rank_ == 0) {
      const std::string failure = meeting_.decide(number);
      require<Unavailable>(failure.empty(), failure);
      is_decided = true;
    }
    std::byte decision{};
    collectives_->pass(0, 1, {&decision, 1});
    if (rank_ == 1) {
      require<Unavailable>(meeting_.note(number), meeting_.names()[0], " was lost before it could tell of a commit");
      is_decided = true;
    }
    if (ranks_ > 2) collectives_->broadcast(1, {&decision, 1});
  } catch (const std::exception& error) {
    const std::optional<std::uint64_t> last = meeting_.fail(error.what(), transport_->is_failed_by_peers());
    transport_->close(error.what());
    if (!is_decided && (last.value_or(0) < number || (rank_ == 1 && !meeting_.note(number)))) throw;
  }
}

void WorkerGroup::compare_program(std::uint64_t fingerprint) {
  check_same(fingerprint,
             "strategy.run: ranks run different programs: models, batches and the C++ of the step must be the same on "
             "every rank",
             "the program of strategy.run");
}

Explanation WorkerGroup::explain(const StepIdentity& identity) {
  Explanation explanation = ReplicaGroup::explain(identity);
  if (traffic_.buckets == 0) return explanation;
  const auto steps = static_cast<double>(traffic_.steps);
  explanation.exchanges = static_cast<double>(traffic_.buckets) / steps;
  explanation.exchanged_bytes = static_cast<double>(traffic_.bytes) / steps;
  explanation.exchange_seconds = traffic_.seconds / steps;
  explanation.exchange_wait_seconds = traffic_.waited_seconds / steps;
  return explanation;
}

std::vector<std::uint64_t> WorkerGroup::all_gather(std::uint64_t mine, std::string_view question) {
  try {
    return gathered(mine, question);
  } catch (const std::exception& error) {
    report_failure(error.what());
    throw;
  }
}

/// Each rank also sends a hash of its question, since answers to different questions cannot be compared.
std::vector<std::uint64_t> WorkerGroup::gathered(std::uint64_t mine, std::string_view question) {
  struct Answer {
    std::uint64_t question, value;
  };
  if (!collectives_) return {mine};
  const std::uint64_t asked = hash_of_bytes(std::as_bytes(std::span(question)));
  std::vector<Answer> said(static_cast<std::size_t>(ranks_));
  said[static_cast<std::size_t>(rank_)] = {asked, mine};
  {
    const ActivityScope activity(Activity::communication, ActivityEvent::Kind::communication, "what processes say");
    collectives_->all_gather(u64, even_parts(ranks_, sizeof(Answer) / sizeof mine),
                             std::as_writable_bytes(std::span(said)));
  }
  if (std::ranges::any_of(said, [&](const Answer& each) { return each.question != asked; })) tell_questions(question);
  std::vector<std::uint64_t> all;
  for (const Answer& each : said) all.push_back(each.value);
  return all;
}

/// Called on all ranks, once all have seen that they ask different questions.
void WorkerGroup::tell_questions(std::string_view mine) {
  const std::vector<std::string> all = all_gather_texts(mine);
  const auto other = std::ranges::find_if(all, [&](const std::string& each) { return each != all[0]; });
  const int rank = other == all.end() ? ranks_ - 1 : static_cast<int>(other - all.begin());
  announce_common_error();
  throw InvalidArgument(text("the ranks do different things: ", name_of(0), " asks all for ", all[0], ", ",
                             name_of(rank), " for ", all[static_cast<std::size_t>(rank)],
                             ": every rank makes the same calls with the same options, in the same order"));
}

std::vector<std::string> WorkerGroup::all_gather_texts(std::string_view mine) {
  if (!collectives_) return {std::string(mine)};
  constexpr std::size_t most = 120;  // with a zero in the end
  std::vector<char> all(static_cast<std::size_t>(ranks_) * most);
  std::ranges::copy(mine.substr(0, most - 1), all.data() + static_cast<std::size_t>(rank_) * most);
  collectives_->all_gather(u8, even_parts(ranks_, most), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < all.size(); begin += most)
    out.push_back(printable(std::string(all.data() + begin, strnlen(all.data() + begin, most)), true));
  return out;
}

/// Data sets may outlive the strategy.
class WorkerGroup::Readers final : public BatchReaders {
 public:
  explicit Readers(const std::shared_ptr<WorkerGroup>& group)
      : group_(group), rank_(group->rank()), names_(group->meeting_.names()) {
    for (int rank = 0; rank < group->ranks(); ++rank) {
      const ShardRange shards = shards_of(rank, group->ranks(), group->shards());
      shares_.push_back({shards.begin, shards.end, group->shards()});
    }
  }
  int rank() const override { return rank_; }
  BatchShare share_of(int rank) const override { return shares_[static_cast<std::size_t>(rank)]; }
  std::string name_of(int rank) const override { return names_[static_cast<std::size_t>(rank)]; }
  std::vector<std::int64_t> all_gather(std::int64_t own) const override {
    const auto group = group_.lock();
    require<Unavailable>(group != nullptr, "a data set is read whose strategy is gone, which says when all have ended");
    std::vector<std::int64_t> all;
    for (const std::uint64_t each : group->all_gather(static_cast<std::uint64_t>(own), "the rows of the next batch"))
      all.push_back(static_cast<std::int64_t>(each));
    return all;
  }
  void announce_common_error() const noexcept override {
    if (const auto group = group_.lock()) group->announce_common_error();
  }

 private:
  const std::weak_ptr<WorkerGroup> group_;
  const int rank_;
  const std::vector<std::string> names_;
  std::vector<BatchShare> shares_;
};

std::shared_ptr<const BatchReaders> WorkerGroup::readers() {
  if (collectives_ && !readers_) readers_ = std::make_shared<Readers>(shared_from_this());
  return readers_;
}

void WorkerGroup::gather(std::span<ShardRun::Gathered> values) {
  ActivityScope activity(Activity::communication, ActivityEvent::Kind::communication, "values of all processes");
  for (const ShardRun::Gathered& value : values) {
    const std::int64_t bytes = value.cuts.back() * size_of(value.dtype);
    traffic_.bytes += bytes;
    activity.add_bytes(bytes);
  }
  gather_parts(*collectives_, values);
}

void WorkerGroup::share(std::span<ShardRun::Part> parts, std::span<const std::int64_t> bytes) {
  Cuts cuts(static_cast<std::size_t>(ranks_) + 1, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int rank = rank_of(parts[i].shard);
    cuts[static_cast<std::size_t>(rank) + 1] += bytes[i];
  }
  std::partial_sum(cuts.begin(), cuts.end(), cuts.begin());
  std::vector<std::byte> all(static_cast<std::size_t>(cuts.back()));
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); at += bytes[i++])
    if (parts[i].value) std::memcpy(all.data() + at, parts[i].value->host(), static_cast<std::size_t>(bytes[i]));
  {
    ActivityScope activity(Activity::communication, ActivityEvent::Kind::communication, "results of all processes");
    activity.add_bytes(cuts.back());
    collectives_->all_gather(u8, cuts, all);
  }
  at = 0;
  for (std::size_t i = 0; i < parts.size(); at += bytes[i++]) {
    if (parts[i].value) continue;
    parts[i].value = Buffer::allocate(bytes[i]);
    std::memcpy(parts[i].value->data(), all.data() + at, static_cast<std::size_t>(bytes[i]));
  }
}

}  // namespace gradus::detail
