/// ParameterStore: the Variables of one parameter server. It applies what is pushed in the order of steps, so that
/// version k holds the first k steps, keeps as many versions as workers may lag, and gives each as it is asked for. It
/// answers questions (parameter_questions.h) by gRPC or within one process.
///
/// A push counts once, however often it comes: by its step, and its pieces by sender and sequence.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include "gradus/distribute/bytes_message.h"
#include "gradus/distribute/parameter_program.h"
#include "gradus/distribute/rpc.h"

namespace gradus {

class ParameterStore : public RpcHandler {
 public:
  /// How long a question for a version that is not there yet is held.
  explicit ParameterStore(std::chrono::milliseconds hold = std::chrono::milliseconds(500));
  ~ParameterStore() override;

  void ask(std::uint64_t call, std::string_view bytes, Answer answer) override;
  void left(std::uint64_t call) override;
  void refused(std::string_view peer) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Cell {
    std::string name;
    Spec spec;
    std::size_t place;  // in a version
  };
  using Version = std::vector<Ref<Buffer>>;  // by place; empty: not known yet
  /// What a sender is in the midst of sending.
  struct Upload {
    std::uint64_t sequence = 0, kind = 0, subject = 0, program = 0;
    std::size_t total = 0;
    std::string bytes;
    bool is_done = false;
  };
  struct Push {
    std::shared_ptr<const ParameterProgram> program;
    std::vector<Ref<Buffer>> values;
  };
  struct Pull {
    std::uint64_t call, version, program;
    std::size_t offset, length;
    Clock::time_point until;
    Answer answer;
  };
  using Replies = std::vector<std::pair<Answer, std::string>>;

  std::optional<std::string> reply_to(std::uint64_t call, MessageReader reader, const Answer& answer);
  std::string begin(const std::string& run, MessageReader& reader);
  std::string add_cells(MessageReader& reader);
  std::string take_piece(std::uint64_t kind, MessageReader& reader);
  std::size_t size_of_upload(std::uint64_t kind, std::uint64_t subject, std::uint64_t program) const;
  void finish(const Upload& upload);
  void set(std::uint64_t number, const std::string& bytes);
  void accept(std::uint64_t step, std::uint64_t program, const std::string& bytes);
  /// Nothing: its version is not there yet.
  std::optional<std::string> answer_to(const Pull& pull) const;
  const Cell& cell(std::uint64_t number) const;
  std::shared_ptr<const ParameterProgram> program(std::uint64_t number) const;
  void apply_all();
  void apply(std::unique_lock<std::mutex>& lock);
  static void send(Replies replies);

  const std::chrono::milliseconds hold_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string run_, failure_;
  std::uint64_t newest_ = 0;  // the number of the last version
  std::size_t lag_ = 0;
  std::map<std::uint64_t, Cell> cells_;
  std::deque<Version> versions_ = {Version()};
  std::unordered_map<std::uint64_t, std::shared_ptr<const ParameterProgram>> programs_;
  std::map<std::string, Upload, std::less<>> uploads_;  // by sender
  std::map<std::uint64_t, Push> ready_;                 // by step
  std::vector<Pull> held_;
  bool is_over_ = false;
  std::thread applying_;
};

}  // namespace gradus
