/// MeetingDesk: the server of the rendezvous, at rank 0. It checks that ranks belong together, passes their messages
/// on, and notices ranks without a sign of life. It answers questions in JSON and never blocks: a question without an
/// answer yet is held for a while.
///
/// A rank asks {"kind": "join" | "share" | "beat" | "fail" | "leave", "rank": 1, "incarnation": "...", ...}. The desk
/// answers {"kind": "all here" | "shared" | "alive"} with its data, "wait" with the missing ranks, or "failed" with the
/// reason, which every rank gets. A rank that joins again after that receives "before": the next meeting will be at the
/// same place.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>
#include "gradus/distribute/messages/rpc.h"

namespace gradus {

/// The terms that all ranks have to agree on.
struct MeetingTerms {
  int ranks = 1;
  int generation = 1;
  std::string fingerprint = {};  // of the program, its model and its strategy
  std::string version = {};      // of the library and the numeric contract
  std::chrono::milliseconds heartbeat{10'000};
  std::chrono::milliseconds report{10'000};  // after which a waiting rank learns which ranks it waits for
  std::vector<std::string> addresses = {};   // of the ranks, where they are known
};

class MeetingDesk : public RpcHandler {
 public:
  static constexpr int protocol = 1;
  static constexpr std::size_t most_shared_bytes = 16 << 10, most_topics = 16, topics_kept = 4;

  explicit MeetingDesk(MeetingTerms terms);
  ~MeetingDesk() override;

  void ask(std::uint64_t call, std::string_view bytes, Answer answer) override;
  void left(std::uint64_t call) override;
  void refused(std::string_view peer) override;

  /// All ranks have done their shared work of commit `number`: from now on it holds, also for ranks that do not hear of
  /// it. If a rank has failed before, the commit is refused and the reason is returned. A rank that hears of a failure
  /// hears of the last commit, too.
  std::string decide(std::uint64_t number);
  /// Waiting and later ranks receive `why`; `in_order`: as no failure, since all is done.
  void close(const std::string& why, bool in_order = false);
  /// Until each rank has heard why, has left or is lost, or the deadline.
  void wait_until_told(Deadline deadline);

 private:
  using Clock = std::chrono::steady_clock;
  struct Question;
  struct Seat {
    std::string incarnation, name, host;
    Clock::time_point last_sign;
    std::string doing;
    bool has_left = false;
    bool is_taken() const { return !incarnation.empty(); }
  };
  struct HeldQuestion {
    std::uint64_t call;
    int rank;
    std::string kind, topic;
    Clock::time_point until;
    Answer answer;
    std::optional<int> knows_left = {};  // of a heartbeat: the number of ranks that its sender knows to have left
  };
  struct Reply {
    Answer answer;
    std::string bytes;
  };
  using Replies = std::vector<Reply>;
  using Topic = std::map<int, std::string>;  // values by rank

  void join(const Question& question, Answer answer, Replies& replies);
  void share(const Question& question, Answer answer, Replies& replies);
  std::string mismatch(const Question& question) const;
  void hold(const Question& question, std::string topic, std::chrono::milliseconds time, Answer answer);
  /// Answers those held that `wanted`, and drops them.
  void answer_held(const std::function<std::optional<std::string>(const HeldQuestion&)>& reply, Replies& replies);
  void fail(const std::string& why, Replies& replies);
  void lose(const Seat& seat, const std::string& why, Replies& replies);
  void note_told(const Question& question);
  bool has_come_again(const Question& question) const;
  std::vector<bool>::reference told(int rank) { return told_[static_cast<std::size_t>(rank)]; }
  std::string end_reply() const;
  std::string wait_reply(const std::string& topic) const;
  /// A reply with the state of the group: the ranks that have left in order, with their last work, and its failure.
  std::string reply(std::string_view kind) const;
  std::string roster() const;
  void watch();
  static void send(Replies replies);

  const MeetingTerms terms_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Seat> seats_;
  std::vector<HeldQuestion> held_;
  std::map<std::string, Topic> topics_;
  std::deque<std::string> complete_;  // topics that stay for ranks that ask again, as an answer was lost; newest last
  std::string failure_;
  std::uint64_t decided_ = 0;         // the last commit
  std::vector<bool> told_;            // by rank: it has received the end
  std::vector<std::string> told_to_;  // by rank: the incarnation that received the end
  bool ended_in_order_ = false;       // no failure in that case
  bool is_complete_ = false, is_closing_ = false;
  std::thread watcher_;
};

}  // namespace gradus
