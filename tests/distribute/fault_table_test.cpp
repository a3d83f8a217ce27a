/// The table of faults of docs/distribution.md: each fault at every message of a small training of three ranks. It ends
/// with the bits of the undisturbed training, or with an error on every rank that says who and what, within the
/// deadline; and the newest checkpoint is whole. A step is committed by all or by none.
#include <gtest/gtest.h>
#include <condition_variable>
#include <map>
#include <set>
#include <span>
#include <thread>
#include "tests/distribute/checked_transport.h"
#include "tests/distribute/faulty_transport.h"
#include "gradus/distribute/membership/meeting_desk.h"
#include "gradus/gradus.h"
#include "gradus/ops/random_state.h"
#include "tests/distribute/grids.h"
#include "tests/distribute/strategies_as_threads.h"
#include "tests/distribute/trained.h"
#include "tests/errors.h"
#include "tests/test_directory.h"
#include "tests/train/failing_calls.h"

namespace gradus::fault_table_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int ranks = 3, steps = 2;

/// What a message of the victim is about. Those of the meeting are questions to rank 0.
enum class Phase { values, fingerprint, sums, vote, gather, agreement };
std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 6> names = {"values", "fingerprint", "sums", "vote", "gather", "agreement"};
  return names[static_cast<std::size_t>(phase)];
}

/// In the order in which a rank sends them: to each of the others one; of a vote the decision by rank 0 to rank 1, and
/// by rank 1 to each.
std::vector<Phase> messages_of(int rank) {
  std::vector<Phase> all;
  const auto add = [&](Phase phase, int count) { all.insert(all.end(), static_cast<std::size_t>(count), phase); };
  for (int step = 1; step <= steps; ++step) {
    if (step == 1) add(Phase::values, 2 * (ranks - 1));  // for the batch, then for the ranks' Variables
    if (step == 1) add(Phase::fingerprint, ranks - 1);
    add(Phase::sums, ranks - 1);
    add(Phase::vote, ranks - 1);
    if (rank == 0) add(Phase::vote, 1);
    if (rank == 1) add(Phase::vote, ranks - 1);
    add(Phase::gather, ranks - 1);
    add(Phase::agreement, ranks - 1);
  }
  return all;
}

/// The training: a step, the agreement of all about its end, and a checkpoint by rank 0.
struct Training {
  Sequential model{Dense(4, tanh), Dense(1)};
  Adam optimizer{{.learning_rate = 1e-2}};
  Checkpoints checkpoints;
  explicit Training(const std::filesystem::path& folder) : checkpoints({.directory = folder}, model, optimizer) {
    model.build({f32, {any_size, 3}});
    optimizer.build(model.trainable_variables());
  }
  /// Loss, backward, update; gives the prediction of all ranks.
  std::function<Tensor(Tensor)> body = [this](const Tensor& x) {
    GradientTape tape;
    const Tensor y = model(x, training);
    const Loss loss = Loss::mean(square(y - reduce_sum(x, {.axis = {1}, .keepdims = true})));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return y;
  };
  Function<std::function<Tensor(Tensor)>> step = function(body);
  /// Of the model, then of the optimizer, unless each rank has its part of that.
  std::vector<Tensor> values(bool is_divided = false) const {
    const Variables all = is_divided ? model.variables() : model.variables() + optimizer.variables();
    return values_of(all, 0).variables;
  }
};

/// How far a rank came, and with which values.
struct Left {
  int steps_done = 0;
  std::vector<Tensor> values;
  std::string problem = {};
};

struct Outcome {
  std::vector<Left> ranks;
  double seconds = 0;
  int sent = 0;  // messages of the victim
};

struct Case {
  Fault::Kind kind = Fault::Kind::delay;
  int victim = 1;
  int message = -1;         // of the victim
  bool is_divided = false;  // the state of the optimizer; without checkpoints
  bool kills = false;       // a strike; else it stops
  bool ends_desk = false;   // the desk of the meeting ends with it, as if rank 0 were killed
  int question = -1;        // of rank 1 at the meeting
  std::chrono::milliseconds timeout{20'000};
  std::function<void()> before_checkpoint = {};
};

/// A desk at which one question of the victim is lost, comes late, twice or damaged.
class FaultyDesk final : public MeetingDesk {
 public:
  FaultyDesk(MeetingTerms terms, Fault::Kind kind, int question)
      : MeetingDesk(std::move(terms)), kind_(kind), left_(question) {}
  ~FaultyDesk() override {
    for (std::thread& each : late_) each.join();
  }
  void ask(std::uint64_t call, std::string_view bytes, Answer answer) override {
    const bool is_hit = bytes.find("\"rank\":1") != std::string_view::npos &&
                        bytes.find("\"beat\"") == std::string_view::npos && left_-- == 0;
    if (!is_hit) return MeetingDesk::ask(call, bytes, std::move(answer));
    std::string copy(bytes);
    switch (kind_) {
      case Fault::Kind::drop: return;
      case Fault::Kind::delay:
        late_.emplace_back([this, call, copy, answer] {
          std::this_thread::sleep_for(30ms);
          MeetingDesk::ask(call, copy, answer);
        });
        return;
      case Fault::Kind::duplicate:
        MeetingDesk::ask(call + (std::uint64_t{1} << 40), copy, [](std::string_view) {});
        return MeetingDesk::ask(call, bytes, std::move(answer));
      case Fault::Kind::corrupt: copy[copy.size() / 2] ^= 0x10; return MeetingDesk::ask(call, copy, std::move(answer));
      case Fault::Kind::strike: return answer("");
    }
  }

 private:
  const Fault::Kind kind_;
  std::atomic<int> left_;
  std::vector<std::thread> late_;
};

/// A desk that can end as the process of rank 0 does, after the meeting: ranks that wait for an answer of the meeting
/// itself get it first.
class MortalDesk final : public MeetingDesk {
 public:
  using MeetingDesk::MeetingDesk;
  void ask(std::uint64_t call, std::string_view bytes, Answer answer) override {
    const bool is_beat = bytes.find("\"beat\"") != std::string_view::npos;
    {
      const std::lock_guard lock(mutex_);
      require<Unavailable>(!has_ended_, "it was killed");
      if (is_beat) open_.push_back(answer);
      else ++meeting_;
    }
    if (is_beat) return MeetingDesk::ask(call, bytes, std::move(answer));
    MeetingDesk::ask(call, bytes, [this, answer = std::move(answer)](std::string_view given) {
      answer(given);
      const std::lock_guard lock(mutex_);
      --meeting_;
      changed_.notify_all();
    });
  }
  void die() {
    std::vector<Answer> open;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, 5s, [&] { return meeting_ == 0; });
      has_ended_ = true;
      open.swap(open_);
    }
    for (const Answer& each : open) each("");  // who has an answer takes no second one
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> open_;  // to signs of life
  int meeting_ = 0;           // questions of the meeting itself that are not answered
  bool has_ended_ = false;
};

const Tensor& inputs() {
  static const Tensor x = random::normal({steps * 12, 3}, {.seed = 1});
  return x;
}

class FaultTable : public testing::Test {
 protected:
  void SetUp() override {
    undisturbed_ = run({});
    for (const Left& left : undisturbed_.ranks) ASSERT_EQ(left.problem, "");
  }

  Outcome run(const Case& fault) {
    static int runs = 0;
    folder_.emplace(text("fault_table_", runs++));
    Outcome outcome{std::vector<Left>(ranks)};
    RanksOfTest of_test{.ranks = ranks,
                        .micro_shards = 4,
                        .shard_optimizer = fault.is_divided,
                        .timeout = fault.timeout,
                        .heartbeat = fault.timeout / 3};
    std::array<FaultyTransport*, ranks> faulty{};
    std::shared_ptr<MortalDesk> mortal;
    if (fault.ends_desk)
      of_test.make_desk = [&](MeetingTerms terms) { return mortal = std::make_shared<MortalDesk>(std::move(terms)); };
    of_test.wrap = [&](int rank, std::unique_ptr<Transport> inner) -> std::unique_ptr<Transport> {
      auto wrapped = std::make_unique<FaultyTransport>(std::move(inner), std::vector<Fault>{});
      FaultyTransport* const own = faulty[static_cast<std::size_t>(rank)] = wrapped.get();
      if (rank == fault.victim && fault.message >= 0) {
        Fault made{.kind = fault.kind, .message = fault.message};
        if (fault.kind == Fault::Kind::strike) {
          if (fault.kills) made.strike = [] { throw Error("killed"); };
          else made.strike = [own] { own->stop(); };
        }
        if (fault.ends_desk)
          made.strike = [&, strike = std::move(made.strike)] {
            mortal->die();
            if (strike) strike();
          };
        own->set(made);
      }
      if (fault.kind == Fault::Kind::corrupt) return std::make_unique<CheckedTransport>(std::move(wrapped));
      return wrapped;
    };
    if (fault.question >= 0)
      of_test.make_desk = [&](MeetingTerms terms) {
        return std::make_shared<FaultyDesk>(std::move(terms), fault.kind, fault.question);
      };
    const auto begin = Clock::now();
    const auto problems = run_on_ranks(of_test, [&](const Strategy& strategy, int rank) {
      Left& left = outcome.ranks[static_cast<std::size_t>(rank)];
      Training job(folder_->path());
      const auto keep = [&] { left.values = job.values(fault.is_divided); };
      try {
        for (int number = 1; number <= steps; ++number) {
          strategy.run(job.step, inputs().rows(12 * (number - 1), 12 * number));
          check(!strategy.any(false), "nobody asks to stop");
          left.steps_done = number;
          if (rank == 0 && fault.before_checkpoint) fault.before_checkpoint();
          if (rank == 0 && !fault.is_divided) job.checkpoints.save(number);
        }
        if (rank == fault.victim) {
          outcome.sent = faulty[static_cast<std::size_t>(rank)]->sent();
          faulty[static_cast<std::size_t>(rank)]->send_late();
        }
      } catch (...) {
        keep();
        throw;
      }
      keep();
    });
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (std::size_t rank = 0; rank < ranks; ++rank) outcome.ranks[rank].problem = problems[rank];
    return outcome;
  }

  /// Where the machine is so busy that the ranks do not even meet within a short deadline, they get a longer one.
  Outcome run_in_time(Case fault) {
    for (;; fault.timeout *= 4) {
      Outcome outcome = run(fault);
      const bool have_begun = std::ranges::none_of(outcome.ranks, [](const Left& left) { return left.values.empty(); });
      if (have_begun || fault.timeout > 1s) return outcome;
    }
  }

  /// The number of the step after which these are the values; -1: of none.
  int step_of(const std::vector<Tensor>& values) {
    for (const auto& [number, known] : states())
      if (known.size() >= values.size() &&
          std::ranges::equal(std::span(known).first(values.size()), values,
                             [](const Tensor& a, const Tensor& b) { return bitwise_equal(a, b); }))
        return number;
    return -1;
  }
  /// What one process has after each step. It stays, so that ranks find what it has compiled.
  struct OneProcess {
    std::uint64_t random = random_state_of(5);
    const SeedScope seeds{random};
    const TestDirectory nothing{"fault_table_states"};
    Training job{nothing.path()};
    const MirroredStrategy strategy{{.devices = {cpu(0)}, .micro_shards = 4}};
    std::map<int, std::vector<Tensor>> states{{0, job.values()}};
    OneProcess() {
      for (int number = 1; number <= steps; ++number) {
        strategy.run(job.step, inputs().rows(12 * (number - 1), 12 * number));
        states[number] = job.values();
      }
    }
  };
  static std::unique_ptr<OneProcess> one_process_;
  static void SetUpTestSuite() {
    inputs().observed();
    one_process_ = std::make_unique<OneProcess>();
  }
  static void TearDownTestSuite() { one_process_.reset(); }
  static const std::map<int, std::vector<Tensor>>& states() { return one_process_->states; }

  /// The newest checkpoint is whole, and that of a step.
  void expect_checkpoint(int at_least, const std::string& what) {
    Training job(folder_->path());
    const auto restored = job.checkpoints.restore();
    const int number = restored ? static_cast<int>(restored->step) : 0;
    EXPECT_GE(number, at_least) << what;
    if (restored) { EXPECT_EQ(step_of(job.values()), number) << what; }
  }

  void expect_undisturbed(const Outcome& outcome, const std::string& what) {
    for (const Left& left : outcome.ranks) {
      EXPECT_EQ(left.problem, "") << what;
      EXPECT_EQ(left.steps_done, steps) << what;
      EXPECT_EQ(step_of(left.values), steps) << what;
    }
    expect_checkpoint(steps, what);
  }

  /// Every rank says what is wrong, and one says `word`; and all have the values after the same step, but for rank 0
  /// where it was killed. A rank whose last message is lost does not know.
  void expect_ended(const Outcome& outcome, const Case& fault, const std::string& word, const std::string& what) {
    const bool is_last = messages_of(fault.victim).size() - static_cast<std::size_t>(fault.message) < ranks;
    std::vector<int> committed;
    std::string all;
    for (std::size_t rank = fault.ends_desk ? 1 : 0; rank < ranks; ++rank) {
      const Left& left = outcome.ranks[rank];
      EXPECT_TRUE(!left.problem.empty() || (is_last && left.steps_done == steps)) << what;
      all += left.problem + "\n";
      if (left.values.empty()) continue;  // it has not begun
      committed.push_back(step_of(left.values));
      EXPECT_GE(committed.back(), 0) << what;
    }
    const bool has_left = is_last && all.find(" has left in order") != std::string::npos;
    EXPECT_TRUE(has_left || all.find(word) != std::string::npos) << what << "\n" << all;
    ASSERT_FALSE(committed.empty()) << what << "\n" << all;
    EXPECT_EQ(std::ranges::count(committed, committed[0]), std::ssize(committed)) << what << "\n" << all;
    EXPECT_LT(outcome.seconds, 10) << what;
    expect_checkpoint(std::max(0, outcome.ranks[0].steps_done), what);
  }

  Outcome undisturbed_;
  std::optional<TestDirectory> folder_;
};

std::unique_ptr<FaultTable::OneProcess> FaultTable::one_process_;

/// Each message of rank 1, and of rank 0, which decides.
void at_each_message(const std::function<void(int victim, int message, const std::string& where)>& visit) {
  for (const int victim : {1, 0}) {
    const std::vector<Phase> messages = messages_of(victim);
    for (std::size_t i = 0; i < messages.size(); ++i)
      visit(victim, static_cast<int>(i), text(" of message ", i, " of rank ", victim, ", ", name_of(messages[i])));
  }
}

/// The same where a fault takes as long as a deadline: every other message, of each phase and step one, or all.
void at_many_messages(int first, const std::function<void(int victim, int message, const std::string& where)>& visit) {
  at_each_message([&](int victim, int message, const std::string& where) {
    if (takes_whole_grids() || (first + victim + message) % 2 == 0) visit(victim, message, where);
  });
}

TEST_F(FaultTable, ListsEachMessage) {
  expect_undisturbed(undisturbed_, "undisturbed");
  for (const int victim : {0, 1}) EXPECT_EQ(run({.victim = victim}).sent, std::ssize(messages_of(victim)));
}

TEST_F(FaultTable, DelayedAndDoubledMessagesChangeNothing) {
  at_each_message([&](int victim, int message, const std::string& where) {
    const auto kind = (message + victim) % 2 == 0 ? Fault::Kind::delay : Fault::Kind::duplicate;
    expect_undisturbed(run({kind, victim, message}), "delay or double" + where);
  });
}

TEST_F(FaultTable, DamagedMessagesAreNoticed) {
  at_each_message([&](int victim, int message, const std::string& where) {
    const int receipt = message % 2;  // in the message, or in its receipt
    const Outcome outcome = run({Fault::Kind::corrupt, victim, 2 * message + receipt});
    expect_ended(outcome, {Fault::Kind::corrupt, victim, message}, "damaged on their way", "damage" + where);
  });
}

TEST_F(FaultTable, ALostMessageEndsAll) {
  at_many_messages(0, [&](int victim, int message, const std::string& where) {
    const Case lost{.kind = Fault::Kind::drop, .victim = victim, .message = message, .timeout = 120ms};
    expect_ended(run_in_time(lost), lost, " nothing for ", "loss" + where);
  });
}

TEST_F(FaultTable, AStoppedRankEndsAll) {
  at_many_messages(1, [&](int victim, int message, const std::string& where) {
    const Case stopped{.kind = Fault::Kind::strike, .victim = victim, .message = message, .timeout = 120ms};
    expect_ended(run_in_time(stopped), stopped, " nothing for ", "stop" + where);
  });
}

TEST_F(FaultTable, AKilledRankEndsAllAtOnce) {
  at_each_message([&](int victim, int message, const std::string& where) {
    if (victim == 0) return;  // below
    const Case kill{.kind = Fault::Kind::strike, .victim = victim, .message = message, .kills = true};
    const Outcome outcome = run(kill);
    const bool has_decided = messages_of(1)[static_cast<std::size_t>(message)] == Phase::vote;
    if (!has_decided) { EXPECT_EQ(outcome.ranks[1].problem, "killed") << where; }
    for (const std::size_t other : {0u, 2u})
      if (outcome.ranks[other].steps_done < steps) expect_says(outcome.ranks[other].problem, "rank 1 (");
    expect_ended(outcome, kill, "rank 1 (", "kill" + where);
  });
}

/// With rank 0 the meeting ends. It is killed before each of its messages; and while rank 1 tells the others what it
/// has heard from rank 0, so that they do not hear it from rank 1 either.
TEST_F(FaultTable, AKilledRank0LeavesNoRankAhead) {
  at_each_message([&](int victim, int message, const std::string& where) {
    const bool is_vote = messages_of(victim)[static_cast<std::size_t>(message)] == Phase::vote;
    if (victim == 1 && !is_vote) return;
    Case kill{.kind = Fault::Kind::strike, .victim = victim, .message = message, .kills = true, .ends_desk = true};
    if (victim == 1) kill.kind = Fault::Kind::drop, kill.kills = false;
    expect_ended(run(kill), kill, "rank 0 (", "kill" + where);
  });
}

/// The last message of the vote of step 1 by rank 1 goes to rank 2. It is lost as rank 0 ends: rank 2 asks rank 1.
TEST_F(FaultTable, WhatRank1HasHeardHolds) {
  const std::vector<Phase> messages = messages_of(1);
  const auto after = std::ranges::find(messages, Phase::gather);
  const int message = static_cast<int>(after - messages.begin()) - 1;
  const Outcome outcome = run({.kind = Fault::Kind::drop, .victim = 1, .message = message, .ends_desk = true});
  for (const std::size_t rank : {1u, 2u})
    EXPECT_EQ(step_of(outcome.ranks[rank].values), 1) << outcome.ranks[rank].problem;
}

/// Where the state of the optimizer is divided, new values of Variables are gathered before the vote.
TEST_F(FaultTable, DividedStateIsCommittedByAllOrNone) {
  const Outcome whole = run({.is_divided = true});
  for (const Left& left : whole.ranks) EXPECT_EQ(step_of(left.values), steps) << left.problem;
  for (int message = 0; message < whole.sent; ++message) {
    Case fault{.kind = Fault::Kind::corrupt, .message = 2 * message, .is_divided = true};
    if (message % 2 == 0) fault = {.kind = Fault::Kind::drop, .message = message, .is_divided = true, .timeout = 120ms};
    std::set<int> committed;
    for (const Left& left : run_in_time(fault).ranks)
      if (!left.values.empty()) committed.insert(step_of(left.values));
    EXPECT_EQ(committed.size(), 1u) << message;
    EXPECT_FALSE(committed.contains(-1)) << message;
  }
}

/// Rank 0 alone writes. It says why it cannot, and so do the others; what it has written before is whole.
TEST_F(FaultTable, AFullDiskOfRank0EndsAll) {
  const TestDirectory folder("fault_table_full");
  const auto make = [] { return Sequential{Dense(4, tanh), Dense(1)}; };
  const Tensor y = reduce_sum(inputs(), {.axis = {1}, .keepdims = true});
  std::optional<FailingCalls> full;
  const auto problems = run_on_ranks({.ranks = 2}, [&](const Strategy& strategy, int rank) {
    Sequential model = make();
    Adam optimizer;
    const Callback fills{.on_epoch_begin = [&](EpochBegin log) {
      if (rank == 0 && log.epoch == 3) full.emplace(FailingCalls::Plan{.free_bytes = 100});
    }};
    fit(model, optimizer, MeanSquaredError(), data::from_tensor_slices(inputs(), y).batch(12),
        {.epochs = 1000,
         .callbacks = {fills},
         .checkpoints = {.directory = folder.path()},
         .strategy = strategy,
         .verbose = false});
  });
  full.reset();
  for (const std::string& problem : problems) expect_says(problem, "No space left on device");
  Sequential model = make();
  model.build({f32, {any_size, 3}});
  Adam optimizer;
  optimizer.build(model.trainable_variables());
  const auto restored = Checkpoints({.directory = folder.path()}, model, optimizer).restore();
  ASSERT_TRUE(restored.has_value());
  EXPECT_GE(restored->position.epoch, 2);  // the last one may still have been on its way
}

/// Questions of the meeting: to join, to share an address, and that this rank reaches all.
TEST_F(FaultTable, OfTheMeeting) {
  for (int question = 0; question < 3; ++question) {
    for (const auto kind : {Fault::Kind::delay, Fault::Kind::duplicate})
      expect_undisturbed(run({.kind = kind, .question = question}), text("question ", question));
    // It asks again.
    expect_undisturbed(run({.kind = Fault::Kind::drop, .question = question, .timeout = 2s}), text("lost ", question));
    const Outcome damaged = run({.kind = Fault::Kind::corrupt, .question = question, .timeout = 500ms});
    for (const Left& left : damaged.ranks) EXPECT_NE(left.problem, "");
    EXPECT_LT(damaged.seconds, 10);
  }
}

}  // namespace
}  // namespace gradus::fault_table_test
