/// ParameterStore: the Variables of one parameter server. It applies pushes in the order of steps, so that version k
/// holds the first k steps, keeps the versions that workers may want, and serves them. It answers questions
/// (parameter_questions.h) by gRPC or within one process.
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
#include "gradus/base/rooms.h"
#include "gradus/distribute/messages/bytes_message.h"
#include "gradus/distribute/messages/rpc.h"
#include "gradus/distribute/parameter_servers/parameter_journal.h"
#include "gradus/distribute/parameter_servers/parameter_program.h"

namespace gradus {

class ParameterStore : public RpcHandler {
 public:
  struct Options {
    std::chrono::milliseconds hold{500};     // of a question for a version that is not there yet
    std::filesystem::path checkpoints = {};  // the record of its input, for recovery; empty: none
    std::uint64_t snapshot_steps = 100;      // steps between two full snapshots
  };
  ParameterStore() : ParameterStore(Options()) {}
  /// With checkpoints it is as the one that wrote there last was. DataError where they are damaged.
  explicit ParameterStore(Options options);
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
  /// An upload that a sender has not finished.
  struct Upload {
    std::uint64_t sequence = 0, kind = 0, subject = 0, program = 0;
    std::size_t total = 0;
    std::string bytes;
    bool is_done = false;
  };
  struct Push {
    std::uint64_t number;  // of the program
    std::shared_ptr<const ParameterProgram> program;
    std::vector<Ref<Buffer>> values;
  };
  struct Pull {
    std::uint64_t call, version, program;
    std::size_t offset, length;
    Clock::time_point until;
    Answer answer;
  };

  std::optional<std::string> reply_to(std::uint64_t call, MessageReader reader, const Answer& answer);
  std::string begin(const std::string& run, MessageReader& reader);
  void forget_all(const std::string& run, std::size_t lag);
  std::string add_cells(MessageReader& reader);
  /// True if it is new.
  bool add_cell(std::uint64_t number, const std::string& name, std::string_view spec);
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
  /// The next step; the lock, if there is one, is left meanwhile.
  void apply(std::unique_lock<std::mutex>& lock);
  static Ref<Buffer> buffer_with(std::string_view bytes);
  /// If a worker dies between pushing step k and reporting it, another worker redoes k and needs version k - lag again.
  /// By then steps up to k + lag may have been applied.
  std::size_t most_versions() const { return 2 * lag_ + 2; }

  // parameter_recovery.cpp
  void recover();
  void take_again(MessageReader reader);
  void apply_ready();
  void take_snapshot(std::unique_lock<std::mutex>& lock);
  void write_down(const std::string& written);
  std::string written_begin() const;
  static std::string written(std::uint64_t number, const Cell& cell);
  static std::string written(const Upload& upload);

  const Options options_;
  std::unique_ptr<ParameterJournal> journal_;  // null while it is read, too
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string run_, failure_;
  std::uint64_t newest_ = 0;  // the number of the last version
  std::size_t lag_ = 0;
  std::map<std::uint64_t, Cell> cells_;
  std::deque<Version> versions_ = {Version()};
  std::unordered_map<std::uint64_t, std::shared_ptr<const ParameterProgram>> programs_;
  std::map<std::uint64_t, std::string> program_bytes_;          // to be written down
  std::map<std::string, Upload, std::less<>> uploads_;          // by sender
  std::map<std::uint64_t, std::shared_ptr<const Push>> ready_;  // by step, until it is applied
  std::vector<Pull> held_;
  bool is_over_ = false;
  std::thread applying_;
};

}  // namespace gradus
