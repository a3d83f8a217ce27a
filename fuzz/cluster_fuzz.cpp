/// Fuzz target: clusters of JSON, questions at the meeting's desk, and to rank 1 about commits. A cluster that is read
/// can be described; all else is an Error, and every question gets one answer.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>
#include "gradus/base/error.h"
#include "gradus/distribute/cluster.h"
#include "gradus/distribute/membership/commit_witness.h"
#include "gradus/distribute/membership/meeting_desk.h"

namespace {

/// Asks questions, and counts their answers.
class Asker {
 public:
  explicit Asker(gradus::RpcHandler& handler) : handler_(handler) {}
  void ask(std::string_view bytes) {
    answers_.push_back(std::make_shared<std::atomic<int>>(0));
    handler_.ask(answers_.size(), bytes, [count = answers_.back()](std::string_view) { ++*count; });
  }
  /// The connection of who asked last ends, unless there is an answer.
  void leave() {
    if (answers_.empty() || *answers_.back() > 0) return;
    handler_.left(answers_.size());
    if (*answers_.back() == 0) ++*answers_.back();
  }
  void expect_answers() const {
    for (const auto& count : answers_)
      if (*count != 1) std::abort();
  }

 private:
  gradus::RpcHandler& handler_;
  std::vector<std::shared_ptr<std::atomic<int>>> answers_;
};

constexpr std::string_view joining =
    R"({"kind":"join","incarnation":"i0","rank":0,"protocol":1,"version":"","fingerprint":"","generation":1,"ranks":2,)"
    R"("host":"h","process":1})";

/// Questions of two ranks that have joined, one a line. After one that is empty, who asked before is gone.
void ask_joined(std::string_view lines) {
  gradus::MeetingDesk desk({.ranks = 2});
  Asker asker(desk);
  for (const char rank : {'0', '1'}) {
    std::string question(joining);
    question[question.find("i0") + 1] = rank;
    question[question.find("\"rank\":") + 7] = rank;
    asker.ask(question);
  }
  asker.expect_answers();
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.empty()) asker.leave();
    else asker.ask(line);
    if (line.size() % 2 == 1) desk.decide(line.size());
  }
  desk.close("all is done", true);
  asker.expect_answers();
}

/// Of a rank that has not joined.
void ask_first(std::string_view question) {
  gradus::MeetingDesk desk({.ranks = 2});
  Asker asker(desk);
  asker.ask(question);
  asker.leave();
  asker.expect_answers();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string written(reinterpret_cast<const char*>(data), size);
  for (const std::string_view source : {"GRADUS_CLUSTER", "TF_CONFIG", "SLURM_STEP_NODELIST"}) {
    try {
      const gradus::Cluster read = gradus::cluster_of([&](std::string_view name) {
        if (name == source) return written;
        if (source[0] != 'S') return std::string();
        return std::string(name == "SLURM_PROCID" ? "0" : name == "SLURM_STEP_NUM_TASKS" ? "2" : "");
      });
      if (read.describe().empty()) std::abort();
    } catch (const gradus::Error&) {}
  }
  ask_first(written);
  ask_joined(written);
  gradus::CommitWitness witness(3);
  bool is_answered = false;
  witness.ask(1, written, [&](std::string_view) { is_answered = true; });
  if (!is_answered) std::abort();
  try {
    gradus::CommitWitness::decided(written);
  } catch (const gradus::DataError&) {}
  return 0;
}
