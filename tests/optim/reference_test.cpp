/// Loss curves of 20 steps against those of Keras 3 and PyTorch in f64, stored in reference/ by make_reference.py
/// there: each optimizer, clipping, decay, groups, moving averages, accumulation and schedules on an MLP, a
/// convolutional network with batch normalization and a block of a transformer; loss scales with steps that overflow.
/// Of the latter two models some, all of them where GRADUS_CURVES is set.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdlib>
#include <limits>
#include "gradus/formats/safetensors.h"
#include "gradus/function/function.h"
#include "gradus/function/loss_scale.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"
#include "tests/optim/reference_problems.h"

namespace gradus::reference_test {
namespace {

constexpr int steps = 20;
constexpr bool overflows(int step) { return step == 3 || step == 8 || step == 9; }

Arrays stored(const std::string& file) {
  Arrays arrays;
  for (const NamedArray& array : read_safetensors(std::filesystem::path(GRADUS_OPTIM_FOLDER) / (file + ".safetensors")))
    arrays.emplace(array.name, Tensor::of_buffer(array.spec, array.data));
  return arrays;
}

using Apply = std::function<Loss(const ReferenceProblem& problem, Optimizer& optimizer)>;

Loss whole_batch(const ReferenceProblem& problem, Optimizer& optimizer) {
  GradientTape tape;
  const Loss loss = problem.loss(problem.x, problem.y);
  optimizer.apply_gradients(tape.gradient(loss, problem.weights()));
  return loss;
}

/// Keras: an update after every second half batch, of the mean of both.
Loss accumulated(const ReferenceProblem& problem, Optimizer& optimizer) {
  Gradients gradients;
  Loss total;
  for (auto [x, y] : micro_batches({problem.x, problem.y}, problem.part)) {
    GradientTape tape;
    const Loss loss = problem.loss(x, y);
    gradients += tape.gradient(loss, problem.weights());
    total += loss;
  }
  optimizer.apply_gradients(gradients);
  return total;
}

struct Case {
  std::string name;
  std::function<Optimizer(const Variables& weights)> make;
  Apply apply = whole_batch;
};

template <class O, class Options> Case plain(const std::string& name, Options options) {
  return {name, [options](const Variables&) { return O(options); }};
}

/// `r`: times the rates of the mlp.
std::vector<Case> keras_cases(double r) {
  std::vector<Case> cases{
      plain<SGD, SGDOptions>("sgd", {.learning_rate = 0.1 * r}),
      plain<SGD, SGDOptions>("momentum", {.learning_rate = 0.05 * r, .momentum = 0.9}),
      plain<SGD, SGDOptions>("nesterov", {.learning_rate = 0.05 * r, .momentum = 0.9, .nesterov = true}),
      plain<RMSprop, RMSpropOptions>("rmsprop", {.learning_rate = 0.01 * r}),
      plain<RMSprop, RMSpropOptions>("rmsprop_momentum", {.learning_rate = 0.01 * r, .rho = 0.8, .momentum = 0.7}),
      plain<RMSprop, RMSpropOptions>("rmsprop_centered",
                                     {.learning_rate = 0.01 * r, .momentum = 0.5, .centered = true}),
      plain<Adam, AdamOptions>("adam", {.learning_rate = 0.02 * r}),
      plain<Adam, AdamOptions>("amsgrad", {.learning_rate = 0.05 * r, .beta_2 = 0.9, .amsgrad = true}),
      plain<AdamW, AdamWOptions>("adamw", {.learning_rate = 0.02 * r, .weight_decay = 0.1}),
      plain<Nadam, AdamOptions>("nadam", {.learning_rate = 0.02 * r}),
      plain<Adagrad, AdagradOptions>("adagrad", {.learning_rate = 0.1 * r}),
      plain<Adadelta, AdadeltaOptions>("adadelta", {.learning_rate = 1.0 * r}),
      plain<Adamax, AdamOptions>("adamax", {.learning_rate = 0.02 * r}),
      plain<Ftrl, FtrlOptions>("ftrl", {.learning_rate = 0.1 * r}),
      plain<Ftrl, FtrlOptions>("ftrl_regularized", {.learning_rate = 0.2 * r,
                                                    .learning_rate_power = -0.7,
                                                    .initial_accumulator_value = 0.2,
                                                    .l1_regularization_strength = 0.01,
                                                    .l2_regularization_strength = 0.02,
                                                    .l2_shrinkage_regularization_strength = 0.03,
                                                    .beta = 0.1}),
      plain<Lion, LionOptions>("lion", {.learning_rate = 0.01 * r, .weight_decay = 0.1}),
      plain<Lamb, AdamOptions>("lamb", {.learning_rate = 0.02 * r}),
      plain<Adam, AdamOptions>("clipnorm", {.learning_rate = 0.02 * r, .clipnorm = 0.05}),
      plain<SGD, SGDOptions>("global_clipnorm", {.learning_rate = 0.2 * r, .momentum = 0.9, .global_clipnorm = 0.1}),
      plain<Adagrad, AdagradOptions>("clipvalue", {.learning_rate = 0.1 * r, .clipvalue = 0.01}),
      plain<SGD, SGDOptions>("decay_of_momentum", {.learning_rate = 0.05 * r, .momentum = 0.9, .weight_decay = 0.2}),
      plain<SGD, SGDOptions>("ema", {.learning_rate = 0.1 * r,
                                     .momentum = 0.9,
                                     .use_ema = true,
                                     .ema_momentum = 0.8,
                                     .ema_overwrite_frequency = 3}),
      plain<Adam, AdamOptions>(
          "ema_of_adam",
          {.learning_rate = 0.05 * r, .use_ema = true, .ema_momentum = 0.6, .ema_overwrite_frequency = 7}),
  };
  cases.push_back({"decay_without_biases", [r](const Variables&) {
                     AdamW optimizer({.learning_rate = 0.05 * r, .weight_decay = 0.5});
                     optimizer.exclude_from_weight_decay({"bias", "beta"});
                     return optimizer;
                   }});
  cases.push_back({"accumulation",
                   [r](const Variables&) { return Adam({.learning_rate = 0.02 * r, .global_clipnorm = 0.1}); },
                   accumulated});
  const auto scheduled = [&](const std::string& name, const Schedule& schedule) {
    cases.push_back(plain<SGD, SGDOptions>(name, {.learning_rate = schedule}));
  };
  const double rate = 0.3 * r;
  scheduled("exponential_decay",
            ExponentialDecay({.initial_learning_rate = rate, .decay_steps = 4, .decay_rate = 0.7}));
  scheduled("exponential_staircase",
            ExponentialDecay({.initial_learning_rate = rate, .decay_steps = 4, .decay_rate = 0.7, .staircase = true}));
  scheduled("cosine_decay_restarts",
            CosineDecayRestarts(
                {.initial_learning_rate = rate, .first_decay_steps = 3, .t_mul = 1.5, .m_mul = 0.8, .alpha = 0.05}));
  scheduled("cosine_decay_restarts_even",
            CosineDecayRestarts({.initial_learning_rate = rate, .first_decay_steps = 5, .t_mul = 1, .m_mul = 0.9}));
  scheduled(
      "polynomial_decay",
      PolynomialDecay({.initial_learning_rate = rate, .decay_steps = 12, .end_learning_rate = 0.01 * r, .power = 2}));
  scheduled("polynomial_decay_cycle", PolynomialDecay({.initial_learning_rate = rate,
                                                       .decay_steps = 6,
                                                       .end_learning_rate = 0.01 * r,
                                                       .power = 0.5,
                                                       .cycle = true}));
  scheduled("piecewise_constant_decay", PiecewiseConstantDecay({5, 11}, {0.3 * r, 0.1 * r, 0.02 * r}));
  scheduled("inverse_time_staircase",
            InverseTimeDecay({.initial_learning_rate = rate, .decay_steps = 3, .decay_rate = 0.6, .staircase = true}));
  cases.push_back(plain<RMSprop, RMSpropOptions>(
      "inverse_time_decay",
      {.learning_rate = InverseTimeDecay({.initial_learning_rate = 0.05 * r, .decay_steps = 3, .decay_rate = 0.6})}));
  cases.push_back(plain<Adam, AdamOptions>(
      "cosine_decay",
      {.learning_rate = CosineDecay({.initial_learning_rate = 0.05 * r, .decay_steps = 12, .alpha = 0.1})}));
  cases.push_back(plain<AdamW, AdamWOptions>(
      "cosine_decay_with_warmup",
      {.learning_rate = CosineDecay(
           {.initial_learning_rate = 0, .decay_steps = 10, .warmup_steps = 5, .warmup_target = 0.05 * r})}));
  return cases;
}

std::vector<Case> torch_cases(double r) {
  std::vector<Case> cases{
      plain<SGD, SGDOptions>("sgd", {.learning_rate = 0.1 * r}),
      plain<SGD, SGDOptions>("momentum", {.learning_rate = 0.05 * r, .momentum = 0.9}),
      plain<SGD, SGDOptions>("nesterov", {.learning_rate = 0.05 * r, .momentum = 0.9, .nesterov = true}),
      plain<Adam, AdamOptions>("adam", {.learning_rate = 0.02 * r, .epsilon = 0}),
      plain<AdamW, AdamWOptions>("adamw", {.learning_rate = 0.02 * r, .weight_decay = 0.1, .epsilon = 0}),
      plain<Adadelta, AdadeltaOptions>("adadelta", {.learning_rate = 1.0 * r}),
      plain<Adamax, AdamOptions>("adamax", {.learning_rate = 0.02 * r, .epsilon = 0}),
      plain<Adagrad, AdagradOptions>("adagrad", {.learning_rate = 0.1 * r, .epsilon = 0}),
      plain<RMSprop, RMSpropOptions>("rmsprop_momentum",
                                     {.learning_rate = 0.01 * r, .rho = 0.8, .momentum = 0.7, .epsilon = 0}),
      plain<SGD, SGDOptions>("one_cycle",
                             {.learning_rate = OneCycle({.max_learning_rate = 0.4 * r, .total_steps = steps})}),
      plain<SGD, SGDOptions>("one_cycle_linear", {.learning_rate = OneCycle({.max_learning_rate = 0.4 * r,
                                                                             .total_steps = steps,
                                                                             .pct_start = 0.45,
                                                                             .linear = true,
                                                                             .div_factor = 10,
                                                                             .final_div_factor = 50})}),
  };
  cases.push_back({"groups", [r](const Variables& weights) {
                     SGD optimizer({.learning_rate = 0.05 * r, .momentum = 0.9});
                     Variables biases;
                     for (std::size_t i = 1; i < weights.size(); i += 2) biases.add(weights[i]);
                     optimizer.add_parameter_group(biases, {.learning_rate = 0.3 * r});
                     return optimizer;
                   }});
  return cases;
}

/// Gradients of deeper models that are 0, or 0 but for rounding, are not to be divided by an epsilon of 0.
std::vector<Case> torch_cases_with_epsilon(double r) {
  std::vector<Case> cases = torch_cases(r);
  std::erase_if(cases, [](const Case& c) {
    return c.name == "adam" || c.name == "adamw" || c.name == "adamax" || c.name == "rmsprop_momentum";
  });
  return cases;
}

std::vector<Case> scaled_keras_cases() {
  return {
      plain<SGD, SGDOptions>("sgd", {.learning_rate = 0.1}),
      plain<Adam, AdamOptions>("adam_cosine", {.learning_rate = CosineDecay(
                                                   {.initial_learning_rate = 0.05, .decay_steps = 12, .alpha = 0.1})}),
      plain<SGD, SGDOptions>(
          "ema",
          {.learning_rate = 0.1, .momentum = 0.9, .use_ema = true, .ema_momentum = 0.8, .ema_overwrite_frequency = 3}),
      plain<AdamW, AdamWOptions>("global_clipnorm",
                                 {.learning_rate = 0.05, .weight_decay = 0.1, .global_clipnorm = 0.1}),
      plain<Nadam, AdamOptions>("nadam", {.learning_rate = 0.02})};
}
std::vector<Case> scaled_torch_cases() {
  return {plain<SGD, SGDOptions>("momentum", {.learning_rate = 0.05, .momentum = 0.9}),
          plain<Adadelta, AdadeltaOptions>("adadelta", {.learning_rate = 1.0})};
}

/// Every curve of a file has its case.
void expect_all_used(const std::string& file, const Arrays& numbers, const std::vector<Case>& cases) {
  for (const auto& [name, array] : numbers)
    EXPECT_TRUE(!numbers.contains(name + "|end") ||
                std::ranges::any_of(cases, [&](const Case& c) { return c.name == name; }))
        << file << ": " << name;
}

void expect_curve(const std::string& what, const Arrays& numbers, const std::string& name,
                  const std::function<double(int step)>& loss, double tolerance) {
  const std::vector<double> wanted = numbers.at(name).to_vector<double>();
  for (int i = 0; i < steps; ++i)
    EXPECT_NEAR(loss(i), wanted[static_cast<std::size_t>(i)], tolerance) << what << ", " << name << ", " << i;
}

/// The first weight, and the moving statistics, which the script takes of Keras alone.
void expect_end(const std::string& what, const Arrays& numbers, const std::string& name, Optimizer& optimizer,
                const ReferenceProblem& problem, double tolerance) {
  optimizer.finalize_variable_values(problem.weights());
  const auto expect_near = [&](const Tensor& got, const std::string& wanted) {
    EXPECT_LT(max_abs_difference(cast(got, f64), numbers.at(wanted)), 10 * tolerance) << what << ", " << wanted;
  };
  expect_near(problem.weights()[0], name + "|end");
  if (numbers.contains(name + "|moving")) expect_near(problem.moving(), name + "|moving");
}

bool is_run(const std::string& kind, const std::string& name) {
  const std::vector<std::string> always{"adam", "global_clipnorm", "ema", "accumulation", "one_cycle"};
  return kind == "mlp" || std::getenv("GRADUS_CURVES") || std::ranges::find(always, name) != always.end();
}

struct Precision {
  DType type;
  double tolerance;
};
constexpr Precision precisions[] = {{f64, 1e-8}, {f32, 2e-4}};

void expect_curves(const std::string& peer, const std::string& kind, const std::vector<Case>& cases) {
  const std::string file = peer + "_" + kind;
  const Arrays numbers = stored(file);
  expect_all_used(file, numbers, cases);
  for (const auto& [type, tolerance] : precisions)
    for (const Case& c : cases) {
      if (!is_run(kind, c.name)) continue;
      ASSERT_TRUE(numbers.contains(c.name)) << file << " has no " << c.name;
      const ReferenceProblem problem = reference_problem(kind, numbers, type);
      Optimizer optimizer = c.make(problem.weights());
      const auto step = function([&] { return c.apply(problem, optimizer); });
      const std::string what = text(file, " in ", type);
      expect_curve(what, numbers, c.name, [&](int) { return step().item(); }, tolerance);
      expect_end(what, numbers, c.name, optimizer, problem, tolerance);
    }
}

/// What overflows is skipped, and the scale halved.
void expect_scaled_curves(const std::string& peer, const std::vector<Case>& cases) {
  const std::string file = peer + "_loss_scale";
  const Arrays numbers = stored(file);
  expect_all_used(file, numbers, cases);
  for (const auto& [type, tolerance] : precisions)
    for (const Case& c : cases) {
      const ReferenceProblem problem = reference_problem("loss_scale", numbers, type);
      Optimizer optimizer = c.make(problem.weights());
      const auto step = function([&](Tensor boost) {
        GradientTape tape;
        const Loss loss = problem.loss(problem.x, problem.y);
        const Loss boosted = Loss::of_mean(loss.value() * boost, loss.weight());
        optimizer.apply_gradients(tape.gradient(boosted, problem.weights()));
        return loss;
      });
      const std::string what = text(file, " in ", type);
      expect_curve(
          what, numbers, c.name,
          [&](int i) {
            return step(full({}, overflows(i) ? std::numeric_limits<double>::infinity() : 1.0, type)).item();
          },
          tolerance);
      expect_end(what, numbers, c.name, optimizer, problem, tolerance);
      EXPECT_EQ(loss_scale_of(problem.weights())->value(), numbers.at(c.name + "|scale").item()) << what;
      EXPECT_EQ(optimizer.skipped_steps(), 3) << what << ", " << c.name;
      EXPECT_EQ(optimizer.iterations(), steps - 3) << what << ", " << c.name;
    }
}

TEST(OptimizersReference, KerasMlp) { expect_curves("keras", "mlp", keras_cases(1)); }
TEST(OptimizersReference, KerasCnn) { expect_curves("keras", "cnn", keras_cases(0.25)); }
TEST(OptimizersReference, KerasTransformer) { expect_curves("keras", "transformer", keras_cases(0.25)); }
TEST(OptimizersReference, KerasLossScale) { expect_scaled_curves("keras", scaled_keras_cases()); }
TEST(OptimizersReference, PyTorchMlp) { expect_curves("torch", "mlp", torch_cases(1)); }
TEST(OptimizersReference, PyTorchCnn) { expect_curves("torch", "cnn", torch_cases_with_epsilon(0.25)); }
TEST(OptimizersReference, PyTorchTransformer) { expect_curves("torch", "transformer", torch_cases_with_epsilon(0.25)); }
TEST(OptimizersReference, PyTorchLossScale) { expect_scaled_curves("torch", scaled_torch_cases()); }

}  // namespace
}  // namespace gradus::reference_test
