/// Meetings of ranks in one process: who comes, who does not belong, what is shared, and who is lost.
#include "gradus/distribute/membership/meeting.h"
#include <gtest/gtest.h>
#include "gradus/base/error.h"
#include "gradus/base/version.h"
#include "gradus/distribute/mirrored/worker_group.h"
#include "tests/errors.h"

namespace gradus::meeting_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Cluster quick(int ranks, int rank, std::chrono::milliseconds timeout = 10s, std::chrono::milliseconds heartbeat = 2s) {
  Cluster cluster = Cluster::simulated(ranks);
  cluster.rank = rank;
  cluster.timeout = timeout;
  cluster.heartbeat = heartbeat;
  return cluster;
}

/// What each rank's body threw.
std::vector<std::string> meet(int ranks, const std::function<void(int rank, std::shared_ptr<MeetingDesk>)>& body,
                              std::chrono::milliseconds timeout = 10s, std::chrono::milliseconds heartbeat = 2s) {
  const auto desk =
      std::make_shared<MeetingDesk>(Meeting::terms(quick(ranks, 0, timeout, heartbeat), {"print", "1.0"}));
  std::vector<std::string> problems(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank, desk);
      } catch (const std::exception& error) { problems[static_cast<std::size_t>(rank)] = error.what(); }
    });
  for (std::thread& thread : threads) thread.join();
  return problems;
}

TEST(Meeting, AllComeAndShare) {
  const auto problems = meet(4, [](int rank, std::shared_ptr<MeetingDesk> desk) {
    Meeting meeting(quick(4, rank), {"print", "1.0"}, desk);
    ASSERT_EQ(meeting.names().size(), 4u);
    expect_says(meeting.names()[2], "rank 2 (");
    EXPECT_TRUE(meeting.is_on_one_host());
    for (const char* topic : {"first", "second", "first"}) {
      const std::string own = std::string(topic) + std::string(1, '\0') + static_cast<char>(0xF0 + rank);
      const auto all = meeting.share(topic, own);
      ASSERT_EQ(all.size(), 4u);
      for (int other = 0; other < 4; ++other)
        EXPECT_EQ(all[static_cast<std::size_t>(other)],
                  std::string(topic) + std::string(1, '\0') + static_cast<char>(0xF0 + other));
    }
    meeting.check();
    meeting.leave();
  });
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST(Meeting, OneRankNeedsNobody) {
  Cluster alone;
  alone.size = 1;
  Meeting meeting(alone, {"print", "1.0"});
  EXPECT_EQ(meeting.share("topic", "value"), std::vector<std::string>{"value"});
  meeting.leave();
}

TEST(Meeting, WhatDoesNotBelongTogetherEndsForAll) {
  struct Row {
    int ranks, rank, generation;
    const char *fingerprint, *version, *says;
  };
  const Row rows[] = {
      {2, 1, 1, "other", "1.0", "the fingerprint of program, model and strategy is other there and print at rank 0"},
      {2, 1, 1, "print", "1.1", "the version of Gradus is 1.1 there and 1.0 at rank 0"},
      {3, 1, 1, "print", "1.0", "the number of ranks is 3 there and 2 at rank 0"},
      {2, 1, 2, "print", "1.0", "the generation of the group is 2 there and 1 at rank 0"},
      {2, 0, 1, "print", "1.0", "two processes say that they are rank 0: rank 0 ("},
  };
  for (const Row& row : rows) {
    const auto begin = Clock::now();
    const auto problems = meet(2, [&](int rank, std::shared_ptr<MeetingDesk> desk) {
      if (rank == 0) Meeting(quick(2, 0), {"print", "1.0"}, desk);
      else Meeting(quick(row.ranks, row.rank), {row.fingerprint, row.version, row.generation}, desk);
    });
    for (const std::string& problem : problems) expect_says(problem, row.says);
    EXPECT_LT(Clock::now() - begin, 5s);
  }
}

/// The introduction of a rank contains the number of the numeric contract: with another one, its sums have other bits.
TEST(Meeting, RanksOfAnotherNumericContractAreRefused) {
  const Introduction ours = detail::WorkerGroup::introduction(quick(2, 0), 1, 2, {});
  const std::string number = text("numeric contract ", numeric_contract), other = "numeric contract 1";
  Introduction theirs = ours;
  const auto at = theirs.version.find(number);
  ASSERT_NE(at, std::string::npos) << ours.version;
  theirs.version.replace(at, number.size(), other);
  const auto desk = std::make_shared<MeetingDesk>(Meeting::terms(quick(2, 0), ours));
  const auto problems = meet(
      2, [&](int rank, std::shared_ptr<MeetingDesk>) { Meeting(quick(2, rank), rank == 0 ? ours : theirs, desk); });
  for (const std::string& problem : problems) {
    expect_says(problem, "the version of Gradus is ");
    expect_says(problem, other + ") there and ");
    expect_says(problem, number + ") at rank 0");
  }
}

TEST(Meeting, WhoDoesNotComeIsNamed) {
  testing::internal::CaptureStderr();
  const auto problems = meet(
      3,
      [](int rank, std::shared_ptr<MeetingDesk> desk) {
        if (rank != 1) Meeting(quick(3, rank, 300ms, 80ms), {"print", "1.0"}, desk);
      },
      300ms, 80ms);
  const std::string said = testing::internal::GetCapturedStderr();
  for (const std::size_t rank : {0u, 2u}) {
    expect_says(problems[rank], "3 ranks meet at this process; missing after ");
    expect_says(problems[rank], " s: rank 1");
  }
  expect_says(said, "gradus: rank 0 waits: 3 ranks meet at this process; missing after");
}

TEST(Meeting, WhoDoesNotComeIsNamedWithItsAddress) {
  Cluster cluster = quick(2, 0, 200ms, 80ms);
  cluster.size = 0;
  cluster.workers = {"node0:2222", "node1:2223"};
  const auto desk = std::make_shared<MeetingDesk>(Meeting::terms(cluster, {"print", "1.0"}));
  testing::internal::CaptureStderr();
  const std::string problem = error_of<Unavailable>([&] { Meeting(cluster, {"print", "1.0"}, desk); });
  expect_says(problem, "2 ranks meet at this process; missing after ");
  expect_says(problem, " s: rank 1 at node1:2223: it was not started");
  expect_says(testing::internal::GetCapturedStderr(), "rank 1 at node1:2223\n");
}

TEST(Meeting, WhoFailsIsToldToAll) {
  const auto problems = meet(3, [](int rank, std::shared_ptr<MeetingDesk> desk) {
    Meeting meeting(quick(3, rank, 10s, 5s), {"print", "1.0"}, desk);
    std::mutex mutex;
    std::condition_variable told;
    std::string heard;
    meeting.on_failure([&](const std::string& why) {
      const std::lock_guard lock(mutex);
      heard = why;
      told.notify_all();
    });
    if (rank == 1) throw InvalidArgument("no such file");
    std::unique_lock lock(mutex);
    EXPECT_TRUE(told.wait_for(lock, 8s, [&] { return !heard.empty(); }));
    expect_says(heard, "rank 1 (");
    expect_says(heard, "it has ended before its work was done");
    lock.unlock();
    meeting.check();
  });
  EXPECT_EQ(problems[1], "no such file");
  for (const std::size_t rank : {0u, 2u}) expect_says(problems[rank], "has ended before its work was done");
}

/// A desk of two whose rank 1 is a hand that writes its own questions.
class Desk {
 public:
  explicit Desk(std::chrono::milliseconds heartbeat = 5s)
      : desk_({.ranks = 2, .fingerprint = "print", .version = "1.0", .heartbeat = heartbeat, .report = heartbeat}) {}
  std::string ask(const std::string& question, std::chrono::milliseconds patience = 3s) {
    const auto client = in_process_client(desk_);
    return client->ask(question, Clock::now() + patience, false).value_or("nothing");
  }
  static std::string join(int rank) {
    return text(
        R"({"kind":"join","rank":)", rank, R"(,"incarnation":"i)", rank,
        R"(","protocol":1,"version":"1.0","fingerprint":"print","generation":1,"ranks":2,"host":"h","process":1})");
  }
  void join_both() {
    std::thread other([&] { expect_says(ask(join(1)), "all here"); });
    expect_says(ask(join(0)), "all here");
    other.join();
  }
  MeetingDesk& get() { return desk_; }

 private:
  MeetingDesk desk_;
};

TEST(MeetingDesk, QuestionsThatAreNoneGetAnAnswer) {
  const std::pair<std::string, std::string> rows[] = {
      {"", "this is no JSON"},
      {"[]", "the value is a list"},
      {"{}", "`kind` is missing"},
      {R"({"kind":"join","incarnation":"","rank":0})", "`incarnation` is empty"},
      {R"({"kind":"join","incarnation":"x","rank":"0"})", "`rank` is a string"},
      {R"({"kind":"join","incarnation":"x","rank":0})", "`host` is missing"},
      {R"({"kind":"beat","incarnation":"x","rank":0})", "rank 0 asks the meeting, and has not joined it"},
      {R"({"kind":"beat","incarnation":"x","rank":-7})", "rank -7 asks"},
      {R"({"kind":"share","incarnation":"x","rank":99})", "rank 99 asks"},
      {text(R"({"kind":")", std::string(17, 'k'), R"("})"), "at most 16"},
      {std::string(100'000, '['), "nested more than 200 deep"},
      {R"({"kind":"join","incarnation":"x","rank":5,"protocol":1,"version":"1.0","fingerprint":"print","generation":1,)"
       R"("ranks":2,"host":"h","process":1})",
       "is none of the 2 ranks"},
      {R"({"kind":"join","incarnation":"x","rank":0,"protocol":9,"host":"h","process":1})",
       "the protocol of the meeting"},
  };
  for (const auto& [question, says] : rows) expect_says(Desk().ask(question), says);
  Desk desk;
  desk.join_both();
  expect_says(desk.ask(R"({"kind":"dance","incarnation":"i1","rank":1})"), "which there is not");
  expect_says(desk.ask(R"({"kind":"share","incarnation":"i1","rank":1,"topic":"t","value":")" +
                       std::string(2 * MeetingDesk::most_shared_bytes + 1, 'a') + "\"}"),
              "at most 32768");
  expect_says(desk.ask(R"({"kind":"beat","incarnation":"i1","rank":0,"doing":""})"), "has not joined it");
}

TEST(MeetingDesk, WhoseConnectionEndsIsLost) {
  Desk desk;
  desk.join_both();
  std::string heard;
  std::thread other([&] { heard = desk.ask(R"({"kind":"beat","incarnation":"i0","rank":0,"doing":""})"); });
  desk.ask(R"({"kind":"beat","incarnation":"i1","rank":1,"doing":"step 7"})", 50ms);  // gives up: as if it had ended
  other.join();
  expect_says(heard, "rank 1 (h, process 1) is gone: its connection has ended");
  expect_says(heard, "step 7");
}

TEST(MeetingDesk, WhoIsSilentIsLost) {
  Desk desk(200ms);
  desk.join_both();
  std::string heard = "alive";
  const auto begin = Clock::now();
  while (heard.find("alive") != std::string::npos && Clock::now() - begin < 8s)
    heard = desk.ask(R"({"kind":"beat","incarnation":"i0","rank":0,"doing":""})");
  expect_says(heard, "rank 1 (h, process 1) has given no sign of life for 0.");
}

/// A late rank receives the reason why the others have failed; a rank that joins again forms the next group.
TEST(MeetingDesk, WhoComesAgainIsToldThatThisIsTheMeetingBefore) {
  const auto again = [](std::string question) { return question.replace(question.find(":\"i") + 2, 1, "again"); };
  Desk desk;
  desk.join_both();
  desk.ask(R"({"kind":"fail","incarnation":"i1","rank":1,"why":"no file"})");
  for (const int rank : {0, 1}) {
    expect_says(desk.ask(again(Desk::join(rank))), R"("kind":"before")");
    expect_says(desk.ask(Desk::join(rank)), R"("kind":"failed")");
  }
  Desk closed;  // closed before it was complete
  closed.get().close("rank 0 has ended");
  expect_says(closed.ask(Desk::join(1)), R"("kind":"failed")");
  expect_says(closed.ask(Desk::join(1)), R"("kind":"failed")");  // its answer was lost
  expect_says(closed.ask(again(Desk::join(1))), R"("kind":"before")");
}

TEST(MeetingDesk, WhoBeatsIsToldAtOnceWhoHasLeft) {
  Desk desk(5s);
  desk.join_both();
  desk.ask(R"({"kind":"leave","incarnation":"i1","rank":1})");
  const auto begin = Clock::now();
  expect_says(desk.ask(R"({"kind":"beat","incarnation":"i0","rank":0,"doing":"","left":0})"),
              R"("left":[{"did":"","rank":1}])");
  EXPECT_LT(Clock::now() - begin, 2s);
}

TEST(MeetingDesk, WhoHasLeftIsNotWatched) {
  Desk desk(100ms);
  desk.join_both();
  desk.ask(R"({"kind":"leave","incarnation":"i1","rank":1})");
  const auto begin = Clock::now();
  while (Clock::now() - begin < 500ms)
    expect_says(desk.ask(R"({"kind":"beat","incarnation":"i0","rank":0,"doing":""})"), "alive");
  desk.get().close("all is done", true);
  expect_says(desk.ask(R"({"kind":"beat","incarnation":"i0","rank":0,"doing":""})"), R"("kind":"over")");
}

}  // namespace
}  // namespace gradus::meeting_test
