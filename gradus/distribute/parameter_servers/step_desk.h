/// StepDesk: the coordinator of a training with parameter servers, at rank 0. It hands out steps to workers, knows
/// which are done, gives those of a lost worker to another, and passes on how the training stands. Questions are
/// answered at once or held for a while (step_questions.h).
///
/// Step k may begin when the steps before its version are done. After a while an idle worker gets a slow worker's step:
/// the first result counts, and both are equal.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>
#include "gradus/distribute/messages/bytes_message.h"
#include "gradus/distribute/messages/rpc.h"
#include "gradus/distribute/parameter_servers/step_questions.h"

namespace gradus {

struct StepDeskTerms {
  int ranks = 1, servers = 0;
  std::string version = {};      // of the library
  std::string fingerprint = {};  // of the strategy
  std::string run = {};          // the name of this training
  std::chrono::milliseconds heartbeat{10'000};
  bool is_watching = true;                   // members without a sign of life are lost
  std::chrono::milliseconds slow{2'000};     // after which a step is given to a second worker
  std::vector<std::string> addresses = {};   // of the ranks, where they are known
  std::vector<std::string> servers_at = {};  // of the servers, too
};

class StepDesk : public RpcHandler {
 public:
  explicit StepDesk(StepDeskTerms terms);
  ~StepDesk() override;

  void ask(std::uint64_t call, std::string_view bytes, Answer answer) override;
  void left(std::uint64_t call) override;
  void refused(std::string_view peer) override;

  /// The next step: it needs the values after `version` steps.
  void open(std::uint64_t step, std::uint64_t version, std::uint64_t fingerprint);
  /// All members learn that the training has failed, or is over.
  void close(const std::string& why, bool in_order);
  /// Until each process, one that is still to come too, has heard of the end, has left or is lost, or the deadline.
  void wait_until_told(Deadline deadline);
  /// How often a step was handed out.
  std::uint64_t handed_out();
  /// The number of steps that it remembers.
  std::size_t steps_kept();

 private:
  using Clock = std::chrono::steady_clock;
  struct Seat {
    std::string incarnation, name;
    Clock::time_point last_sign = {};
    std::string doing;
    bool has_left = false, is_lost = false, is_told = false;
    Clock::time_point contested = {};  // since when another process asks for it
    std::uint64_t agreed = 0;          // how many agreements it has come to
    bool is_taken() const { return !incarnation.empty(); }
    bool is_here() const { return is_taken() && !has_left && !is_lost; }
  };
  struct HeldQuestion {
    std::uint64_t call = 0;
    std::size_t seat = 0;
    StepQuestion kind = StepQuestion::beat;
    std::uint64_t first = 0, second = 0;  // take: scheduled, done then; agree: number; round: from, to
    Clock::time_point until = {};
    Answer answer = {};
  };
  struct Step {
    std::uint64_t version = 0, fingerprint = 0;
    bool is_open = false, is_done = false;
    int worker = -1;
    Clock::time_point since = {};
    int times = 0;
    StepLoss loss = {};
  };

  void reply_to(std::uint64_t call, MessageReader reader, const Answer& answer, Replies& replies);
  void join(std::uint64_t call, std::size_t seat, const std::string& incarnation, MessageReader& reader,
            const Answer& answer, Replies& replies);
  bool is_contested(Seat& seat, const std::string& incarnation) const;
  void finish(MessageReader& reader);
  void agree(std::size_t seat, MessageReader& reader, HeldQuestion& held);
  std::string name_of(std::size_t seat) const;
  /// " at host:port", or empty where that is not known.
  std::string place_of(std::size_t seat) const;
  /// Makes it if need be.
  Step& step(std::uint64_t number);
  Step& known(std::uint64_t number) { return steps_[static_cast<std::size_t>(number - first_)]; }
  const Step& known(std::uint64_t number) const { return steps_[static_cast<std::size_t>(number - first_)]; }
  std::uint64_t end_of_steps() const { return first_ + steps_.size(); }
  void forget_old_steps();
  void hold(HeldQuestion held) { held_.push_back(std::move(held)); }
  std::optional<std::string> answer_to(const HeldQuestion& held, bool is_late);
  std::optional<std::string> next_for(const HeldQuestion& held);
  std::optional<std::string> result_of(std::uint64_t from, std::uint64_t to);
  std::string end_reply() const;
  std::string waiting_for(const HeldQuestion& held) const;
  void answer_held(Replies& replies, bool all = false);
  static void note_told(Seat& seat, StepQuestion kind);
  void fail(const std::string& why, Replies& replies);
  void lose(Seat& seat, const std::string& why);
  /// Others do its steps.
  void release(std::size_t seat);
  void watch();
  const StepDeskTerms terms_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Seat> seats_;  // ranks, then servers
  std::vector<HeldQuestion> held_;
  std::deque<Step> steps_;                                              // from first_ on
  std::uint64_t first_ = 0;                                             // long done steps before it are forgotten
  std::map<std::pair<std::uint64_t, std::uint64_t>, StepLoss> rounds_;  // from, to: the answer
  std::uint64_t last_round_ = 0;                                        // begin of the latest of them
  std::uint64_t committed_ = 0;                                         // steps before it are done
  std::uint64_t handed_out_ = 0;
  std::map<std::uint64_t, std::map<std::size_t, std::uint64_t>> agreements_;  // number, seat: value
  std::string failure_;
  bool ended_in_order_ = false, is_complete_ = false, is_closing_ = false;
  std::thread watcher_;
};

}  // namespace gradus
