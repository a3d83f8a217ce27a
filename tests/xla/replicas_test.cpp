/// MirroredStrategy on devices of one plugin: one executable of which each device runs a replica. Numbers are those of
/// the processor's strategy, for batches that divide evenly and for others; nothing goes through the host.
#include "gradus/base/rooms.h"
#include "gradus/nn/embedding.h"
#include "gradus/base/numbered.h"
#include "gradus/nn/normalization.h"
#include "tests/errors.h"
#include "tests/test_directory.h"
#include "tests/xla/plugin.h"

namespace gradus::replicas_test {
namespace {

/// A test with several devices of the plugin.
class Replicas : public testing_plugin::WithPlugin {
 protected:
  void SetUp() override {
    WithPlugin::SetUp();
    if (!IsSkipped() && devices(device().kind).size() < 4)
      GTEST_SKIP() << "NOT TESTED: the plugin has fewer than 4 devices";
  }
  std::vector<Device> there(int n) const {
    std::vector<Device> all;
    for (int i = 0; i < n; ++i) all.push_back(device(i));
    return all;
  }
  static std::vector<Device> here(int n) {
    std::vector<Device> all;
    for (int i = 0; i < n; ++i) all.push_back(cpu(i));
    return all;
  }
};

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return a.shape() == b.shape() && a.shape().size() > 0
             ? reduce_max(abs(cast(a.to(cpu(0)), f64) - cast(b.to(cpu(0)), f64))).item()
             : 0;
}

Tensor labels(std::int64_t n, std::int64_t classes) {
  return cast(random::integers({n}, {.high = classes, .seed = 9}), i32);
}

/// What a training leaves.
struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> variables;
};

struct Batches {
  Tensor x, y;
  std::vector<std::int64_t> rows;  // of each step: the first ones
};

template <class Make> Trained trained(const Strategy& strategy, const Batches& batches, Make make) {
  set_seed(7);
  Sequential model = make();
  Adam optimizer({.learning_rate = 1e-3});
  SparseCategoricalCrossentropy loss_of{from_logits};
  const auto step = function([&](Tensor features, Tensor numbers) {
    GradientTape tape;
    Loss loss = loss_of(numbers, model(features, training));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  Trained all;
  for (const std::int64_t rows : batches.rows)
    all.losses.push_back(strategy.run(step, batches.x.rows(0, rows), batches.y.rows(0, rows)).item());
  for (const Variable& w : model.variables() + optimizer.variables()) all.variables.push_back(w.value());
  return all;
}

template <class Make>
void expect_alike(const std::vector<Device>& here, const std::vector<Device>& there, int micro_shards,
                  const Batches& batches, double tolerance, Make make) {
  const auto with = [&](const std::vector<Device>& devices) {
    return trained(MirroredStrategy({.devices = devices, .micro_shards = micro_shards}), batches, make);
  };
  const Trained expected = with(here), found = with(there);
  const std::string what = text(here.size(), " devices, ", micro_shards, " shards");
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance * std::abs(expected.losses[i]))
        << what << ", step " << i;
  ASSERT_EQ(found.variables.size(), expected.variables.size());
  for (std::size_t v = 0; v < expected.variables.size(); ++v)
    EXPECT_LT(largest_difference(found.variables[v], expected.variables[v]), 100 * tolerance) << what << ' ' << v;
}

std::vector<std::int64_t> steps(int n, std::int64_t rows) { return std::vector<std::int64_t>(at(n), rows); }

Sequential perceptron() { return Sequential{Dense(32, tanh), Dropout(0.5), Dense(5)}; }
Sequential convolutions() {
  Sequential model;
  model.add(Conv2D(8, 3, {.padding = Padding::same, .use_bias = false}));
  model.add(BatchNormalization());
  model.add(Lambda([](const Tensor& x) { return tanh(x); }));
  model.add(AveragePooling2D());
  model.add(Flatten());
  model.add(Dense(5));
  return model;
}

TEST_F(Replicas, PerceptronWithDropoutIsThatOfTheProcessor) {
  const Batches batches{random::normal({32, 20}, {.seed = 5}), labels(32, 5), steps(20, 32)};
  for (const int n : {1, 4}) expect_alike(here(n), there(n), 0, batches, 1e-5, perceptron);
  expect_alike(here(2), there(2), 4, batches, 1e-5, perceptron);
}

TEST_F(Replicas, ConvolutionsWithBatchNormalizationAreThoseOfTheProcessor) {
  const Batches batches{random::normal({16, 8, 8, 3}, {.dtype = f64, .seed = 5}), labels(16, 5), steps(20, 16)};
  for (const int n : {2, 4}) expect_alike(here(n), there(n), 0, batches, 1e-9, convolutions);
}

/// Batches that do not divide, replicas without rows, more shards than a multiple of the devices.
TEST_F(Replicas, UnevenBatchesAreThoseOfTheProcessor) {
  const auto batches = [](std::vector<std::int64_t> rows) {
    return Batches{random::normal({32, 20}, {.seed = 5}), labels(32, 5), std::move(rows)};
  };
  expect_alike(here(4), there(4), 0, batches({32, 10, 3, 32, 10}), 1e-5, perceptron);
  expect_alike(here(4), there(4), 6, batches({10, 32}), 1e-5, perceptron);
  expect_alike(here(3), {device(3), device(0), device(2)}, 5, batches({13}), 1e-5, perceptron);
}

TEST_F(Replicas, TablesAndNarrowSumsAreThoseOfTheProcessor) {
  const Batches batches{cast(random::integers({30, 3}, {.high = 500, .seed = 4}), i32), labels(30, 5), {30, 26, 3}};
  const auto make = [] { return Sequential{Embedding(500, 4), Flatten(), Dense(5)}; };
  expect_alike(here(4), there(4), 0, batches, 1e-5, make);
  expect_alike(here(2), there(2), 6, batches, 1e-5, make);
  const Batches plain{random::normal({32, 20}, {.seed = 5}), labels(32, 5), steps(5, 30)};
  const auto narrow_of = [&](const std::vector<Device>& devices) {
    return trained(MirroredStrategy({.devices = devices, .bf16_sums = true}), plain, perceptron).losses.back();
  };
  EXPECT_NEAR(narrow_of(there(2)), narrow_of(here(2)), 1e-2);
}

// ---------------------------------------------------------------- where things are

/// A model of its own with a step.
struct Training {
  Sequential model{Dense(16, {.activation = tanh}), Dense(4)};
  Adam optimizer{{.learning_rate = 1e-2}};
  struct Step {
    Training& of;
    Loss operator()(Tensor features, Tensor numbers) const {
      GradientTape tape;
      Loss loss = Loss::mean(sparse_categorical_crossentropy(numbers, of.model(features, training), from_logits));
      of.optimizer.apply_gradients(tape.gradient(loss, of.model.trainable_variables()));
      return loss;
    }
  };
  Function<Step> step = function(Step{*this});

  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Variable& w : model.variables() + optimizer.variables())
      if (w.dtype() == f32) all.push_back(w.value().to_vector<float>());
    return all;
  }
};

TEST_F(Replicas, ALoopWaitsForNothingAndBringsOnlyRows) {
  set_seed(3);
  Training t;
  const MirroredStrategy strategy({.devices = there(4)});
  const Tensor x = random::normal({64, 12}, {.seed = 5}), y = labels(64, 4);
  done();
  strategy.run(t.step, x, y);
  const Done of_first = done();
  EXPECT_EQ(of_first.compilations, 1);
  EXPECT_EQ(of_first.runs, 1);
  EXPECT_EQ(of_first.waits, 0);
  synchronize();
  std::vector<std::size_t> live;
  for (int i = 0; i < 4; ++i) live.push_back(memory_use(device(i)).live_bytes), reset_peak_memory(device(i));
  done();
  Loss loss;
  for (int i = 0; i < 100; ++i) loss = strategy.run(t.step, x, y);
  const Done of_loop = done();
  EXPECT_EQ(of_loop.runs, 100);
  EXPECT_EQ(of_loop.waits, 0);
  EXPECT_EQ(of_loop.compilations, 0);
  EXPECT_EQ(of_loop.uploads, 100 * 4 * 2) << "the rows of each device";
  EXPECT_GT(loss.item(), 0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_LE(memory_use(device(i)).live_bytes, live[at(i)] + 2048) << i;
    EXPECT_LE(memory_use(device(i)).peak_bytes, live[at(i)] + 4096) << "there is one of each Variable on device " << i;
  }
  const std::string explained = text(strategy.explain(t.step));
  EXPECT_NE(explained.find("one executable on 4 devices"), std::string::npos) << explained;
}

TEST_F(Replicas, VariablesAreThoseOfTheProgram) {
  Training t, u;
  const MirroredStrategy one({.devices = there(4), .micro_shards = 4}), same({.devices = here(2), .micro_shards = 4});
  const Tensor x = random::normal({64, 12}, {.seed = 5}), y = labels(64, 4);
  std::vector<Tensor> before;
  for (int i = 0; i < 12; ++i) {
    if (i == 0) set_seed(3);
    one.run(t.step, x, y);
    if (i == 0) set_seed(3);
    same.run(u.step, x, y);
    if (i == 3) before.push_back(t.model.variables()[0].value());  // somebody holds it
    if (i == 5) t.optimizer.set_learning_rate(0.02), u.optimizer.set_learning_rate(0.02);
    if (i == 6)  // assigned between steps, by the processor
      for (Training* each : {&t, &u})
        for (Variable& w : each->model.variables()) w.assign(w.value() * 0.5);
    if (i == 7) t.step(x, y), u.step(x, y);  // without a strategy
    if (i == 8) {                            // on one device
      MirroredStrategy({.devices = {device(2)}}).run(t.step, x, y);
      MirroredStrategy({.devices = {cpu(0)}}).run(u.step, x, y);
    }
    if (i == 9)
      MirroredStrategy({.devices = {device(2), device(1)}, .micro_shards = 4}).run(t.step, x, y),
          same.run(u.step, x, y);
    if (i == 10) { EXPECT_LT(largest_difference(t.model(x), u.model(x)), 1e-4); }
  }
  for (std::size_t v = 0; v < t.values().size(); ++v)
    for (std::size_t k = 0; k < t.values()[v].size(); ++k) EXPECT_NEAR(t.values()[v][k], u.values()[v][k], 1e-4);
  EXPECT_GT(largest_difference(before[0], t.model.variables()[0].value()), 1e-3);
}

/// In its lifetime new tensors are on `device`, in all threads.
class Everywhere {
 public:
  explicit Everywhere(const Device& device) { set_default_device(device); }
  ~Everywhere() { set_default_device(cpu(0)); }
};

TEST_F(Replicas, TheDefaultDeviceMayBeOneOfThem) {
  const Batches batches{random::normal({32, 20}, {.seed = 5}), labels(32, 5), {32, 32, 30, 3, 32}};
  const auto with = [&](const std::vector<Device>& devices) {
    return trained(MirroredStrategy({.devices = devices}), batches, perceptron);
  };
  const Trained expected = with(here(3));
  const Everywhere scope(device(1));
  const Trained found = with(there(3)), elsewhere = with({device(3), device(2), device(0)});
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-5) << i;
    EXPECT_NEAR(elsewhere.losses[i], expected.losses[i], 1e-5) << i;
  }
}

// ---------------------------------------------------------------- what comes back

TEST_F(Replicas, GiveOneEntryEach) {
  for (const int micro_shards : {2, 4, 3}) {
    const MirroredStrategy strategy({.devices = there(2), .micro_shards = micro_shards});
    const Tensor x = reshape(range(22, f32), {11, 2});
    const auto [doubled, sums, common] = strategy.run(
        [](Tensor part) { return std::tuple{2 * part, reduce_sum(part), all_reduce_sum(reduce_sum(part))}; }, x);
    EXPECT_TRUE(bitwise_equal(doubled.concat(), 2 * x));
    EXPECT_EQ(doubled[0].shape()[0] + doubled[1].shape()[0], 11);
    EXPECT_EQ(sums.sum().item(), 231);
    EXPECT_EQ(common[1].item(), 231);
  }
  const MirroredStrategy strategy({.devices = there(4), .micro_shards = 8});
  const auto [rows, loss] =
      strategy.run([](Tensor x) { return std::pair{x, Loss::mean(x)}; }, constant(std::vector<float>{1, 2, 6}));
  EXPECT_EQ(rows.concat().to_vector<float>(), (std::vector<float>{1, 2, 6}));
  EXPECT_EQ(loss.item(), 3);
  EXPECT_EQ(loss.weight().item(), 3);
  EXPECT_EQ(rows[3].shape(), (Shape{0}));
  const auto scaled = strategy.run([](Tensor v, Tensor factor) { return v * factor; }, ones({5}), 3.0);
  EXPECT_TRUE(bitwise_equal(scaled.concat(), fill({5}, 3, f32)));
}

TEST_F(Replicas, DrawTheNumbersOfTheirShards) {
  const auto drawn = [](const std::vector<Device>& devices) {
    set_seed(9);
    const auto step = [](Tensor x) { return x + random::uniform(x.shape()); };
    return MirroredStrategy({.devices = devices, .micro_shards = 4}).run(step, zeros({13})).concat();
  };
  EXPECT_TRUE(bitwise_equal(drawn(here(1)), drawn(there(4))));
  EXPECT_TRUE(bitwise_equal(drawn(here(1)), drawn(there(3))));
}

/// Values, and gradients through them.
TEST_F(Replicas, CollectivesAreThoseOfTheProcessor) {
  Variable w(random::normal({3, 4}, {.dtype = f64, .seed = 3}), "w");
  const auto found = [&](const std::vector<Device>& devices, std::int64_t n, int root) {
    const Tensor x = random::normal({n, 3}, {.dtype = f64, .seed = 1});
    const Tensor integers = cast(random::integers({n, 2}, {.high = 9, .seed = 2}), i16);
    const auto step = [&](Tensor rows, Tensor numbers) {
      GradientTape tape;
      const Tensor z = matmul(rows, w.value());
      const Tensor gathered = all_gather(tanh(z)), sum = reduce_sum(square(z), {.axis = {0}});
      const Tensor first = broadcast(sum, root), mean = all_reduce_mean(sum), part = reduce_scatter(sum * mean);
      const Loss loss = Loss::mean(square(z)) + reduce_sum(gathered) * 0.1 + reduce_sum(first * mean) * 0.01;
      const Tensor scattered = all_gather(part);
      return std::tuple{tape.gradient(loss, w), gathered, all_gather(numbers > 4),
                        all_gather(numbers),    first,    scattered};
    };
    const auto [gradient, a, b, c, d, e] =
        MirroredStrategy({.devices = devices, .micro_shards = 4}).run(step, x, integers);
    return Tensors{gradient[0], a[0], cast(b[0], f64), cast(c[0], f64), d[0], e[0]};
  };
  for (const std::int64_t n : {16, 13})
    for (const int root : {0, 3}) {
      const Tensors expected = found(here(2), n, root);
      for (const int replicas : {2, 3, 4}) {
        const Tensors there_found = found(there(replicas), n, root);
        for (std::size_t k = 0; k < expected.size(); ++k)
          EXPECT_LT(largest_difference(there_found[k], expected[k]), 1e-11)
              << n << ' ' << root << ' ' << replicas << ' ' << k;
      }
    }
}

TEST_F(Replicas, VariablesAreAggregatedAsTheySay) {
  const auto found = [](const std::vector<Device>& devices) {
    Variable mean(zeros({}), "mean", {.aggregation = Aggregation::mean});
    Variable sum(zeros({}), "sum", {.aggregation = Aggregation::sum}), count(zeros({}), "count");
    const MirroredStrategy strategy({.devices = devices, .micro_shards = 4});
    const auto step = function([&](Tensor x) {
      mean.assign(reduce_sum(x));
      sum.assign_add(reduce_sum(x));
      count.assign_add(all_reduce_sum(ones({})));
    });
    for (int i = 0; i < 3; ++i) strategy.run(step, range(13, f32));
    return std::vector<double>{mean.value().item(), sum.value().item(), count.value().item()};
  };
  EXPECT_EQ(found(here(2)), found(there(4)));
}

TEST_F(Replicas, BranchOnWhatAllHaveInCommon) {
  const MirroredStrategy strategy({.devices = there(2), .micro_shards = 4});
  const auto step = function([](Tensor x) {
    const Tensor y = square(x);
    if (all_reduce_sum(reduce_sum(y)) > 100) return y * 0.5 - x;
    return y * 2 + x;
  });
  for (const std::int64_t rows : {8, 3})
    for (const double value : {0.5, 5.0, 0.25, 7.0}) {
      const Tensor x = range(rows, f32) * value, y = square(x);
      const Tensor expected = reduce_sum(y).item() > 100 ? y * 0.5 - x : y * 2 + x;
      EXPECT_LT(largest_difference(strategy.run(step, x).concat(), expected), 1e-3) << rows << ' ' << value;
    }
}

// ---------------------------------------------------------------- what goes wrong

TEST_F(Replicas, AFailureOnOneOfThemIsOneOfAll) {
  const Tensor x = random::normal({64, 12}, {.seed = 5}), right = labels(64, 4);
  const Tensor wrong = where(equal(range(64), 41), fill({64}, 99, i32), right);
  const MirroredStrategy strategy({.devices = there(4)});
  set_seed(3);
  Training short_one;
  for (int i = 0; i < 2; ++i) strategy.run(short_one.step, x, right);
  set_seed(3);
  Training t;
  std::vector<Loss> losses;
  synchronize();
  done();
  for (int i = 0; i < 100; ++i) losses.push_back(strategy.run(t.step, x, i == 2 ? wrong : right));
  EXPECT_EQ(done().waits, 0);
  expect_error<OutOfRange>([&] { losses[50].item(); }, {"99"});
  EXPECT_EQ(short_one.values(), t.values()) << "as after two steps";
  EXPECT_NO_THROW(losses[0].item());
  EXPECT_NO_THROW(losses[1].item());
  for (const int i : {2, 3, 50, 99}) EXPECT_THROW(losses[at(i)].item(), OutOfRange) << i;
  // It goes on as if nothing had been, and it was told once.
  synchronize();
  const double next = strategy.run(t.step, x, right).item(), expected = strategy.run(short_one.step, x, right).item();
  EXPECT_EQ(next, expected);
  EXPECT_EQ(short_one.values(), t.values());
}

/// What a program of one device has found, and nobody has heard of, keeps a step of all from changing anything.
TEST_F(Replicas, AFailureOfOneDeviceBeforeIsOneOfAll) {
  const Tensor x = random::normal({64, 12}, {.seed = 5}), y = labels(64, 4);
  const MirroredStrategy strategy({.devices = there(4)});
  set_seed(3);
  Training t;
  strategy.run(t.step, x, y);
  const auto before = t.values();
  const auto rows = function([](Tensor table, Tensor i) { return gather(table, i); });
  const Tensor table = ones({4, 2}).to(device(2)), row = from_values<std::int32_t>({77}, {1}).to(device(2));
  const Tensor of_nothing = rows(table, row);
  for (int i = 0; i < 3; ++i) strategy.run(t.step, x, y);
  expect_error<OutOfRange>([&] { t.values(); }, {"77"});
  EXPECT_EQ(t.values(), before);
  EXPECT_THROW(of_nothing.to_vector<float>(), OutOfRange);
  EXPECT_NO_THROW(strategy.run(t.step, x, y).item());
  EXPECT_NE(t.values(), before);
}

TEST_F(Replicas, WhatIsNoOneProgramIsAddedUpByTheHost) {
  const Batches batches{random::normal({80, 20}, {.seed = 5}), labels(80, 5), {80, 80}};
  expect_alike(here(2), there(2), 40, batches, 1e-5, perceptron);
  expect_alike({cpu(0), cpu(1)}, {device(0), cpu(1)}, 4, batches, 1e-5, perceptron);
  Training t;
  const MirroredStrategy strategy({.devices = there(2), .micro_shards = 40});
  strategy.run(t.step, random::normal({80, 12}, {.seed = 5}), labels(80, 4));
  const std::string explained = text(strategy.explain(t.step));
  EXPECT_NE(explained.find("the host adds up: a device has 20 shards"), std::string::npos) << explained;
  int sums = 0;
  const Strategy own(there(2), [&](const ReplicaSum&, const std::vector<Tensor>& parts) {
    ++sums;
    return std::vector<Tensor>(parts.size(), parts[0] + parts[1]);
  });
  own.run(t.step, random::normal({8, 12}, {.seed = 5}), labels(8, 4));
  EXPECT_GT(sums, 0);
}

// ---------------------------------------------------------------- the whole of a training

struct Fitted {
  std::vector<double> losses;
  Evaluation evaluation;
  std::vector<float> predicted;
};

TEST_F(Replicas, FitEvaluatePredictAndCheckpointsAreAsOnTheProcessor) {
  const Tensor x = random::normal({300, 4}, {.seed = 1}), y = argmax(x);
  const Dataset<2> batches = data::from_tensor_slices(x, y).shuffle({.seed = 3}).batch(32).prefetch();
  const SparseCategoricalCrossentropy loss{from_logits};
  const auto fresh = [] {
    set_seed(5);
    Sequential made{Dense(16, relu), BatchNormalization(), Dropout(0.1), Dense(4)};
    made.build({f32, {any_size, 4}});
    return made;
  };
  const EmptyTestDirectory folder;
  const auto fitted = [&](const std::vector<Device>& devices, const char* name) {
    const MirroredStrategy strategy({.devices = devices, .micro_shards = 4});
    Sequential model = fresh();
    Adam optimizer({.learning_rate = 0.02});
    Fitted all;
    all.losses = fit(model, optimizer, loss, batches,
                     {.epochs = 2, .metrics = {SparseCategoricalAccuracy()}, .strategy = strategy, .verbose = false})
                     .loss;
    all.evaluation = evaluate(model, loss, batches, {.metrics = {SparseCategoricalAccuracy()}, .strategy = strategy});
    all.predicted = predict(model, x, {.strategy = strategy}).to_vector<float>();
    Checkpoints({.directory = folder.path() / name}, model, optimizer).save(7);
    return all;
  };
  const Fitted expected = fitted(here(2), "here");
  done();
  const Fitted found = fitted(there(4), "there");
  EXPECT_EQ(done().on_host, 0);
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i], 1e-4 * expected.losses[i]) << i;
  EXPECT_NEAR(found.evaluation.loss, expected.evaluation.loss, 1e-4);
  ASSERT_EQ(found.predicted.size(), expected.predicted.size());
  for (const char* name : {"here", "there"}) {  // each is read on both
    Sequential model = fresh();
    Adam optimizer({.learning_rate = 0.02});
    EXPECT_EQ(Checkpoints({.directory = folder.path() / name}, model, optimizer).restore()->step, 7);
    const std::vector<float> again =
        predict(model, x, {.strategy = MirroredStrategy({.devices = there(2)})}).to_vector<float>();
    for (std::size_t i = 0; i < again.size(); ++i)
      EXPECT_NEAR(again[i], expected.predicted[i], 1e-3) << name << ' ' << i;
  }
}

TEST_F(Replicas, CodeIsKeptInAFolderThatIsAskedFor) {
  const EmptyTestDirectory folder;
  setenv("GRADUS_XLA_CACHE", folder.path().c_str(), 1);
  const std::filesystem::path copy = folder.path() / "copy.so";
  std::filesystem::copy_file(testing_plugin::file(), copy);
  const std::vector<Device> others = load_plugin(copy.string(), "replicas_copy");
  const auto computed = [](const Device& a, const Device& b) {
    const auto step = [](Tensor x) { return all_reduce_sum(reduce_sum(sin(x) * 5)); };
    return MirroredStrategy({.devices = {a, b}}).run(step, reshape(range(14, f32), {7, 2}))[0].item();
  };
  done();
  const double first = computed(device(0), device(1));
  EXPECT_EQ(done().compilations, 1);
  EXPECT_EQ(computed(others[0], others[1]), first);
  EXPECT_EQ(done().compilations, 0) << "by the file";
  unsetenv("GRADUS_XLA_CACHE");
}

TEST_F(Replicas, AreNamedByTheirPlugin) {
  const std::vector<Device> all = devices("xla");
  EXPECT_EQ(all, there(4));
  EXPECT_EQ(devices("cpu"), std::vector{cpu(0)});
  expect_error<InvalidArgument>([] { devices("no_such_plugin"); }, {"no_such_plugin"});
  const MirroredStrategy strategy({.devices = devices("xla")});
  EXPECT_EQ(strategy.num_replicas_in_sync(), 4);
}

}  // namespace
}  // namespace gradus::replicas_test
