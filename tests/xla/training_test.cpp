/// Training on a device of a plugin: the numbers, how often the host waits, what is compiled.
#include "gradus/function/program_cache.h"
#include "tests/xla/plugin.h"

namespace gradus::training_test {
namespace {

using TrainingOnPlugin = testing_plugin::WithPlugin;

Tensor inputs() { return random::normal({64, 12}, {.seed = 5}); }
Tensor labels() { return random::integers({64}, {.high = 4, .seed = 9}); }

struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<float>> variables;
};

Trained trained_on(const Device& device, int steps) {
  set_seed(3);
  const Tensor x = inputs(), y = labels();
  const DeviceScope scope(device);
  Sequential model{Dense(16, {.activation = tanh}), Dense(4)};
  Adam optimizer({.learning_rate = 1e-2});
  auto step = function([&](Tensor features, Tensor numbers) {
    GradientTape tape;
    Loss loss = Loss::mean(sparse_categorical_crossentropy(numbers, model(features, training), from_logits));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  Trained all;
  for (int i = 0; i < steps; ++i) all.losses.push_back(step(x, y).item());
  for (const Variable& w : model.variables()) all.variables.push_back(w.value().to_vector<float>());
  for (const Variable& w : optimizer.variables())
    if (w.dtype() == f32) all.variables.push_back(w.value().to_vector<float>());
  return all;
}

TEST_F(TrainingOnPlugin, GivesTheNumbersOfTheProcessor) {
  const Trained here = trained_on(cpu(0), 20), there = trained_on(device(), 20);
  ASSERT_EQ(here.losses.size(), there.losses.size());
  for (std::size_t i = 0; i < here.losses.size(); ++i)
    EXPECT_NEAR(here.losses[i], there.losses[i], 1e-5 * here.losses[i]) << i;
  ASSERT_EQ(here.variables.size(), there.variables.size());
  for (std::size_t v = 0; v < here.variables.size(); ++v) {
    ASSERT_EQ(here.variables[v].size(), there.variables[v].size());
    for (std::size_t i = 0; i < here.variables[v].size(); ++i)
      EXPECT_NEAR(here.variables[v][i], there.variables[v][i], 1e-4f) << v << ' ' << i;
  }
  EXPECT_LT(there.losses.back(), 0.9 * there.losses.front());
}

/// A model of its own with a step.
struct Training {
  Sequential model{Dense(16, {.activation = tanh}), Dense(4)};
  Adam optimizer{{.learning_rate = 1e-2}};
  struct Step {
    Training& of;
    Tensor operator()(Tensor features, Tensor numbers) const {
      GradientTape tape;
      Loss loss = Loss::mean(sparse_categorical_crossentropy(numbers, of.model(features, training), from_logits));
      of.optimizer.apply_gradients(tape.gradient(loss, of.model.trainable_variables()));
      return loss.value();
    }
  };
  Function<Step> step = function(Step{*this});

  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Variable& w : model.variables()) all.push_back(w.value().to_vector<float>());
    for (const Variable& w : optimizer.variables())
      if (w.dtype() == f32) all.push_back(w.value().to_vector<float>());
    return all;
  }
};

TEST_F(TrainingOnPlugin, ALoopWaitsForNothingButWhatIsAskedFor) {
  const DeviceScope scope(device());
  set_seed(3);
  Training t;
  const Tensor x = inputs(), y = labels();
  t.step(x, y);
  synchronize();
  const std::size_t live = memory_use(device()).live_bytes;
  reset_peak_memory(device());
  done();
  Tensor loss;
  for (int i = 0; i < 100; ++i) loss = t.step(x, y);
  const Done of_loop = done();
  EXPECT_EQ(of_loop.runs, 100);
  EXPECT_EQ(of_loop.waits, 0);
  EXPECT_EQ(of_loop.compilations, 0);
  EXPECT_EQ(of_loop.uploads, 0) << "what does not change is there";
  EXPECT_GT(loss.item(), 0);
  EXPECT_EQ(done().waits, 2) << "the loss, and whether anything has failed";
  EXPECT_LE(memory_use(device()).live_bytes, live + 64);
  EXPECT_LE(memory_use(device()).peak_bytes, live + 64) << "Variables are donated, so that there is one of each";
}

TEST_F(TrainingOnPlugin, AFailureAtAStepLeavesAllLaterOnesWithoutEffect) {
  const DeviceScope scope(device());
  const Tensor x = inputs(), y = labels();
  const Tensor wrong = where(equal(range(64), 17), fill({64}, 99, i32), cast(y, i32));
  const Tensor right = cast(y, i32);
  set_seed(3);
  Training short_one;
  for (int i = 0; i < 2; ++i) short_one.step(x, right);
  set_seed(3);
  Training t;
  std::vector<Tensor> losses;
  synchronize();
  done();
  for (int i = 0; i < 100; ++i) losses.push_back(t.step(x, i == 2 ? wrong : right));
  EXPECT_EQ(done().waits, 0);
  std::string of_processor, of_device;
  try {
    losses[50].item();
  } catch (const OutOfRange& error) { of_device = error.what(); }
  try {
    const DeviceScope on_processor(cpu(0));
    sparse_categorical_crossentropy(wrong.to(cpu(0)), zeros({64, 4}), from_logits).to_vector<float>();
  } catch (const OutOfRange& error) { of_processor = error.what(); }
  EXPECT_EQ(of_device, of_processor);
  EXPECT_NE(of_device.find("99"), std::string::npos) << of_device;
  EXPECT_EQ(short_one.values(), t.values()) << "as after two steps";
  EXPECT_NO_THROW(losses[0].item());
  EXPECT_NO_THROW(losses[1].item());
  for (const int i : {2, 3, 50, 99}) EXPECT_THROW(losses[static_cast<std::size_t>(i)].item(), OutOfRange) << i;
  EXPECT_THROW((losses[3] + 1).item(), OutOfRange) << "what follows from them";
  // It goes on as if nothing had been.
  const double next = t.step(x, right).item(), expected = short_one.step(x, right).item();
  EXPECT_EQ(next, expected);
  EXPECT_EQ(short_one.values(), t.values());
}

TEST_F(TrainingOnPlugin, WithoutAFunctionLittleIsCompiled) {
  const DeviceScope scope(device());
  set_seed(3);
  Sequential model{Dense(16, {.activation = tanh}), Dense(4)};
  Adam optimizer({.learning_rate = 1e-2});
  const Tensor x = inputs(), y = labels();
  std::vector<double> losses;
  for (int i = 0; i < 20; ++i) {
    GradientTape tape;
    Loss loss = Loss::mean(sparse_categorical_crossentropy(y, model(x, training), from_logits));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    losses.push_back(loss.value().item());
  }
  const Done all = done();
  EXPECT_LE(all.compilations, 4) << all.runs << " runs, " << all.on_host << " by the processor";
  EXPECT_LT(losses.back(), losses.front());
  const Trained there = trained_on(device(), 20);
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], there.losses[i], 1e-5 * losses[i]) << i;
}

TEST_F(TrainingOnPlugin, SizesThatVaryShareAVariant) {
  const DeviceScope scope(device());
  set_seed(3);
  Training t;
  const Tensor x = inputs(), y = labels();
  for (const int rows : {64, 40, 64, 24, 40}) t.step(slice(x, {0, 0}, {rows, 12}), slice(y, {0}, {rows}));
  const std::string explained = text(t.step.explain());
  EXPECT_NE(explained.find("code for the sizes"), std::string::npos) << explained;
  EXPECT_NE(explained.find("40"), std::string::npos) << explained;
}

/// Code of a plugin takes more of a process than its text: mappings, of which there may be 65,530.
TEST_F(TrainingOnPlugin, CodeOfEagerStructuresCountsInTheCache) {
  const DeviceScope scope(device());
  const Tensor x = random::normal({8, 16}, {.seed = 1});
  for (int length = 1; length <= 3; ++length) {
    const std::size_t before = program_cache_use().bytes;
    for (int sight = 0; sight < 3; ++sight) {
      Tensor y = x;
      for (int i = 0; i < length; ++i) y = sin(matmul(matmul(y, x, {.transpose_b = true}), x));
      reduce_max(y).item();
    }
    EXPECT_GE(program_cache_use().bytes - before, std::size_t{1} << 20) << length;
  }
}

}  // namespace
}  // namespace gradus::training_test
