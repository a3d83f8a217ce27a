#include "gradus/distribute/membership/commit_witness.h"
#include "gradus/distribute/cluster/json_fields.h"

namespace gradus {
namespace {

constexpr std::string_view of_question = "a question about the last commit",
                           of_answer = "an answer about the last commit";

}  // namespace

bool CommitWitness::note(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return decided_ >= number;
  decided_ = number;
  return true;
}

std::uint64_t CommitWitness::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  return decided_;
}

void CommitWitness::wait_until_asked(Deadline deadline) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, [&] { return static_cast<int>(asked_.size()) >= ranks_ - 2; });
}

void CommitWitness::ask(std::uint64_t, std::string_view bytes, Answer answer) {
  std::string reply;
  try {
    const nlohmann::json read = object(bytes, of_question);
    const std::string kind = string(field(read, of_question, "kind"), of_question, "kind");
    if (kind == "here") {
      reply = written({{"kind", "here"}});
    } else {
      require<DataError>(kind == "last commit", of_question, ": `kind` is \"", kind.substr(0, 16),
                         "\", which there is not");
      const int rank = integer(field(read, of_question, "rank"), of_question, "rank");
      require<DataError>(rank >= 0 && rank < ranks_, of_question, ": `rank` is ", rank, ", expected 0 .. ", ranks_ - 1);
      reply = written({{"decided", close()}});
      const std::lock_guard lock(mutex_);
      if (rank > 1) asked_.insert(rank);
    }
  } catch (const DataError& error) { reply = written({{"kind", "failed"}, {"why", error.what()}}); }
  changed_.notify_all();
  answer(reply);
}

void CommitWitness::refused(std::string_view peer) { notice_turned_away("rank 1", peer); }

std::string CommitWitness::greeting() { return written({{"kind", "here"}}); }
std::string CommitWitness::question(int rank) { return written({{"kind", "last commit"}, {"rank", rank}}); }

std::uint64_t CommitWitness::decided(std::string_view answer) {
  const nlohmann::json read = object(answer, of_answer);
  const nlohmann::json& number = field(read, of_answer, "decided");
  if (!number.is_number_unsigned()) throw unexpected(of_answer, "decided", "a number of a commit", number);
  return number.get<std::uint64_t>();
}

}  // namespace gradus
