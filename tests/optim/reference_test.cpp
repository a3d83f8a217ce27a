/// Loss curves of 20 steps against those of Keras 3 and PyTorch in f64, stored in reference/ by make_reference.py
/// there: each optimizer, clipping, decay, groups, moving averages, accumulation and schedules on one MLP.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include "gradus/formats/safetensors.h"
#include "gradus/function/function.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"

namespace gradus {
namespace {

constexpr int steps = 20;

std::map<std::string, Tensor> stored(const std::string& peer) {
  std::map<std::string, Tensor> arrays;
  for (const NamedArray& array : read_safetensors(std::filesystem::path(GRADUS_OPTIM_FOLDER) / (peer + ".safetensors")))
    arrays.emplace(array.name, Tensor::of_buffer(array.spec, array.data));
  return arrays;
}

/// tanh(x k0 + b0) k1 + b1 with mean squared error.
struct Net {
  Tensor x, y;
  Variable k0, b0, k1, b1;
  Net(const std::map<std::string, Tensor>& numbers, DType t)
      : x(cast(numbers.at("x"), t)),
        y(cast(numbers.at("y"), t)),
        k0(cast(numbers.at("k0"), t), "k0"),
        b0(cast(numbers.at("b0"), t), "b0"),
        k1(cast(numbers.at("k1"), t), "k1"),
        b1(cast(numbers.at("b1"), t), "b1") {}
  Variables variables() { return Variables{k0, b0, k1, b1}; }
  Loss loss(const Tensor& inputs, const Tensor& labels) const {
    const Tensor prediction = matmul(tanh(matmul(inputs, k0) + b0), k1) + b1;
    return Loss::mean(reduce_mean(square(prediction - labels), {.axis = {-1}}));
  }
};

using Apply = std::function<Loss(Net& net, Optimizer& optimizer)>;

Loss whole_batch(Net& net, Optimizer& optimizer) {
  GradientTape tape;
  const Loss loss = net.loss(net.x, net.y);
  optimizer.apply_gradients(tape.gradient(loss, net.variables()));
  return loss;
}

/// Keras: an update after every second half batch, of the mean of both. Here: parts of 5, 5 and 2.
Loss accumulated(Net& net, Optimizer& optimizer) {
  Gradients gradients;
  Loss total;
  for (auto [x, y] : micro_batches({net.x, net.y}, 5)) {
    GradientTape tape;
    const Loss loss = net.loss(x, y);
    gradients += tape.gradient(loss, net.variables());
    total += loss;
  }
  optimizer.apply_gradients(gradients);
  return total;
}

struct Case {
  std::string name;
  std::function<Optimizer(Net& net)> make;
  Apply apply = whole_batch;
};

template <class O, class Options> Case plain(const std::string& name, Options options) {
  return {name, [options](Net&) { return O(options); }};
}

std::vector<Case> keras_cases() {
  std::vector<Case> cases{
      plain<SGD, SGDOptions>("sgd", {.learning_rate = 0.1}),
      plain<SGD, SGDOptions>("momentum", {.learning_rate = 0.05, .momentum = 0.9}),
      plain<SGD, SGDOptions>("nesterov", {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}),
      plain<RMSprop, RMSpropOptions>("rmsprop", {.learning_rate = 0.01}),
      plain<RMSprop, RMSpropOptions>("rmsprop_momentum", {.learning_rate = 0.01, .rho = 0.8, .momentum = 0.7}),
      plain<RMSprop, RMSpropOptions>("rmsprop_centered", {.learning_rate = 0.01, .momentum = 0.5, .centered = true}),
      plain<Adam, AdamOptions>("adam", {.learning_rate = 0.02}),
      plain<Adam, AdamOptions>("amsgrad", {.learning_rate = 0.05, .beta_2 = 0.9, .amsgrad = true}),
      plain<AdamW, AdamWOptions>("adamw", {.learning_rate = 0.02, .weight_decay = 0.1}),
      plain<Nadam, AdamOptions>("nadam", {.learning_rate = 0.02}),
      plain<Adagrad, AdagradOptions>("adagrad", {.learning_rate = 0.1}),
      plain<Adadelta, AdadeltaOptions>("adadelta", {.learning_rate = 1.0}),
      plain<Adamax, AdamOptions>("adamax", {.learning_rate = 0.02}),
      plain<Ftrl, FtrlOptions>("ftrl", {.learning_rate = 0.1}),
      plain<Ftrl, FtrlOptions>("ftrl_regularized", {.learning_rate = 0.2,
                                                    .learning_rate_power = -0.7,
                                                    .initial_accumulator_value = 0.2,
                                                    .l1_regularization_strength = 0.01,
                                                    .l2_regularization_strength = 0.02,
                                                    .l2_shrinkage_regularization_strength = 0.03,
                                                    .beta = 0.1}),
      plain<Lion, LionOptions>("lion", {.learning_rate = 0.01, .weight_decay = 0.1}),
      plain<Lamb, AdamOptions>("lamb", {.learning_rate = 0.02}),
      plain<Adam, AdamOptions>("clipnorm", {.learning_rate = 0.02, .clipnorm = 0.05}),
      plain<SGD, SGDOptions>("global_clipnorm", {.learning_rate = 0.2, .momentum = 0.9, .global_clipnorm = 0.1}),
      plain<Adagrad, AdagradOptions>("clipvalue", {.learning_rate = 0.1, .clipvalue = 0.01}),
      plain<SGD, SGDOptions>("decay_of_momentum", {.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.2}),
      plain<SGD, SGDOptions>(
          "ema",
          {.learning_rate = 0.1, .momentum = 0.9, .use_ema = true, .ema_momentum = 0.8, .ema_overwrite_frequency = 3}),
      plain<Adam, AdamOptions>(
          "ema_of_adam", {.learning_rate = 0.05, .use_ema = true, .ema_momentum = 0.6, .ema_overwrite_frequency = 7}),
  };
  cases.push_back({"decay_without_biases", [](Net&) {
                     AdamW optimizer({.learning_rate = 0.05, .weight_decay = 0.5});
                     optimizer.exclude_from_weight_decay({"b0", "b1"});
                     return optimizer;
                   }});
  cases.push_back(
      {"accumulation", [](Net&) { return Adam({.learning_rate = 0.02, .global_clipnorm = 0.1}); }, accumulated});
  const auto scheduled = [&](const std::string& name, const Schedule& schedule) {
    cases.push_back(plain<SGD, SGDOptions>(name, {.learning_rate = schedule}));
  };
  const double rate = 0.3;
  scheduled("exponential_decay",
            ExponentialDecay({.initial_learning_rate = rate, .decay_steps = 4, .decay_rate = 0.7}));
  scheduled("exponential_staircase",
            ExponentialDecay({.initial_learning_rate = rate, .decay_steps = 4, .decay_rate = 0.7, .staircase = true}));
  scheduled("cosine_decay_restarts",
            CosineDecayRestarts(
                {.initial_learning_rate = rate, .first_decay_steps = 3, .t_mul = 1.5, .m_mul = 0.8, .alpha = 0.05}));
  scheduled("cosine_decay_restarts_even",
            CosineDecayRestarts({.initial_learning_rate = rate, .first_decay_steps = 5, .t_mul = 1, .m_mul = 0.9}));
  scheduled("polynomial_decay",
            PolynomialDecay({.initial_learning_rate = rate, .decay_steps = 12, .end_learning_rate = 0.01, .power = 2}));
  scheduled(
      "polynomial_decay_cycle",
      PolynomialDecay(
          {.initial_learning_rate = rate, .decay_steps = 6, .end_learning_rate = 0.01, .power = 0.5, .cycle = true}));
  scheduled("piecewise_constant_decay", PiecewiseConstantDecay({5, 11}, {0.3, 0.1, 0.02}));
  scheduled("inverse_time_staircase",
            InverseTimeDecay({.initial_learning_rate = rate, .decay_steps = 3, .decay_rate = 0.6, .staircase = true}));
  cases.push_back(plain<RMSprop, RMSpropOptions>(
      "inverse_time_decay",
      {.learning_rate = InverseTimeDecay({.initial_learning_rate = 0.05, .decay_steps = 3, .decay_rate = 0.6})}));
  cases.push_back(plain<Adam, AdamOptions>(
      "cosine_decay",
      {.learning_rate = CosineDecay({.initial_learning_rate = 0.05, .decay_steps = 12, .alpha = 0.1})}));
  cases.push_back(plain<AdamW, AdamWOptions>(
      "cosine_decay_with_warmup",
      {.learning_rate =
           CosineDecay({.initial_learning_rate = 0, .decay_steps = 10, .warmup_steps = 5, .warmup_target = 0.05})}));
  return cases;
}

/// PyTorch's momentum is ours while the rate is constant.
std::vector<Case> torch_cases() {
  std::vector<Case> cases{
      plain<SGD, SGDOptions>("sgd", {.learning_rate = 0.1}),
      plain<SGD, SGDOptions>("momentum", {.learning_rate = 0.05, .momentum = 0.9}),
      plain<SGD, SGDOptions>("nesterov", {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}),
      plain<Adam, AdamOptions>("adam", {.learning_rate = 0.02, .epsilon = 0}),
      plain<AdamW, AdamWOptions>("adamw", {.learning_rate = 0.02, .weight_decay = 0.1, .epsilon = 0}),
      plain<Adadelta, AdadeltaOptions>("adadelta", {.learning_rate = 1.0}),
      plain<Adamax, AdamOptions>("adamax", {.learning_rate = 0.02, .epsilon = 0}),
      plain<Adagrad, AdagradOptions>("adagrad", {.learning_rate = 0.1, .epsilon = 0}),
      plain<RMSprop, RMSpropOptions>("rmsprop_momentum",
                                     {.learning_rate = 0.01, .rho = 0.8, .momentum = 0.7, .epsilon = 0}),
      plain<SGD, SGDOptions>("one_cycle",
                             {.learning_rate = OneCycle({.max_learning_rate = 0.4, .total_steps = steps})}),
      plain<SGD, SGDOptions>("one_cycle_linear", {.learning_rate = OneCycle({.max_learning_rate = 0.4,
                                                                             .total_steps = steps,
                                                                             .pct_start = 0.45,
                                                                             .linear = true,
                                                                             .div_factor = 10,
                                                                             .final_div_factor = 50})}),
  };
  cases.push_back({"groups", [](Net& net) {
                     SGD optimizer({.learning_rate = 0.05, .momentum = 0.9});
                     optimizer.add_parameter_group(Variables{net.b0, net.b1}, {.learning_rate = 0.3});
                     return optimizer;
                   }});
  return cases;
}

void expect_curves(const std::string& peer, const std::vector<Case>& cases, DType t, double tolerance) {
  const std::map<std::string, Tensor> numbers = stored(peer);
  for (const Case& c : cases) {
    ASSERT_TRUE(numbers.contains(c.name)) << peer << " has no " << c.name;
    Net net(numbers, t);
    Optimizer optimizer = c.make(net);
    const auto step = function([&] { return c.apply(net, optimizer); });
    const std::vector<double> wanted = numbers.at(c.name).to_vector<double>();
    for (int i = 0; i < steps; ++i)
      EXPECT_NEAR(step().item(), wanted[static_cast<std::size_t>(i)], tolerance) << peer << ", " << c.name << ", " << i;
    optimizer.finalize_variable_values(net.variables());
    EXPECT_LT(max_abs_difference(cast(net.k0, f64), numbers.at(c.name + "|k0")), 10 * tolerance)
        << peer << ", " << c.name;
  }
  const auto is_used = [&](const std::string& name) {
    return std::ranges::any_of(cases, [&](const Case& c) { return c.name == name; });
  };
  for (const auto& [name, array] : numbers) EXPECT_TRUE(!numbers.contains(name + "|k0") || is_used(name)) << name;
}

TEST(OptimizersReference, KerasInDouble) { expect_curves("keras", keras_cases(), f64, 1e-8); }
TEST(OptimizersReference, KerasInFloat) { expect_curves("keras", keras_cases(), f32, 2e-4); }
TEST(OptimizersReference, PyTorchInDouble) { expect_curves("torch", torch_cases(), f64, 1e-8); }
TEST(OptimizersReference, PyTorchInFloat) { expect_curves("torch", torch_cases(), f32, 2e-4); }

}  // namespace
}  // namespace gradus
