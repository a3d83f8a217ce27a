/// Advice about trainings whose times are pretended: what is worth it, how long it takes, and what it leaves alone.
#include <cmath>
#include <limits>
#include "gradus/advice/account.h"
#include "gradus/advice/comparison.h"
#include "gradus/advice/levers.h"
#include "gradus/base/cores.h"
#include "gradus/base/threads.h"
#include "gradus/gradus.h"
#include "gradus/ops/random_state.h"
#include "tests/advice/pretended.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::advise_test {
namespace {

TEST(Advise, EveryLeverHasARow) {
  const SmallTraining t;
  const Advice advice = advise(t.model, t.optimizer, t.loss, t.dataset, {.max_seconds = 2});
  expect_consistent(advice);
  for (const char* name : {"compile", "fuse", "prefetch", "parallel map", "cache", "batch size", "micro_batch",
                           "recompute", "threads", "replicas", "kernel cache", "pruning"})
    row_of(advice, name);
  for (const char* name : {"bf16", "float16"})
    EXPECT_EQ(std::ranges::count(advice.levers, name, &Lever::name), 0) << name;
  const Advice narrow = advise(t.model, t.optimizer, t.loss, t.dataset,
                               {.max_seconds = 10, .allow_lower_precision = true, .levers = {"bf16", "float16"}});
  expect_consistent(narrow);
  ASSERT_EQ(narrow.levers.size(), 2u);
  for (const Lever& lever : narrow.levers)  // where the machine was not too slow to try it
    EXPECT_TRUE(lever.pairs == 0 || lever.max_relative_difference > 0) << lever.name;
}

TEST(Advise, PrefetchHidesASlowSource) {
  const Pretended pretended;
  const SmallTraining t;
  Sequential model{Dense(2)};
  const Advice advice = advise(model, t.optimizer, t.loss, pretended.slow(0.1).batch(4),
                               {.max_seconds = 1000, .levers = {"prefetch"}, .clock = pretended.clock()});
  expect_consistent(advice);
  const Lever& prefetch = row_of(advice, "prefetch");
  EXPECT_TRUE(prefetch.worth_it) << prefetch.reason;
  EXPECT_LT(prefetch.ratio_high, 0.1);
  EXPECT_EQ(prefetch.max_relative_difference, 0);
  ASSERT_TRUE(static_cast<bool>(advice.options.prefetch));
  EXPECT_NE(advice.dataset->pipeline().ahead().buffers, 0);
  EXPECT_GE(advice.pairs, 8);  // of the whole
  EXPECT_LT(advice.seconds_after, 0.1 * advice.seconds_before);
  EXPECT_EQ(advice.changes.size(), 1u);
}

TEST(Advise, ACacheSparesASlowSource) {
  // A trial keeps 32 of the 64 examples: shuffled among more of them its losses are others.
  for (const std::int64_t buffer : {8, 24}) {
    const Pretended pretended;
    const SmallTraining t;
    Sequential model{Dense(2)};
    const Dataset<2> dataset = pretended.slow(0.1).shuffle(buffer).batch(4);
    const Advice advice = advise(model, t.optimizer, t.loss, dataset,
                                 {.max_seconds = 1000, .levers = {"cache"}, .clock = pretended.clock()});
    EXPECT_TRUE(row_of(advice, "cache").worth_it) << buffer << ": " << row_of(advice, "cache").reason;
    // All of it is kept, not the part of the trials.
    std::int64_t batches = 0;
    for ([[maybe_unused]] const auto& batch : advice.dataset->as<2>()) ++batches;
    EXPECT_EQ(batches, 16);
  }
}

TEST(Advise, WhatElementsAreMadeByIsTriedAgainWhenTheyAreMadeInAnotherWay) {
  const auto kind = [](std::string_view name) -> const LeverKind& {
    return *std::ranges::find(lever_kinds(), name, &LeverKind::name);
  };
  const Lever seen{.name = "prefetch", .pairs = 16};
  for (const char* name : {"prefetch", "parallel map", "cache"}) {
    EXPECT_TRUE(may_gain_since(kind(name), seen, true)) << name;
    EXPECT_FALSE(may_gain_since(kind(name), seen, false)) << name;
  }
  EXPECT_FALSE(may_gain_since(kind("recompute"), seen, true));
  Lever other = seen;
  other.pairs = 0;  // there is nothing that it could change
  EXPECT_FALSE(may_gain_since(kind("prefetch"), other, true));
  other = seen;
  other.is_in_use = true;
  EXPECT_FALSE(may_gain_since(kind("prefetch"), other, true));
  other = seen;
  other.verdict = Verdict::worth_it, other.worth_it = true;
  EXPECT_FALSE(may_gain_since(kind("prefetch"), other, true));
}

TEST(Advise, LargerBatchesShareWhatEachCosts) {
  const SmallTraining t;
  const Pretended pretended;
  // A look at the clock is the only cost: that of a turn, whatever the rows of its steps.
  const Advice advice =
      advise(t.model, t.optimizer, t.loss, t.dataset.unbatch().batch(2),
             {.max_seconds = 1000, .levers = {"batch size"}, .apply = {"batch size"}, .clock = pretended.clock()});
  const Lever& size = row_of(advice, "batch size");
  EXPECT_TRUE(size.worth_it) << size.reason;
  EXPECT_NE(size.change.find("dataset.batch(8)"), std::string::npos) << size.change;
  EXPECT_EQ(advice.dataset->as<2>().first()[0].shape()[0], 8);
}

/// However the data are made, no larger batch leaves fewer than 20 updates in a pass over them.
TEST(Advise, LargerBatchesLeaveEnoughUpdates) {
  const SmallTraining t;  // 256 rows
  const Dataset<2> rows = t.dataset.unbatch();
  const auto same = [](Tensor x, Tensor y) { return std::pair{x, y}; };
  const auto all = [](Tensor, Tensor) { return constant(true); };
  const Pretended pretended;
  struct Row {
    const char* name;
    Dataset<2> dataset;
    std::int64_t most;  // the largest batch that is proposed; 0: none
    std::int64_t steps = 0;
  };
  const Row kinds[] = {
      {"once", rows.batch(2), 8},
      {"few", rows.batch(4), 0},
      {"mapped", rows.batch(2).map(same), 8},
      {"mapped, few", rows.batch(4).map(same), 0},
      {"without end", rows.repeat().batch(2), 8},
      {"without end, few", rows.repeat().batch(4), 0},
      {"batches without end", rows.batch(4).map(same).repeat(), 0},
      {"three times", rows.repeat(3).batch(4), 0},
      {"twice without end", rows.repeat(2).repeat().shuffle(8).batch(4), 0},
      {"a part", rows.repeat().take(100).batch(2), 0},
      {"steps", rows.repeat().batch(2), 8, 100},
      {"few steps", rows.repeat().batch(2), 0, 79},
      {"a part of the batches", rows.batch(2).take(70), 8},
      {"few of the batches", rows.batch(2).take(19), 0},
      {"counted by reading", rows.filter(all).batch(2), 8},
      {"counted by reading, few", rows.filter(all).batch(4), 0},
      {"filtered without end", rows.filter(all).repeat().batch(4), 0},
      {"a generator", pretended.slow(0, 256).batch(2), 8},
      {"a generator, few", pretended.slow(0, 256).repeat().batch(4), 0},
      {"beside a longer one",
       data::zip(rows.take(10).repeat(), rows)
           .map([](Tensor x, Tensor, Tensor, Tensor y) { return std::pair{x, y}; })
           .batch(2),
       8},
  };
  for (const Row& kind : kinds) {
    SCOPED_TRACE(kind.name);
    FitOptions fit;
    fit.steps_per_epoch = kind.steps;
    Sequential model{Dense(static_cast<int>(kind.dataset.pipeline().specs()[1].shape.back()))};
    const Advice advice = advise(model, t.optimizer, t.loss, kind.dataset,
                                 {.max_seconds = 1e5,
                                  .fit = fit,
                                  .levers = {"batch size"},
                                  .apply = {"batch_size"},
                                  .clock = pretended.clock()});
    const Lever& size = row_of(advice, "batch size");
    EXPECT_EQ(advice.setting->data.batch_size.value_or(0), kind.most) << size.reason;
    if (kind.most == 0) { EXPECT_NE(size.reason.find(" updates "), std::string::npos) << size.reason; }
  }
}

/// A lever that changes the learned result is tried, shown and left out, unless it is named. Others are tried without
/// it.
TEST(Advise, WhatChangesWhatIsLearnedIsTakenByNameAlone) {
  const SmallTraining t;
  const Pretended pretended;
  for (const bool is_named : {false, true}) {
    AdviseOptions options{
        .max_seconds = 1000, .levers = {"batch size", "micro_batch"}, .apply = {}, .clock = pretended.clock()};
    if (is_named) options.apply = {"batch size"};
    const Advice advice = advise(t.model, t.optimizer, t.loss, t.dataset.unbatch().batch(2), options);
    expect_consistent(advice);
    const Lever& size = row_of(advice, "batch size");
    EXPECT_TRUE(size.worth_it && size.changes_learning) << size.reason;
    EXPECT_EQ(size.reason.ends_with("taken by name alone"), !is_named) << size.reason;
    EXPECT_EQ(std::ranges::count(advice.changes, size.change), is_named ? 1 : 0);
    EXPECT_EQ(advice.dataset->as<2>().first()[0].shape()[0], is_named ? 8 : 2);
    const Lever& part = row_of(advice, "micro_batch");
    EXPECT_FALSE(part.changes_learning);
    EXPECT_NE(part.change.find(is_named ? "{.micro_batch = 4}" : "{.micro_batch = 1}"), std::string::npos)
        << part.change;
    std::istringstream lines(text(advice));
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("batch size")) {
        EXPECT_NE(line.find("changes   worth it"), std::string::npos) << line;
      } else if (line.starts_with("micro_batch")) {
        EXPECT_NE(line.find("kept "), std::string::npos) << line;
      }
  }
  for (const LeverKind& kind : lever_kinds())
    EXPECT_EQ(kind.changes_learning(), kind.name == "batch size" || kind.name == "bf16" || kind.name == "float16");
}

/// The order of levers, by a profile with these shares of the time.
std::vector<std::string> order_by(const SmallTraining& t, double input, double compute) {
  const Training training = detail::training_of<2>(t.model, t.optimizer, t.loss, t.dataset.pipeline(), false);
  const AdviseOptions options;
  Circumstances circumstances{.training = training, .options = options, .now = {}};
  circumstances.now.threads = available_cores();
  ProfileReport& profile = circumstances.profile;
  profile.seconds = 1, profile.input_wait = input, profile.compute = compute, profile.host = 1 - input - compute;
  std::vector<std::string> names;
  for (const LeverKind* kind : by_gain(circumstances)) names.emplace_back(kind->name);
  return names;
}

TEST(Advise, TheTimeGoesFirstToWhatCanGain) {
  const SmallTraining t;
  const auto place_in = [](const std::vector<std::string>& order, std::string_view name) {
    return std::ranges::find(order, name) - order.begin();
  };
  const std::vector<std::string> waits = order_by(t, 0.93, 0.05), computes = order_by(t, 0, 0.9);
  for (const char* name : {"prefetch", "parallel map", "cache"}) EXPECT_LT(place_in(waits, name), 3) << name;
  for (const char* name : {"micro_batch", "recompute", "fuse", "compile", "pruning", "bf16"})
    EXPECT_GT(place_in(waits, name), place_in(waits, "threads")) << name;
  EXPECT_LT(place_in(computes, "bf16"), place_in(computes, "cache"));
  EXPECT_LT(place_in(computes, "micro_batch"), place_in(computes, "cache"));
}

TEST(Advise, ATrainingThatWaitsForItsInputIsTold) {
  ProfileReport report{.seconds = 1, .compute = 0.05, .input_wait = 0.93, .host = 0.02};
  report.rows = {{.name = "convolution", .seconds = 0.9},
                 {.name = "map", .seconds = 0.9, .kind = ProfileKind::stage},
                 {.name = "batch(64)", .seconds = 0.01, .kind = ProfileKind::stage}};
  const std::string told = account_of(report);
  EXPECT_TRUE(told.starts_with("of the time of a step 93 % waits for input, 5.0 % computes, 2.0 % is other C++"))
      << told;
  EXPECT_NE(told.find("Most of that wait is for `map`"), std::string::npos) << told;
  std::swap(report.compute, report.input_wait);
  EXPECT_EQ(account_of(report), "of the time of a step 93 % computes, 5.0 % waits for input, 2.0 % is other C++");
  EXPECT_EQ(account_of({}), "");
  report.seconds += 9, report.compile += 9;  // compiling happens once
  EXPECT_EQ(account_of(report), "of the time of a step 93 % computes, 5.0 % waits for input, 2.0 % is other C++");
}

TEST(Advise, WhatIsInUseIsComparedWithTheTrainingWithoutIt) {
  const SmallTraining t;
  const Pretended pretended;
  Sequential model{Dense(2)};
  FitOptions now;
  now.micro_batch = 2;
  const Advice advice =
      advise(model, t.optimizer, t.loss, pretended.slow(0.1).batch(4).prefetch(),
             {.max_seconds = 1000, .fit = now, .levers = {"prefetch", "micro_batch"}, .clock = pretended.clock()});
  expect_consistent(advice);
  const Lever& prefetch = row_of(advice, "prefetch");
  EXPECT_TRUE(prefetch.is_in_use && prefetch.worth_it) << prefetch.reason;
  EXPECT_LT(prefetch.seconds_after, prefetch.seconds_before);
  const Lever& part = row_of(advice, "micro_batch");
  EXPECT_TRUE(part.is_in_use && !part.worth_it) << part.reason;
  EXPECT_TRUE(advice.changes.empty());
  EXPECT_EQ(advice.options.micro_batch, 2);
}

TEST(Advise, TheTimeIsKeptWhenAStepTakesSeconds) {
  const SmallTraining t;
  for (const double limit : {0.5, 20.0, 60.0}) {
    const Pretended pretended;
    Sequential model{Dense(2)};
    const Advice advice = advise(model, t.optimizer, t.loss, pretended.slow(1).batch(4),
                                 {.max_seconds = limit, .clock = pretended.clock()});
    expect_consistent(advice);
    EXPECT_LE(advice.seconds, limit + 16) << "no longer than one turn and the fetch behind it";
    for (const char* name : {"compile", "prefetch", "micro_batch"}) {
      const Lever& lever = row_of(advice, name);
      EXPECT_EQ(lever.verdict, Verdict::undecided) << name << ": " << lever.reason;
      EXPECT_NE(lever.reason.find("undecided, "), std::string::npos);
      EXPECT_NE(lever.reason.find(" pairs"), std::string::npos);
    }
    EXPECT_TRUE(advice.changes.empty());
  }
}

TEST(Advise, ALimitOfMemoryIsKept) {
  struct Restored {
    std::size_t before = memory_use().limit_bytes;
    ~Restored() { set_memory_limit(cpu(), before); }
  } restored;
  const Tensor x = random::normal({2048, 64}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, x.rows(0, 2048) * 2).batch(2048);
  Sequential model{Dense(512, tanh), Dense(512, tanh), Dense(64)};
  model.build({f32, {any_size, 64}});
  const std::size_t limit = memory_use().live_bytes + 39 * MiB / 2;
  set_memory_limit(cpu(), limit);
  const SGD optimizer;
  const Pretended pretended;  // on no machine is there too little time
  const Advice advice =
      advise(model, optimizer, MeanSquaredError(), dataset, {.max_seconds = 1000, .clock = pretended.clock()});
  expect_consistent(advice);
  const Lever& parts = row_of(advice, "micro_batch");
  EXPECT_TRUE(parts.worth_it) << parts.reason;
  EXPECT_NE(parts.reason.find("no room"), std::string::npos) << parts.reason;
  EXPECT_TRUE(std::isinf(parts.seconds_before));
  EXPECT_GT(advice.options.micro_batch, 0);
  EXPECT_EQ(memory_use().limit_bytes, limit);
  Sequential copy = model;
  SGD its_optimizer;
  FitOptions options = advice.options;
  options.verbose = false;
  fit(copy, its_optimizer, MeanSquaredError(), dataset, options);  // has room now
  set_memory_limit(cpu(), memory_use().live_bytes + 64 * KiB);
  expect_error<ResourceExhausted>([&] { advise(model, optimizer, MeanSquaredError(), dataset, {.max_seconds = 5}); },
                                  {""});
}

TEST(Advise, WhatFailsIsARow) {
  SmallTraining t;
  const auto large = [](Tensor x) { return x * 1e7; };
  Sequential model{Dense(8, relu), Lambda(large), Dense(3)};
  const Pretended pretended;
  const Advice advice =
      advise(model, t.optimizer, t.loss, t.dataset,
             {.max_seconds = 1000, .allow_lower_precision = true, .levers = {"float16"}, .clock = pretended.clock()});
  const Lever& narrow = row_of(advice, "float16");
  EXPECT_FALSE(narrow.worth_it);
  EXPECT_TRUE(narrow.verdict == Verdict::does_not_work || narrow.max_relative_difference > 0.05) << narrow.reason;
  expect_consistent(advice);
}

TEST(Advise, WhatFindsNoRoomIsARow) {
  struct Restored {
    std::size_t before = memory_use().limit_bytes;
    ~Restored() { set_memory_limit(cpu(), before); }
  } restored;
  const Pretended pretended;
  const Tensor x = random::normal({81'920, 16}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, x).batch(1024);
  Sequential model{Dense(64, tanh), Dense(64, tanh), Dense(64, tanh), Dense(64, tanh), Dense(16)};
  const AdviseOptions options{.max_seconds = 1000, .levers = {"batch size"}, .clock = pretended.clock()};
  const auto ask = [&] { return advise(model, SGD(), MeanSquaredError(), dataset, options); };
  const std::size_t bytes = ask().bytes_before;
  set_memory_limit(cpu(), memory_use().live_bytes + 2 * bytes);
  const Advice advice = ask();
  expect_consistent(advice);
  const Lever& size = row_of(advice, "batch size");
  EXPECT_EQ(size.verdict, Verdict::does_not_work) << size.reason;
  EXPECT_NE(size.reason.find("memory"), std::string::npos) << size.reason;
  EXPECT_TRUE(advice.changes.empty());
}

TEST(Advise, AllThatIsWorthItIsMeasuredTogether) {
  const Pretended pretended;
  const SmallTraining t;
  Sequential model{Dense(2)};
  // Examples cost time until they are kept, then a look at the clock is the only cost, whatever the rows of a batch.
  const Advice advice = advise(
      model, t.optimizer, t.loss, pretended.slow(0.1, 1024).batch(4),
      {.max_seconds = 10'000, .levers = {"cache", "batch size"}, .apply = {"batch size"}, .clock = pretended.clock()});
  expect_consistent(advice);
  for (const char* name : {"cache", "batch size"})
    EXPECT_TRUE(row_of(advice, name).worth_it) << row_of(advice, name).reason;
  EXPECT_EQ(advice.changes.size(), 2U);
  EXPECT_GE(advice.pairs, Comparison::fewest);
  EXPECT_LT(advice.ratio_high, 0.1);
  EXPECT_LT(advice.seconds_after, 0.1 * advice.seconds_before);
}

/// Elements take time where they are made. Once `slows()` has said so, not to make any takes more.
struct Turning {
  Pretended pretended;
  std::shared_ptr<int> made = std::make_shared<int>(0);
  Dataset<2> dataset() const {
    return data::from_generator<2>({Spec{f32, {3}}, Spec{f32, {2}}},
                                   [time = pretended.time, made = made, next = 0]() mutable {
                                     std::optional<std::pair<Tensor, Tensor>> example;
                                     if (next++ == 64) return example;
                                     ++*made;
                                     time->now += 0.1;
                                     example.emplace(fill({3}, 0.01 * next, f32), fill({2}, 1, f32));
                                     return example;
                                   });
  }
  std::function<double()> clock(std::function<bool()> slows) const {
    return [time = pretended.time, made = made, seen = 0, slows = std::move(slows)]() mutable {
      const bool was_kept = std::exchange(seen, *made) == *made;
      return time->now += was_kept && slows() ? 10 : 1e-3;
    };
  }
};

TEST(Advise, WhatIsSlowerTogetherIsNotAdvised) {
  const SmallTraining t;
  int traced = 0;  // losses: the last ones are those of the last trial, that of the training as it was
  const auto loss = [&](const Tensor& y, const Tensor& prediction) {
    ++traced;
    return Loss::mean(reduce_sum(square(y - prediction), {.axis = {1}}));
  };
  const auto advised = [&](const std::function<bool()>& slows) {
    traced = 0;
    const Turning turning;
    Sequential model{Dense(2)};
    return advise(model, t.optimizer, loss, turning.dataset().batch(4),
                  {.max_seconds = 1e6, .levers = {"cache"}, .clock = turning.clock(slows)});
  };
  const Advice before = advised([] { return false; });
  EXPECT_TRUE(row_of(before, "cache").worth_it) << row_of(before, "cache").reason;
  EXPECT_EQ(before.changes.size(), 1U);
  const int all = traced;
  const Advice advice = advised([&] { return traced == all; });
  expect_consistent(advice);
  const Lever& cache = row_of(advice, "cache");
  EXPECT_FALSE(cache.worth_it);
  EXPECT_LT(cache.ratio_high, 1);  // alone it gained
  EXPECT_NE(cache.reason.find("; but with all that was worth it a step takes "), std::string::npos) << cache.reason;
  EXPECT_GT(advice.ratio_low, 1);
  EXPECT_TRUE(advice.changes.empty());
  EXPECT_FALSE(advice.setting->data.cache);
}

TEST(Advise, DeadChannelsAreTried) {
  SmallTraining t;
  Sequential model{Dense(64, relu), Dense(32, relu), Dense(3)};
  model.build({f32, {any_size, 3}});
  const Pretended pretended;
  const AdviseOptions options{.max_seconds = 1000, .levers = {"pruning"}, .clock = pretended.clock()};
  EXPECT_NE(row_of(advise(model, t.optimizer, t.loss, t.dataset, options), "pruning").reason.find("no channel"),
            std::string::npos);
  prune_channels(model, 0.5);
  const Lever lever = row_of(advise(model, t.optimizer, t.loss, t.dataset, options), "pruning");
  EXPECT_NE(lever.verdict, Verdict::does_not_work) << lever.reason;
  EXPECT_GT(lever.pairs, 0) << lever.reason;
  EXPECT_NE(lever.change.find("remove_pruned_channels"), std::string::npos);
  EXPECT_LT(lever.max_relative_difference, 1e-4);
}

// What stays as it was.

std::vector<Tensor> values_of(const Variables& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  return values;
}
void expect_values(const Variables& variables, const std::vector<Tensor>& values) {
  ASSERT_EQ(variables.size(), values.size());
  std::size_t i = 0;
  for (const Variable& variable : variables)
    EXPECT_TRUE(bitwise_equal(variable.value(), values[i++])) << variable.name();
}

TEST(Advise, LeavesAllAsItWas) {
  const TestDirectory directory("advise");
  std::filesystem::create_directories(directory.path());
  set_seed(7);
  SmallTraining t;
  const auto noisy = [](Tensor x, Tensor y) { return std::pair{x + random::normal({3}), y}; };
  const Dataset<2> dataset =
      data::from_tensor_slices(t.x, t.x * 2).cache(directory.path() / "file").map(noisy).cache().shuffle().batch(16);
  Sequential model{Dense(16, relu), BatchNormalization(), Dropout(0.5), Dense(3)};
  Adam optimizer;
  fit(model, optimizer, t.loss, dataset.take(3), {.verbose = false});
  const std::vector<Tensor> weights = values_of(model.variables()), state = values_of(optimizer.variables());
  auto reading = dataset.begin();
  ++reading;
  const Tensor next_element = (*reading)[0];
  const std::string explained = text(dataset.explain());
  const std::uint64_t random = random_state();
  const int threads = num_threads();
  const MemoryUse memory = memory_use();
  const std::int64_t iterations = optimizer.iterations();
  std::filesystem::remove(directory.path() / "file");
  for (const double limit : {1e-6, 1.5}) {
    const Advice advice =
        advise(model, optimizer, t.loss, dataset, {.max_seconds = limit, .allow_lower_precision = true});
    expect_consistent(advice);
  }
  expect_values(model.variables(), weights);
  expect_values(optimizer.variables(), state);
  EXPECT_EQ(optimizer.iterations(), iterations);
  EXPECT_EQ(random_state(), random);
  EXPECT_EQ(num_threads(), threads);
  EXPECT_EQ(memory_use().limit_bytes, memory.limit_bytes);
  EXPECT_EQ(memory_use().live_bytes, memory.live_bytes);
  EXPECT_EQ(text(dataset.explain()), explained);
  EXPECT_TRUE(bitwise_equal((*reading)[0], next_element));
  EXPECT_EQ(reading.position(), (Position{0, 1}));
  EXPECT_EQ(dataset.begin().position(), (Position{1, 0}));
  EXPECT_EQ(current_mode(), CallMode::unsaid);
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "file")) << "a cache on the disk is not filled by trials";
  EXPECT_EQ(model.layer_behind().policy(), std::nullopt);
}

TEST(Advise, LeavesAllAsItWasWhenItThrows) {
  SmallTraining t;
  t.model.build({f32, {any_size, 3}});
  const std::vector<Tensor> weights = values_of(t.model.variables());
  const std::uint64_t random = random_state();
  const int threads = num_threads();
  const auto loss = [&](const Tensor& y, const Tensor& prediction) {
    return Loss::mean(reduce_sum(y - prediction, {.axis = {1}}) / 0.0);
  };
  expect_error<Diverged>([&] { advise(t.model, t.optimizer, loss, t.dataset); }, {"is not finite"});
  expect_values(t.model.variables(), weights);
  EXPECT_EQ(random_state(), random);
  EXPECT_EQ(num_threads(), threads);
  EXPECT_EQ(t.optimizer.iterations(), 0);
}

TEST(Advise, AnUnbuiltModelStaysUnbuilt) {
  SmallTraining t;
  advise(t.model, t.optimizer, t.loss, t.dataset, {.max_seconds = 1, .levers = {"fuse"}});
  EXPECT_FALSE(t.model.is_built());
}

// Bad input.

TEST(Advise, BadInput) {
  SmallTraining t;
  const auto ask = [&](AdviseOptions options) { advise(t.model, t.optimizer, t.loss, t.dataset, std::move(options)); };
  for (const double seconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    expect_error<InvalidArgument>([&] { ask({.max_seconds = seconds}); }, {"advise", "max_seconds"});
  expect_error<InvalidArgument>([&] { ask({.levers = {"prefech"}}); }, {"no lever `prefech`", "prefetch"});
  expect_error<InvalidArgument>([&] { ask({.apply = {"batchsize"}}); }, {"batchsize", "did you mean"});
  expect_error<InvalidArgument>([&] { ask({.apply = {"prefetch"}}); }, {"`prefetch` keeps what is learned"});
  expect_error<InvalidArgument>([&] { ask({.clock = nullptr}); }, {"no clock"});
  FitOptions fit;
  fit.micro_batch = -1;
  expect_error<InvalidArgument>([&] { ask({.fit = fit}); }, {"micro_batch"});
  expect_error<InvalidArgument>([&] { profile([&] { ask({.max_seconds = 1}); }); }, {"a profile of this thread"});
  const auto advise_of = [&](const Dataset<2>& dataset) { advise(t.model, t.optimizer, t.loss, dataset); };
  expect_error<DataError>([&] { advise_of(t.dataset.take(0)); }, {"the data set is empty"});
  expect_error<DataError>([&] { advise_of(Pretended().slow(0, 0).batch(2)); }, {"the data set is empty"});
  expect_error<InvalidArgument>([&] { advise_of(t.dataset.unbatch()); }, {"was not batched"});
  expect_error<InvalidArgument>([&] { advise(shared(t.model), t.optimizer, t.loss, t.dataset); }, {"shared()"});
}

TEST(Advise, PrintsATable) {
  SmallTraining t;
  const std::string table =
      text(advise(t.model, t.optimizer, t.loss, t.dataset, {.max_seconds = 2, .levers = {"fuse", "prefetch"}}));
  for (const char* part : {"lever", "fuse", "prefetch", "verdict", "all together", "trials took"})
    expect_says(table, part);
}

}  // namespace
}  // namespace gradus::advise_test
