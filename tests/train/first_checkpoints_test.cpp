/// Checkpoints from before the optimizer's first step: its slots are not there yet, and restoring gives the same
/// training whatever the optimizer has done by then.
#include <gtest/gtest.h>
#include "gradus/base/rooms.h"
#include "gradus/function/loss_scale.h"
#include "gradus/gradus.h"
#include "gradus/nn/layer.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace gradus::first_checkpoints_test {
namespace {

struct Kind {
  const char* name;
  std::function<Optimizer()> make;
  Policy policy = float32;
};

std::vector<Kind> kinds() {
  return {{"adam", [] { return Adam(); }},
          {"sgd", [] { return SGD(); }},
          {"sgd_momentum", [] { return SGD({.momentum = 0.9}); }},
          {"nadam", [] { return Nadam(); }},
          {"adagrad", [] { return Adagrad({.initial_accumulator_value = 0.3}); }},
          {"averages", [] { return Adam({.use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 2}); }},
          {"loss_scale", [] { return Adam(); }, mixed_float16},
          {"loss_scale_without_slots", [] { return SGD(); }, mixed_float16}};
}

struct Training {
  Sequential model;
  Optimizer optimizer;
  Tensor x = random::normal({8, 3}, {.seed = 1}), y = random::normal({8, 2}, {.seed = 2});

  explicit Training(const Kind& kind)
      : model({Dense(4, tanh), BatchNormalization(), Dropout(0.3), Dense(2)}, {.policy = kind.policy}),
        optimizer(kind.make()) {
    model.build({f32, {any_size, 3}});
  }
  void step() {
    GradientTape tape;
    const Tensor error = cast(model(x, training), f32) - y;
    optimizer.apply_gradients(tape.gradient(Loss::mean(square(error)), model.trainable_variables()));
  }
  Tensors after_steps(int steps) {
    for (int i = 0; i < steps; ++i) step();
    Tensors all;
    for (const Variable& variable : model.variables() + optimizer.variables()) all.push_back(variable.value());
    for (const Tensor& value : all) value.observed();
    return all;
  }
};

void expect_same(const Tensors& got, const Tensors& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(bitwise_equal(got[i], want[i])) << what << ", " << i;
}

TEST(FirstCheckpoints, GoOnBitForBitWhateverTheOptimizerHasDone) {
  for (const Kind& kind : kinds())
    for (const int steps_before : {0, 3}) {
      const TestDirectory directory("first_checkpoints");
      set_seed(3);
      Training saved(kind);
      for (int i = 0; i < steps_before; ++i) saved.step();
      Checkpoints({.directory = directory}, saved.model, saved.optimizer).save(steps_before);
      const Tensors want = saved.after_steps(3);
      enum class Target { fresh, built, stepped, compiled };
      for (const Target target : {Target::fresh, Target::built, Target::stepped, Target::compiled}) {
        const std::string what = text(kind.name, " after ", steps_before, ", target ", static_cast<int>(target));
        Training loaded(kind);
        const auto step = function([&] { loaded.step(); });
        if (target == Target::built) loaded.optimizer.build(loaded.model.trainable_variables());
        if (target == Target::stepped) loaded.after_steps(2);
        if (target == Target::compiled) step(), step();
        const auto restored = Checkpoints({.directory = directory}, loaded.model, loaded.optimizer).restore();
        ASSERT_TRUE(restored.has_value()) << what;
        EXPECT_EQ(loaded.optimizer.iterations(), steps_before) << what;
        if (target == Target::compiled) {
          Training same(kind);  // the compiled one draws other numbers
          Checkpoints({.directory = directory}, same.model, same.optimizer).restore();
          const auto its_step = function([&] { same.step(); });
          set_seed(9);
          for (int i = 0; i < 3; ++i) its_step();
          const Tensors of_its = same.after_steps(0);
          set_seed(9);
          for (int i = 0; i < 3; ++i) step();
          expect_same(loaded.after_steps(0), of_its, what);
        } else expect_same(loaded.after_steps(3), want, what);
      }
    }
}

TEST(FirstCheckpoints, KeepTheLossScaleOfTheModel) {
  const TestDirectory directory("first_checkpoints_scale");
  const Kind kind{"", [] { return Adam(); }, mixed_float16};
  Training saved(kind), loaded(kind);
  saved.model.layer_behind().loss_scale()->variables()[0].assign(full({}, 64, f32));
  Checkpoints({.directory = directory}, saved.model, saved.optimizer).save(0);
  loaded.step();
  Checkpoints({.directory = directory}, loaded.model, loaded.optimizer).restore();
  EXPECT_EQ(loaded.model.loss_scale(), 64);
  EXPECT_EQ(loaded.optimizer.skipped_steps(), 0);
}

TEST(FirstCheckpoints, OfAnotherModelAreRefused) {
  const TestDirectory directory("first_checkpoints_other");
  const Kind kind = kinds()[0];
  Training saved(kind);
  Checkpoints({.directory = directory}, saved.model, saved.optimizer).save(0);
  Sequential other{Dense(4)};
  other.build({f32, {any_size, 3}});
  Adam optimizer;
  expect_says(error_of<InvalidArgument>([&] { Checkpoints({.directory = directory}, other, optimizer).restore(); }),
              "this model and optimizer do not have");
  // Part of the slots is none from before the first step.
  const TestDirectory half("first_checkpoints_half");
  saved.optimizer.build(Variables(saved.model.variables()[0]));
  Checkpoints({.directory = half}, saved.model, saved.optimizer).save(0);
  Training loaded(kind);
  loaded.step();
  expect_says(
      error_of<InvalidArgument>([&] { Checkpoints({.directory = half}, loaded.model, loaded.optimizer).restore(); }),
      "has no `optimizer/");
}

/// What fit finds in its directory may be of before the first step.
TEST(FirstCheckpoints, FitGoesOnFromThem) {
  const auto data =
      data::from_tensor_slices(random::normal({32, 3}, {.seed = 1}), random::normal({32, 2}, {.seed = 2})).batch(8);
  const auto losses = [&](bool is_restored) {
    const TestDirectory directory("first_checkpoints_fit");
    set_seed(3);
    Training first(kinds()[0]), other(kinds()[0]);
    other.after_steps(2);
    set_seed(5);
    Checkpoints({.directory = directory}, first.model, first.optimizer).save(0);
    Training& used = is_restored ? other : first;
    return fit(used.model, used.optimizer, MeanSquaredError(), data,
               {.epochs = 2, .checkpoints = CheckpointOptions{.directory = directory}, .verbose = false})
        .loss;
  };
  EXPECT_EQ(losses(true), losses(false));
}

}  // namespace
}  // namespace gradus::first_checkpoints_test
