/// Meeting: the rendezvous of the ranks, before they exchange tensors, and their heartbeats. Rank 0 holds the desk at
/// the cluster's meeting point; by gRPC between processes, by calls within one. A failure is an Unavailable on every
/// rank, after the cluster's timeout at the latest; it names the rank, its place and its work.
///
/// This is the first header of membership/. In flow a Cluster and a rank's account of itself; out flow the names and
/// addresses of all ranks, the common verdict on each step, and the failure of a rank.
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include "gradus/distribute/cluster/launcher_reports.h"
#include "gradus/distribute/membership/commit_witness.h"
#include "gradus/distribute/membership/meeting_desk.h"

namespace gradus {

/// A rank's account of itself; all have to agree.
struct Introduction {
  std::string fingerprint = {};
  std::string version = {};  // of the library and the numeric contract
  int generation = 1;
};

class Meeting {
 public:
  /// Returns when all ranks have joined. A waiting rank logs the ranks that it waits for, once per heartbeat, on
  /// standard error. `desk`: shared by all ranks of a cluster in one process; else rank 0 makes its own. `witness`: so
  /// by rank 1.
  Meeting(const Cluster& cluster, Introduction introduction, std::shared_ptr<MeetingDesk> desk = nullptr,
          std::shared_ptr<CommitWitness> witness = nullptr);
  /// Without leave() before it the others learn that this rank has failed. It waits for no rank, and a second at most
  /// to send its own message; if rank 0 is lost, rank 1 stays for a heartbeat's time to answer in its place.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// "rank 1 (node3, process 4711)", by rank.
  const std::vector<std::string>& names() const { return names_; }
  /// True if all are on one machine, by its name.
  bool is_on_one_host() const;
  /// Every rank's bytes under this topic, by rank; a collective call. At most MeetingDesk::most_shared_bytes.
  std::vector<std::string> share(const std::string& topic, std::string_view bytes);
  /// For messages of others, if this rank ends: "all_reduce 3 of step 12".
  void set_doing(std::string doing);

  /// From another thread, once, as soon as a rank is lost; at once if one was lost before.
  void on_failure(std::function<void(const std::string& why)> told);
  /// Calls `told` from another thread, once for each rank that has left in order, with the last work that it reported;
  /// at once for ranks that left before. Call it only once.
  using LeftTold = std::function<void(int rank, const std::string& did)>;
  void on_left(LeftTold told);
  /// Unavailable if a rank has left in order, after which the ranks do nothing together.
  void check_all_here() const;
  /// Unavailable if a rank is lost.
  void check() const;
  /// Tells all others that this rank cannot go on; `by_peers`: because others have failed. Returns the number of the
  /// last commit, if rank 0 has answered, or rank 1 in its place.
  std::optional<std::uint64_t> fail(const std::string& why, bool by_peers = false) noexcept;
  /// For rank 0: see MeetingDesk::decide.
  std::string decide(std::uint64_t number) { return desk_->decide(number); }
  /// For rank 1: see CommitWitness::note.
  bool note(std::uint64_t number) { return witness_ == nullptr || witness_->note(number); }
  /// This rank has done all that the others need of it; no rank waits for it any more.
  void leave() noexcept;

  /// The terms of a cluster's meeting, as rank 0 has them.
  static MeetingTerms terms(const Cluster& cluster, const Introduction& introduction);

 private:
  struct Heard {
    std::optional<std::string> answer = {};
    std::string problem = {};  // the reason if this meeting does not happen
    bool is_early = false;     // ask again soon
  };
  Heard ask_desk(const std::string& question, Deadline deadline);
  static void note_group_before(Heard& heard);
  /// Asks until the answer is `wanted`, or the timeout has passed.
  std::string await(std::string question, std::string_view wanted, std::string_view purpose);
  std::string question(std::string_view kind) const;
  void meet_witness();
  void start_beating();
  /// Called if the desk does not answer: it may have ended after it announced the end, which the heartbeat has
  /// received.
  std::optional<std::uint64_t> heard() noexcept;
  /// Sends heartbeats until the end, and reports that.
  void hear();
  void beat();
  void lose(const std::string& why);
  void note_left(std::map<int, std::string> ranks);
  std::optional<std::string> tell(const std::string& question) noexcept;
  /// Ends the meeting, by rank 0: `why` for ranks that have not left; it waits for them with `patience`.
  void end(const std::string& why, bool in_order, std::chrono::milliseconds patience);

  const Cluster cluster_;
  const Introduction introduction_;
  const std::string incarnation_, place_;
  std::shared_ptr<MeetingDesk> desk_;
  bool owns_desk_ = false;
  std::shared_ptr<CommitWitness> witness_;  // of rank 1, in its process
  std::unique_ptr<RpcServer> server_, witness_server_;
  std::unique_ptr<RpcClient> client_, witness_client_;
  std::atomic<bool> is_desk_silent_ = false;
  std::vector<std::string> names_, hosts_;
  int shares_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_beating_ = false;
  std::optional<std::uint64_t> heard_;  // the last commit, as the desk has said it at the end
  std::string doing_, failure_;
  LauncherReports reports_;
  std::function<void(const std::string&)> told_;
  std::map<int, std::string> left_;  // ranks that left in order, with their last work
  LeftTold left_told_;
  std::atomic<bool> is_leaving_ = false;
  std::thread beating_;
};

}  // namespace gradus
