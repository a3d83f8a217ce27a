/// CommitWitness: rank 1's record of commits, in case rank 0 ends while it announces one. Rank 0 tells rank 1 first,
/// and rank 1 tells the others. A rank that misses a commit and cannot reach rank 0 asks rank 1.
///
/// A rank asks {"kind": "here"}, or {"kind": "last commit", "rank": 2}. The answers are {"kind": "here"}, {"decided":
/// 7}, or {"kind": "failed", "why": "..."}.
#pragma once
#include <condition_variable>
#include <mutex>
#include <set>
#include "gradus/distribute/messages/rpc.h"

namespace gradus {

class CommitWitness final : public RpcHandler {
 public:
  explicit CommitWitness(int ranks) : ranks_(ranks) {}

  /// Rank 0 has announced commit `number`. False if that comes too late: a rank has asked before, and heard that there
  /// is none.
  bool note(std::uint64_t number);
  /// The last commit. There is no other one from now on.
  std::uint64_t close();
  /// Until all but ranks 0 and 1 have asked for the last commit, or the deadline.
  void wait_until_asked(Deadline deadline);

  void ask(std::uint64_t call, std::string_view bytes, Answer answer) override;
  void left(std::uint64_t) override {}
  void refused(std::string_view peer) override;

  /// The questions.
  static std::string greeting();
  static std::string question(int rank);
  /// The last commit that an answer names, the desk's at the end, too; DataError if it names none.
  static std::uint64_t decided(std::string_view answer);

 private:
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t decided_ = 0;
  bool is_closed_ = false;
  std::set<int> asked_;  // which ranks
};

}  // namespace gradus
