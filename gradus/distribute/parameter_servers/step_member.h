/// StepMember: the client of the coordinator, of one process or one worker of a simulated cluster. Unavailable says
/// what is wrong there, and which member does not answer.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>
#include "gradus/distribute/messages/bytes_message.h"
#include "gradus/distribute/messages/rpc.h"
#include "gradus/distribute/parameter_servers/step_questions.h"

namespace gradus {

/// The training has ended, as it should.
class TrainingOver : public LeftOff {
 public:
  using LeftOff::LeftOff;
};

/// The desk has no rank any more. Another thread may have heard why.
class DeskGone : public Unavailable {
 public:
  using Unavailable::Unavailable;
};

class StepMember {
 public:
  /// `seat`: of a rank its number, of a server the number of ranks and its own.
  StepMember(std::shared_ptr<RpcClient> client, const Cluster& cluster, std::size_t seat, std::string incarnation);
  ~StepMember();
  StepMember(const StepMember&) = delete;

  /// Returns when all are here, with the name of the training.
  std::string join(const std::string& fingerprint);
  const std::vector<std::string>& names() const { return names_; }

  struct Taken {
    std::uint64_t committed = 0;
    bool lacks = false;  // another step could begin if it were scheduled here
    std::optional<std::uint64_t> step = {};
    std::uint64_t fingerprint = 0;
  };
  /// A step to do, of the first `scheduled`; it may be none yet.
  Taken take(std::uint64_t scheduled);
  /// How many steps are done, counted without a gap.
  std::uint64_t done(std::uint64_t step, const StepLoss& loss);
  /// The value of each rank; a collective call.
  std::vector<std::uint64_t> agree(std::uint64_t value);
  struct Round {
    std::uint64_t committed = 0;
    StepLoss loss = {};
  };
  /// Waits for steps before `to`; as long as it takes, if they come one by one.
  Round round(std::uint64_t from, std::uint64_t to);

  /// From now on a thread says that this process lives. `lost` is called once, from there, with an Unavailable or a
  /// TrainingOver.
  void start_beating(std::function<void(std::exception_ptr why)> lost);
  void set_doing(std::string doing);
  void fail(const std::string& why) noexcept;
  void leave() noexcept;
  /// Pending and later calls throw LeftOff.
  void stop() noexcept;

 private:
  MessageWriter question(StepQuestion kind) const;
  /// The rest of an answer of this kind.
  std::string await(const std::string& question, StepAnswer wanted, std::string_view doing);
  std::optional<std::string> ask(const std::string& question, Deadline deadline);
  void tell(const std::string& question) noexcept;
  void beat();

  const std::shared_ptr<RpcClient> client_;
  const Cluster cluster_;
  const std::size_t seat_;
  const std::string incarnation_, place_;
  std::vector<std::string> names_;
  std::uint64_t agreements_ = 0;
  std::mutex mutex_;
  std::string doing_;
  std::function<void(std::exception_ptr)> lost_;
  std::atomic<bool> is_leaving_ = false;
  std::thread beating_;
};

/// A name that no other process draws.
std::string drawn_name();

}  // namespace gradus
