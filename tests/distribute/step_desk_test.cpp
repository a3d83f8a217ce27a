/// The desk of steps, asked as processes ask it.
#include "gradus/distribute/parameter_servers/step_desk.h"
#include <gtest/gtest.h>
#include <array>
#include <thread>
#include "gradus/base/version.h"
#include "gradus/distribute/parameter_servers/step_member.h"

namespace gradus::step_desk_test {
namespace {

/// A desk of one rank and one server, both of which have joined.
class DeskOfSteps : public testing::Test {
 protected:
  DeskOfSteps() {
    for (const std::uint64_t seat : {0, 1}) {
      MessageWriter join = question(StepQuestion::join, seat);
      ask(join.integer(1).integer(1).words("").words("").words("host").integer(7));
    }
  }
  static MessageWriter question(StepQuestion kind, std::uint64_t seat = 0) {
    MessageWriter written;
    written.integer(static_cast<std::uint64_t>(kind)).integer(seat).words(seat == 0 ? "worker" : "server");
    return written;
  }
  /// The kind of the answer; nothing where it is held.
  std::optional<StepAnswer> ask(MessageWriter& written) {
    answer_.clear();
    desk_.ask(++call_, written.take(), [this](std::string_view bytes) { answer_ = bytes; });
    if (answer_.empty()) return {};
    MessageReader reader(answer_, "an answer");
    return static_cast<StepAnswer>(reader.size(static_cast<std::size_t>(StepAnswer::result), "its kind"));
  }
  /// All of it is done, each step with a loss of 1 for each of 2 examples.
  void do_steps(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t k = from; k < to; ++k) {
      desk_.open(k, k, 7);
      MessageWriter done = question(StepQuestion::done);
      ask(done.integer(k).integer(1).number(2).number(2));
    }
  }
  /// The weight of the loss of a round; -1: it is refused.
  double weight_of(std::uint64_t from, std::uint64_t to) {
    MessageWriter round = question(StepQuestion::round);
    if (ask(round.integer(from).integer(to)) != StepAnswer::result) return -1;
    MessageReader reader(answer_, "an answer");
    for (int i = 0; i < 3; ++i) reader.integer();  // its kind, the count of what is done, whether there is a loss
    (void)reader.number();
    return reader.number();
  }

  StepDesk desk_{{.ranks = 1, .servers = 1, .is_watching = false}};
  std::string answer_;
  std::uint64_t call_ = 0;
};

TEST_F(DeskOfSteps, ForgetsOldStepsButNotWhatTheirRoundsGave) {
  constexpr std::uint64_t round = 1000, rounds = 200, kept = 1 << 16;
  for (std::uint64_t k = 0; k < rounds; ++k) {
    do_steps(k * round, (k + 1) * round);
    EXPECT_EQ(weight_of(k * round, (k + 1) * round), 2.0 * round);
  }
  EXPECT_LE(desk_.steps_kept(), kept + 2 * round);
  EXPECT_GE(desk_.steps_kept(), kept);
  EXPECT_EQ(weight_of(0, round), 2.0 * round) << "as a worker asks that begins again";
  EXPECT_EQ(weight_of(rounds * round, rounds * round), 0);
  EXPECT_EQ(weight_of(0, round / 2), -1) << "no such round was ever asked for";
}

TEST_F(DeskOfSteps, KeepsTheStepsOfALongRound) {
  constexpr std::uint64_t round = (1 << 16) + 5000;
  do_steps(0, round);
  EXPECT_EQ(weight_of(round, round), 0) << "waits for all that is done so far";
  do_steps(round, 2 * round);
  EXPECT_EQ(weight_of(0, 2 * round), 4.0 * round);
}

/// A rank that has left says nothing any more; the values of the others stay theirs.
TEST(StepMembers, AgreeByRankWhereOneHasLeft) {
  using Values = std::vector<std::uint64_t>;
  StepDesk desk({.ranks = 3, .servers = 0, .version = std::string(version_and_contract()), .is_watching = false});
  std::array<Values, 3> heard;
  std::vector<std::jthread> ranks;
  for (const int rank : {0, 1, 2})
    ranks.emplace_back([&, rank] {
      Cluster cluster = Cluster::simulated(3);
      cluster.rank = rank;
      StepMember member(in_process_client(desk), cluster, static_cast<std::size_t>(rank), text("incarnation ", rank));
      member.join("");
      if (rank != 1) heard[static_cast<std::size_t>(rank)] = member.agree(5 + static_cast<std::uint64_t>(rank));
      member.leave();
    });
  ranks.clear();
  EXPECT_EQ(heard[0], (Values{5, 5, 7}));
  EXPECT_EQ(heard[2], (Values{5, 7, 7}));
}

}  // namespace
}  // namespace gradus::step_desk_test
