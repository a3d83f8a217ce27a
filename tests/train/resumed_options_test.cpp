/// Program and checkpoint state different options of a training: for each option the documented rule decides, one line
/// gives the origin of each value, and the bits are those of a training whose state was carried over by hand.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <set>
#include "gradus/gradus.h"
#include "gradus/base/reflect.h"
#include "gradus/ops/random_state.h"
#include "gradus/optim/option_text.h"
#include "gradus/train/checkpoint_directory.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::resumed_options_test {
namespace {

/// A program: its optimizer, and everything else that it states.
struct Program {
  std::function<Optimizer()> optimizer = [] { return SGD(); };
  Policy policy = float32;
  std::uint64_t seed = 0;
  std::int64_t micro_batch = 0, batch = 8;
  double learning_rate = 0;  // set by hand unless 0
  bool run_eagerly = false;  // the same bits without compiling
};

Dataset<2> data_of(std::int64_t batch) {
  const Tensor x = random::normal({32, 3}, {.seed = 1});
  return data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).shuffle({.seed = 4}).batch(batch);
}

/// The whole state of a training after an epoch.
struct State {
  Tensors weights;
  std::vector<std::pair<std::string, Tensor>> of_optimizer;
  std::uint64_t random = 0;

  void take(const Module& model, const Optimizer& optimizer) {
    weights.clear();
    of_optimizer.clear();
    for (const Variable& variable : model.variables()) weights.push_back(variable.value());
    for (const Variable& variable : optimizer.variables()) of_optimizer.emplace_back(variable.name(), variable.value());
    random = random_state();
  }
  void give(Module& model, Optimizer& optimizer) const {
    Variables variables = model.variables();
    for (std::size_t i = 0; i < weights.size(); ++i) variables[i].assign(weights[i]);
    optimizer.build(model.trainable_variables());
    Variables slots = optimizer.variables();
    for (Variable& variable : slots)
      for (const auto& [name, value] : of_optimizer)
        if (name == variable.name() && !name.ends_with("/learning_rate")) variable.assign(value);
    set_random_state(random);
  }
};

struct Outcome {
  Tensors model;
  double rate = 0;
  std::string said, error;
  State at_end;  // at the end of the last epoch, before averages are written into the model
};

/// Runs `program` to the end of `epochs`: from its begin, from a checkpoint in `directory`, or from `state` after an
/// epoch.
Outcome run(const Program& program, int epochs, const std::filesystem::path& directory, const State* state = nullptr) {
  set_seed(program.seed);
  Sequential model({Dense(4, tanh), Dropout(0.3), Dense(1)}, {.policy = program.policy});
  model.build({f32, {any_size, 3}});
  Optimizer optimizer = program.optimizer();
  if (program.learning_rate > 0) optimizer.set_learning_rate(program.learning_rate);
  if (state) state->give(model, optimizer);
  Outcome outcome;
  FitOptions options{.epochs = epochs,
                     .initial_epoch = state ? 1 : 0,
                     .callbacks = {{.on_epoch_end = [&](const EpochLog&) { outcome.at_end.take(model, optimizer); }}},
                     .micro_batch = program.micro_batch,
                     .function = {.run_eagerly = program.run_eagerly},
                     .verbose = false};
  if (!directory.empty()) options.checkpoints = CheckpointOptions{.directory = directory};
  testing::internal::CaptureStderr();
  try {
    fit(model, optimizer, MeanSquaredError(), data_of(program.batch), options);
  } catch (const InvalidArgument& error) { outcome.error = error.what(); }
  outcome.said = testing::internal::GetCapturedStderr();
  for (const Variable& variable : model.variables()) outcome.model.push_back(variable.value());
  outcome.rate = optimizer.learning_rate();
  return outcome;
}

/// The state of a training after its first epoch, carried over by hand: resuming has to give the same.
Outcome by_hand(const State& state, const Program& after) { return run(after, 2, {}, &state); }

void expect_same(const Outcome& got, const Outcome& want, const std::string& what) {
  ASSERT_EQ(got.error, "") << what;
  ASSERT_EQ(want.error, "") << what;
  ASSERT_EQ(got.model.size(), want.model.size());
  for (std::size_t i = 0; i < got.model.size(); ++i)
    EXPECT_TRUE(bitwise_equal(got.model[i], want.model[i])) << what << ", variable " << i;
  EXPECT_EQ(got.rate, want.rate) << what;
}

// ---------------------------------------------------------------- every option of every optimizer

/// Options that add or remove slots when they are changed from their default.
bool decides_slots(std::string_view field) {
  return field == "momentum" || field == "amsgrad" || field == "centered" || field == "use_ema";
}

double other(double value) { return value == 0 ? 0.25 : value * 0.75; }
std::int64_t other(std::int64_t value) { return value + 2; }
bool other(bool value) { return !value; }

template <class Kind, class Options> Program program_of(const Options& options) {
  return {.optimizer = [options] { return Kind(options); }};
}

template <class Kind, class Options>
void check_pair(const std::string& name, const Options& then, const Options& now, const std::string& had,
                const std::string& has, const std::string& what) {
  const TestDirectory directory("resumed_options");
  Program before = program_of<Kind>(then), after = program_of<Kind>(now);
  before.run_eagerly = after.run_eagerly = true;
  const Outcome first = run(before, 1, directory);
  ASSERT_EQ(first.error, "") << what;
  const bool slots_differ = decides_slots(name) && (had == "0" || has == "0" || had == "true" || has == "true");
  const Outcome resumed = run(after, 2, directory);
  if (slots_differ) {
    expect_says(resumed.error, text("the program has ", name, ' ', has, ", the checkpoint ", had));
    expect_says(resumed.error, "another directory");
    EXPECT_EQ(resumed.said, "") << what;
    return;
  }
  const bool of_program = name != "initial_accumulator_value";
  expect_says(resumed.said, of_program ? text(name, ' ', has, " from the program (the checkpoint had ", had, ')')
                                       : text(name, ' ', had, " from the checkpoint (the program has ", has, ')'));
  expect_says(resumed.said, "goes on after step 4 in epoch 2 of 2");
  EXPECT_EQ(std::ranges::count(resumed.said, '\n'), 1) << resumed.said;
  expect_same(resumed, by_hand(first.at_end, after), what);
}

/// Changes each option in turn: the checkpoint has the default, the program another value.
template <class Kind, class Options> int check_options_of(const std::string& kind, Options base) {
  int checked = 0;
  base.learning_rate = Schedule(0.05);
  Options fields = base;
  reflect::for_each_field(fields, [&](std::string_view field, auto& place) {
    using Field = std::remove_cvref_t<decltype(place)>;
    if constexpr (PlainOption<Field>) {
      const Field before = place;
      place = other(before);
      const std::string what = text(kind, '.', field);
      bool is_taken = true;
      try {
        Kind{fields};
      } catch (const InvalidArgument&) { is_taken = false; }  // like amsgrad of Nadam
      if (is_taken) {
        const std::string name(field), had = option_text(before), has = option_text(place);
        check_pair<Kind>(name, base, fields, had, has, what);
        if (decides_slots(field)) check_pair<Kind>(name, fields, base, has, had, what + ", back");
        ++checked;
      }
      place = before;
    }
  });
  return checked;
}

TEST(ResumedOptions, OfEveryOptimizerAreTheProgramsAndItsStateTheCheckpoints) {
  EXPECT_EQ((check_options_of<SGD>("SGD", SGDOptions{})), 10 - 1);  // ema_overwrite_frequency needs use_ema
  EXPECT_EQ((check_options_of<Adam>("Adam", AdamOptions{})), 12 - 1);
  EXPECT_EQ((check_options_of<AdamW>("AdamW", AdamWOptions{})), 12 - 1);
  EXPECT_EQ((check_options_of<Nadam>("Nadam", AdamOptions{})), 12 - 2);
  EXPECT_EQ((check_options_of<Adamax>("Adamax", AdamOptions{})), 12 - 2);
  EXPECT_EQ((check_options_of<Lamb>("Lamb", AdamOptions{})), 12 - 3);
  EXPECT_EQ((check_options_of<RMSprop>("RMSprop", RMSpropOptions{})), 12 - 1);
  EXPECT_EQ((check_options_of<Adagrad>("Adagrad", AdagradOptions{})), 10 - 1);
  EXPECT_EQ((check_options_of<Adadelta>("Adadelta", AdadeltaOptions{})), 10 - 1);
  EXPECT_EQ((check_options_of<Ftrl>("Ftrl", FtrlOptions{})), 14 - 1);
  EXPECT_EQ((check_options_of<Lion>("Lion", LionOptions{})), 10 - 1);
}

TEST(ResumedOptions, ThatNeedOthers) {
  EXPECT_EQ((check_options_of<SGD>("SGD with averages and momentum", SGDOptions{.momentum = 0.9, .use_ema = true})),
            10);
  EXPECT_EQ((check_options_of<RMSprop>("RMSprop with momentum", RMSpropOptions{.momentum = 0.9, .centered = true})),
            11);
}

TEST(ResumedOptions, ClassesOfOptimizersHaveToAgree) {
  const std::vector<std::pair<std::string, std::function<Optimizer()>>> all{
      {"SGD", [] { return SGD(); }},         {"Adam", [] { return Adam(); }},         {"AdamW", [] { return AdamW(); }},
      {"Nadam", [] { return Nadam(); }},     {"Adamax", [] { return Adamax(); }},     {"Lamb", [] { return Lamb(); }},
      {"RMSprop", [] { return RMSprop(); }}, {"Adagrad", [] { return Adagrad(); }},   {"Ftrl", [] { return Ftrl(); }},
      {"Lion", [] { return Lion(); }},       {"Adadelta", [] { return Adadelta(); }},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto &before = all[i], &after = all[(i + 1) % all.size()];
    const TestDirectory directory("resumed_classes");
    run({.optimizer = before.second}, 1, directory);
    const Outcome resumed = run({.optimizer = after.second}, 2, directory);
    expect_says(resumed.error,
                text("the program has optimizer ", after.first, ", the checkpoint ", before.first, "; go on with "));
  }
}

// ---------------------------------------------------------------- rates

std::vector<Schedule> rates() {
  return {0.02,
          0.01,
          CosineDecay({.initial_learning_rate = 0.02, .decay_steps = 100}),
          CosineDecay({.initial_learning_rate = 0.02, .decay_steps = 7}),
          CosineDecayRestarts({.initial_learning_rate = 0.02, .first_decay_steps = 3}),
          PolynomialDecay({.initial_learning_rate = 0.02, .decay_steps = 9}),
          InverseTimeDecay({.initial_learning_rate = 0.02, .decay_steps = 3, .decay_rate = 0.5}),
          ExponentialDecay({.initial_learning_rate = 0.02, .decay_steps = 3, .decay_rate = 0.5}),
          OneCycle({.max_learning_rate = 0.02, .total_steps = 20}),
          PiecewiseConstantDecay({3, 5}, {0.03, 0.02, 0.01}),
          [](const Tensor& step) { return 0.01 / (1 + cast(step, f64)); },
          [](const Tensor& step) { return 0.02 / (1 + cast(step, f64)); }};
}

TEST(ResumedRates, AreThoseOfTheProgram) {
  const std::vector<Schedule> all = rates();
  const auto with = [](const Schedule& rate) { return program_of<SGD>(SGDOptions{.learning_rate = rate}); };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TestDirectory directory("resumed_rates");
    const Outcome first = run(with(all[i]), 1, directory);
    ASSERT_EQ(first.error, "");
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (i != 0 && k != 0 && k != i && k != (i + 1) % all.size()) continue;  // functions are not paired
      const TestDirectory copy("resumed_rates_copy");
      std::filesystem::copy(directory.path(), copy.path());
      const std::string what = text(all[i].description(), " -> ", all[k].description());
      const Outcome resumed = run(with(all[k]), 2, copy);
      expect_same(resumed, by_hand(first.at_end, with(all[k])), what);
      EXPECT_EQ(resumed.rate, all[k](8)) << what;
      if (i == k) EXPECT_EQ(resumed.said, "") << what;
      else expect_says(resumed.said, text("learning_rate ", all[k].description().substr(0, 60)));
    }
  }
}

TEST(ResumedRates, DescriptionsAreOfAllNumbers) {
  std::set<std::string> texts;
  for (const Schedule& rate : rates()) texts.insert(rate.description());
  EXPECT_EQ(texts.size(), rates().size());
  for (std::size_t i = 0; i < rates().size(); ++i) EXPECT_EQ(rates()[i].description(), rates()[i].description());
  const std::uint64_t before = random_state();
  const Schedule random = [](const Tensor& step) { return random::uniform({}) * cast(step, f32); };
  (void)random.description();
  EXPECT_EQ(random_state(), before);
}

/// A rate that a callback lowered is state; a rate that the program lowered is not.
TEST(ResumedRates, ThatACallbackHasSetAreState) {
  const auto train = [](Sequential& model, Optimizer& optimizer, int epochs, const std::filesystem::path& directory,
                        bool lowers) {
    FitOptions options{.epochs = epochs, .checkpoints = CheckpointOptions{.directory = directory}, .verbose = false};
    if (lowers)
      options.callbacks.push_back(
          {.on_epoch_end = [](const EpochLog& log) { log.optimizer.set_learning_rate(0.005); }});
    testing::internal::CaptureStderr();
    fit(model, optimizer, MeanSquaredError(), data_of(8), options);
    return testing::internal::GetCapturedStderr();
  };
  for (const bool scheduled : {false, true}) {
    const TestDirectory directory("resumed_callback");
    const auto optimizer = [&] {
      return scheduled ? SGD({.learning_rate = CosineDecay({.initial_learning_rate = 0.02, .decay_steps = 50})})
                       : SGD({.learning_rate = 0.02});
    };
    SGD first = optimizer(), same = optimizer(), lower({.learning_rate = 0.001});
    Sequential of_first{Dense(1)}, of_same{Dense(1)}, of_lower{Dense(1)};
    train(of_first, first, 1, directory, true);
    EXPECT_EQ(train(of_same, same, 2, directory, false), "");
    EXPECT_EQ(same.learning_rate(), 0.005);
    expect_says(train(of_lower, lower, 3, directory, false),
                "learning_rate 0.001 from the program (the checkpoint had 0.005)");
    EXPECT_EQ(lower.learning_rate(), 0.001);
    lower.set_learning_rate(0.0005);  // between two trainings of one process
    expect_says(train(of_lower, lower, 4, directory, false),
                "learning_rate 0.0005 from the program (the checkpoint had 0.001)");
    EXPECT_EQ(lower.learning_rate(), 0.0005);
  }
}

TEST(ResumedRates, OfGroupsAreThoseOfTheProgram) {
  const auto train = [](std::optional<double> rate, int epochs, const std::filesystem::path& directory) {
    set_seed(0);
    Sequential model{Dense(4, tanh), Dense(1)};
    model.build({f32, {any_size, 3}});
    SGD optimizer;
    if (rate)
      optimizer.add_parameter_group(
          model.trainable_variables().filter([](auto name) { return name.find("bias") != std::string_view::npos; }),
          {.learning_rate = *rate});
    testing::internal::CaptureStderr();
    fit(model, optimizer, MeanSquaredError(), data_of(8),
        {.epochs = epochs, .checkpoints = CheckpointOptions{.directory = directory}, .verbose = false});
    return std::pair{testing::internal::GetCapturedStderr(), rate ? optimizer.learning_rate(1) : 0};
  };
  const TestDirectory directory("resumed_groups");
  train(0.1, 1, directory);
  const auto [said, rate] = train(0.2, 2, directory);
  expect_says(said, "learning_rate of group 1 0.2 from the program (the checkpoint had 0.1)");
  EXPECT_EQ(rate, 0.2);
  expect_says(train({}, 3, directory).first, "parameter groups 0 from the program (the checkpoint had 1)");
  const auto [again, new_rate] = train(0.3, 4, directory);
  expect_says(again, "parameter groups 1 from the program (the checkpoint had 0)");
  EXPECT_EQ(new_rate, 0.3);
}

// ---------------------------------------------------------------- all else

TEST(ResumedPrograms, SayWhatElseIsOtherwise) {
  const Program plain;
  const auto resumed = [&](const Program& before, const Program& after) {
    const TestDirectory directory("resumed_programs");
    run(before, 1, directory);
    return run(after, 2, directory);
  };
  const Program bf16{.policy = mixed_bfloat16}, f16{.policy = mixed_float16};
  expect_says(resumed(plain, bf16).said, "policy mixed_bfloat16 from the program (the checkpoint had float32)");
  expect_says(
      resumed(plain, f16).error,
      "the program has a loss scale (policy mixed_float16), the checkpoint has none (float32); go on with policy "
      "float32");
  expect_says(
      resumed(f16, plain).error,
      "the program has no loss scale (policy float32), the checkpoint has one (mixed_float16); go on with policy "
      "mixed_float16");
  const Outcome seeded = resumed(plain, {.seed = 3});
  expect_says(seeded.said, "seed 0 from the checkpoint (the program has 3)");
  expect_same(seeded, resumed(plain, plain), "the numbers of the checkpoint go on");
  expect_says(resumed(plain, {.micro_batch = 4}).said, "micro_batch 4 from the program (the checkpoint had 0)");
  expect_says(resumed(plain, {.batch = 16}).said, "batch_size 16 from the program (the checkpoint had 8)");
  const Outcome set = resumed(plain, {.learning_rate = 0.03});
  expect_says(set.said, "learning_rate 0.03 from the program (the checkpoint had 0.01)");
  EXPECT_EQ(set.rate, 0.03);
}

TEST(ResumedPrograms, ThatAreFinishedHaveTheirRecordedHistory) {
  const TestDirectory directory("resumed_finished");
  const auto train = [&](int epochs, std::vector<Metric> metrics) {
    set_seed(0);
    Sequential model{Dense(1)};
    SGD optimizer;
    testing::internal::CaptureStderr();
    const History history = fit(model, optimizer, MeanSquaredError(), data_of(8),
                                {.epochs = epochs,
                                 .metrics = std::move(metrics),
                                 .validation = data_of(16),
                                 .checkpoints = CheckpointOptions{.directory = directory}});
    return std::pair{history, testing::internal::GetCapturedStderr()};
  };
  const auto [first, said] = train(2, {MeanAbsoluteError()});
  const auto [again, said_again] = train(2, {MeanAbsoluteError()});
  expect_says(said_again, text("gradus: the training of ", directory.path().string(),
                               " is finished, after epoch 2 and step 8: nothing is left to do (epochs is 2)\n"));
  EXPECT_EQ(again.loss, first.loss);
  EXPECT_EQ(again.validation_loss, first.validation_loss);
  EXPECT_EQ(again.seconds, (std::vector<double>{0, 0})) << "no time was spent, and equal trainings have equal files";
  EXPECT_EQ(again.metrics, first.metrics);
  const auto [third, said_more] = train(3, {MeanAbsoluteError(), RootMeanSquaredError()});
  expect_says(said_more,
              text("gradus: the training of ", directory.path().string(), " goes on after step 8 in epoch 3 of 3\n"));
  EXPECT_EQ(third.loss.size(), 1u) << "its own epochs";
  const auto [more, said_last] = train(3, {MeanAbsoluteError(), RootMeanSquaredError()});
  ASSERT_EQ(more.loss.size(), 3u);
  EXPECT_EQ(more.loss[1], first.loss[1]);
  EXPECT_EQ(more["validation_mean_absolute_error"].size(), 3u);
  EXPECT_EQ(more["validation_mean_absolute_error"][0], first["validation_mean_absolute_error"][0]);
  ASSERT_EQ(more["root_mean_squared_error"].size(), 3u);
  EXPECT_TRUE(std::isnan(more["root_mean_squared_error"][1]));
  EXPECT_TRUE(std::isfinite(more["root_mean_squared_error"][2]));
}

/// Checkpoints of versions without the program's statement are restored as before.
TEST(ResumedPrograms, OfEarlierVersions) {
  const auto forget = [](const std::filesystem::path& directory) {
    std::vector<std::string> damaged;
    const CheckpointDirectory files({.directory = directory});
    CheckpointContents contents = files.read_newest(damaged).value();
    EXPECT_FALSE(contents.said.empty());
    contents.said.clear();
    std::erase_if(contents.arrays, [](const NamedArray& array) { return array.name.starts_with("history/"); });
    files.write(contents);
  };
  const auto with = [](const Schedule& rate) { return program_of<SGD>(SGDOptions{.learning_rate = rate}); };
  const Schedule cosine = CosineDecay({.initial_learning_rate = 0.02, .decay_steps = 100});
  const auto resumed = [&](const Schedule& before, const Schedule& after) {
    const TestDirectory directory("resumed_earlier");
    run(with(before), 1, directory);
    forget(directory);
    return run(with(after), 2, directory);
  };
  expect_same(resumed(0.02, 0.02), run(with(0.02), 2, {}), "numbers");
  EXPECT_EQ(resumed(0.02, 0.02).said, "");
  expect_same(resumed(cosine, cosine), run(with(cosine), 2, {}), "functions");
  const Outcome other = resumed(0.02, 0.01);
  EXPECT_EQ(other.rate, 0.02) << "as these versions had it";
  expect_says(other.said, "learning_rate 0.02 from the checkpoint (the program has 0.01)");
  const Outcome number = resumed(cosine, 0.01);
  EXPECT_EQ(number.rate, 0.01) << "there is no function that the checkpoint's could be";
  expect_says(number.said, "learning_rate 0.01 from the program (the checkpoint had a function of the step)");
}

TEST(RestoredByHand, RatesStayWithTheirPrograms) {
  const Schedule cosine = CosineDecay({.initial_learning_rate = 0.02, .decay_steps = 100});
  const auto restored = [](const Schedule& before, const Schedule& after, std::optional<double> set_later = {}) {
    const TestDirectory directory("restored_rates");
    Sequential model{Dense(1)};
    model.build({f32, {any_size, 3}});
    const auto step = [&](Optimizer& optimizer) {
      GradientTape tape;
      const Tensor x = ones({2, 3});
      optimizer.apply_gradients(tape.gradient(Loss::mean(model(x)), model.trainable_variables()));
    };
    SGD saved({.learning_rate = before}), loaded({.learning_rate = after});
    step(saved);
    if (set_later) saved.set_learning_rate(*set_later);
    Checkpoints({.directory = directory}, model, saved).save(1);
    testing::internal::CaptureStderr();
    Checkpoints({.directory = directory}, model, loaded).restore();
    step(loaded);
    for (const Variable& variable : model.variables())
      EXPECT_TRUE(reduce_all(is_finite(variable.value())).to_vector<bool>()[0]);
    return std::pair{loaded.learning_rate(), testing::internal::GetCapturedStderr()};
  };
  EXPECT_EQ(restored(cosine, 0.01).first, 0.01);
  expect_says(restored(cosine, 0.01).second, "learning_rate 0.01 from the program (the checkpoint had CosineDecay(");
  EXPECT_EQ(restored(0.01, cosine).first, cosine(2));
  expect_says(restored(0.01, cosine).second, "from the program (the checkpoint had 0.01)");
  EXPECT_EQ(restored(0.01, 0.001).first, 0.001);
  EXPECT_EQ(restored(0.01, 0.01), (std::pair{0.01, std::string()}));
  EXPECT_EQ(restored(0.01, 0.01, 0.003), (std::pair{0.003, std::string()})) << "set after the first step it is state";
}

}  // namespace
}  // namespace gradus::resumed_options_test
