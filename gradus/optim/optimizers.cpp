/// The formulas: one struct per optimizer. Products of constant hyperparameters are computed here, in f64.
#include "gradus/optim/optimizers.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/option_text.h"
#include "gradus/optim/update_rule.h"

namespace gradus {
namespace {

using detail::number;

/// 1 - beta^t, exact also where beta^t is near 1.
Tensor one_minus_power(double beta, const Tensor& t) {
  return beta == 0 ? number(1) : -expm1(t * number(std::log(beta)));
}

/// True if 0 / sqrt(a number of at least x) is 0, in f32 too.
bool divides_zero(double x) { return x >= std::numeric_limits<float>::min(); }

Tensor moving_mean(const Tensor& mean, const Tensor& x, double beta) { return mean * beta + x * (1 - beta); }

struct SGDRule final : UpdateRule {
  double momentum;
  bool nesterov;
  explicit SGDRule(const SGDOptions& o) : momentum(o.momentum), nesterov(o.nesterov) {}
  std::string_view name() const override { return "sgd"; }
  std::vector<Slot> slots() const override {
    if (momentum == 0) return {};
    return {{"momentum"}};
  }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor step = shared[0] * g;
    if (momentum == 0) return {w - step, {}};
    const Tensor m = slots[0] * momentum - step;
    return {nesterov ? w + (m * momentum - step) : w + m, {m}};
  }
  std::vector<bool> unmoved_by_zero() const override { return {momentum == 0}; }
};

struct AdamRule final : UpdateRule {
  std::string_view title;
  double beta_1, beta_2, epsilon;
  bool amsgrad;
  AdamRule(std::string_view n, double b1, double b2, double e, bool a)
      : title(n), beta_1(b1), beta_2(b2), epsilon(e), amsgrad(a) {}
  std::string_view name() const override { return title; }
  std::vector<Slot> slots() const override {
    if (amsgrad) return {{"momentum"}, {"velocity"}, {"velocity_max"}};
    return {{"momentum"}, {"velocity"}};
  }
  Shared share(const StepNumbers& step, In) const override {
    return {{step.learning_rate * sqrt(one_minus_power(beta_2, step.t)) / one_minus_power(beta_1, step.t)}, {}};
  }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor m = moving_mean(slots[0], g, beta_1), v = moving_mean(slots[1], square(g), beta_2);
    Tensors next{m, v};
    if (amsgrad) next.push_back(maximum(slots[2], v));
    return {w - shared[0] * m / (sqrt(next.back()) + epsilon), next};
  }
};

/// Adam's options that Nadam, Adamax and Lamb take.
struct Betas {
  double beta_1, beta_2, epsilon;
  Betas(std::string_view optimizer, const AdamOptions& o) : beta_1(o.beta_1), beta_2(o.beta_2), epsilon(o.epsilon) {
    require(!o.amsgrad, optimizer, ": it has no amsgrad; take Adam");
  }
};

struct NadamRule final : UpdateRule {
  Betas o;
  explicit NadamRule(const AdamOptions& options) : o("Nadam", options) {}
  std::string_view name() const override { return "nadam"; }
  std::vector<Slot> slots() const override { return {{"momentum"}, {"velocity"}}; }
  std::vector<double> joint_state() const override { return {1}; }  // the product of all u

  Tensor u(const Tensor& t) const {
    return number(o.beta_1) * (number(1) - number(0.5) * exp(t * number(std::log(0.96))));
  }
  Shared share(const StepNumbers& step, In state) const override {
    const Tensor now = u(step.t), next = u(step.t + number(1)), product = state[0] * now;
    const Tensor of_momentum = step.learning_rate * next / (number(1) - product * next);
    const Tensor of_gradient = step.learning_rate * (number(1) - now) / (number(1) - product);
    return {{of_momentum, of_gradient, one_minus_power(o.beta_2, step.t)}, {product}};
  }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor m = moving_mean(slots[0], g, o.beta_1), v = moving_mean(slots[1], square(g), o.beta_2);
    return {w - (shared[0] * m + shared[1] * g) / (sqrt(v / shared[2]) + o.epsilon), {m, v}};
  }
};

struct RMSpropRule final : UpdateRule {
  double rho, momentum, epsilon;
  bool centered;
  explicit RMSpropRule(const RMSpropOptions& o)
      : rho(o.rho), momentum(o.momentum), epsilon(o.epsilon), centered(o.centered) {}
  std::string_view name() const override { return "rmsprop"; }
  std::vector<Slot> slots() const override {
    std::vector<Slot> names{{"velocity"}};
    if (centered) names.push_back({"mean_gradient"});
    if (momentum > 0) names.push_back({"momentum"});
    return names;
  }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    Tensors next{moving_mean(slots[0], square(g), rho)};
    Tensor denominator = next[0] + epsilon;
    if (centered) {
      next.push_back(moving_mean(slots[1], g, rho));
      // what rounding takes below 0 is 0
      denominator = maximum(next[0] - square(next[1]), 0) + epsilon;
    }
    Tensor step = shared[0] * g / sqrt(denominator);
    if (momentum > 0) next.push_back(step = slots.back() * momentum + step);
    return {w - step, next};
  }
  std::vector<bool> unmoved_by_zero() const override { return {momentum == 0 && divides_zero(epsilon)}; }
};

struct AdamaxRule final : UpdateRule {
  Betas o;
  explicit AdamaxRule(const AdamOptions& options) : o("Adamax", options) {}
  std::string_view name() const override { return "adamax"; }
  std::vector<Slot> slots() const override { return {{"momentum"}, {"norm"}}; }
  Shared share(const StepNumbers& step, In) const override {
    return {{step.learning_rate / one_minus_power(o.beta_1, step.t)}, {}};
  }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor m = moving_mean(slots[0], g, o.beta_1), u = maximum(slots[1] * o.beta_2, abs(g));
    return {w - shared[0] * m / (u + o.epsilon), {m, u}};
  }
};

struct LambRule final : UpdateRule {
  Betas o;
  explicit LambRule(const AdamOptions& options) : o("Lamb", options) {
    require(!options.lazy, "Lamb: lazy is given, but its norms are over the whole variable; take AdamW");
  }
  std::string_view name() const override { return "lamb"; }
  std::vector<Slot> slots() const override { return {{"momentum"}, {"velocity"}}; }
  Shared share(const StepNumbers& step, In) const override {
    return {{step.learning_rate, one_minus_power(o.beta_1, step.t), one_minus_power(o.beta_2, step.t)}, {}};
  }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor m = moving_mean(slots[0], g, o.beta_1), v = moving_mean(slots[1], square(g), o.beta_2);
    const Tensor next[] = {m, v};
    return {variable_after(w, next, shared), {m, v}};
  }
  bool is_elementwise() const override { return false; }
  Tensor variable_after(const Tensor& w, In slots, In shared) const override {
    const Tensor step = slots[0] / shared[1] / (sqrt(slots[1] / shared[2]) + o.epsilon);
    const Tensor of_w = sqrt(reduce_sum(square(w))), of_step = sqrt(reduce_sum(square(step)));
    const Tensor one = fill({}, 1, w.dtype());
    const Tensor ratio = where(logical_and(of_w > 0, of_step > 0), of_w / of_step, one);
    return w - ratio * shared[0] * step;
  }
};

struct AdagradRule final : UpdateRule {
  double initial, epsilon;
  explicit AdagradRule(const AdagradOptions& o) : initial(o.initial_accumulator_value), epsilon(o.epsilon) {}
  std::string_view name() const override { return "adagrad"; }
  std::vector<Slot> slots() const override { return {{"accumulator", initial}}; }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor sum = slots[0] + square(g);
    return {w - shared[0] * g / sqrt(sum + epsilon), {sum}};
  }
  std::vector<bool> unmoved_by_zero() const override { return {divides_zero(initial + epsilon), true}; }
};

struct AdadeltaRule final : UpdateRule {
  double rho, epsilon;
  explicit AdadeltaRule(const AdadeltaOptions& o) : rho(o.rho), epsilon(o.epsilon) {}
  std::string_view name() const override { return "adadelta"; }
  std::vector<Slot> slots() const override { return {{"accumulated_gradient"}, {"accumulated_delta"}}; }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor v = moving_mean(slots[0], square(g), rho);
    const Tensor step = -(sqrt(slots[1] + epsilon) * g / sqrt(v + epsilon));
    return {w + shared[0] * step, {v, moving_mean(slots[1], square(step), rho)}};
  }
  std::vector<bool> unmoved_by_zero() const override { return {divides_zero(epsilon)}; }
};

struct FtrlRule final : UpdateRule {
  FtrlOptions o;
  explicit FtrlRule(const FtrlOptions& options) : o(options) {}
  std::string_view name() const override { return "ftrl"; }
  std::vector<Slot> slots() const override { return {{"accumulator", o.initial_accumulator_value}, {"linear"}}; }
  Shared share(const StepNumbers& step, In) const override {
    const Tensor beta = number(o.beta) / (number(2) * step.learning_rate);
    return {{step.learning_rate, number(2) * (number(o.l2_regularization_strength) + beta)}, {}};
  }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const double l1 = o.l1_regularization_strength, shrinkage = o.l2_shrinkage_regularization_strength;
    const Tensor sum = slots[0] + square(g);
    const Tensor power = pow(sum, -o.learning_rate_power), before = pow(slots[0], -o.learning_rate_power);
    const Tensor pull = shrinkage > 0 ? g + w * (2 * shrinkage) : g;
    const Tensor linear = slots[1] + (pull - (power - before) / shared[0] * w);
    const Tensor quadratic = power / shared[0] + shared[1];
    const Tensor next = (clip_by_value(linear, -l1, l1) - linear) / quadratic;
    return {where(equal(quadratic, 0), w, next), {sum, linear}};
  }
  std::vector<bool> unmoved_by_zero() const override { return {false, true}; }
};

struct LionRule final : UpdateRule {
  double beta_1, beta_2;
  explicit LionRule(const LionOptions& o) : beta_1(o.beta_1), beta_2(o.beta_2) {}
  std::string_view name() const override { return "lion"; }
  std::vector<Slot> slots() const override { return {{"momentum"}}; }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor away = slots[0] - g;  // what both means share, so that it is one kernel: g + beta * (m - g)
    return {w - shared[0] * sign(g + away * beta_1), {g + away * beta_2}};
  }
};

std::shared_ptr<const UpdateRule> adam(std::string_view name, const auto& o) {
  return std::make_shared<AdamRule>(name, o.beta_1, o.beta_2, o.epsilon, o.amsgrad);
}

/// The common part of all options; InvalidArgument unless each of them is in its range.
OptimizerSettings settings_of(std::string_view optimizer, const auto& o) {
  check_options(optimizer, o);
  NamedOptions said{{"optimizer", std::string(optimizer)}};
  std::ranges::move(named_options(o), std::back_inserter(said));
  return {.learning_rate = o.learning_rate,
          .weight_decay = o.weight_decay,
          .clipnorm = o.clipnorm,
          .global_clipnorm = o.global_clipnorm,
          .clipvalue = o.clipvalue,
          .use_ema = o.use_ema,
          .ema_momentum = o.ema_momentum,
          .ema_overwrite_frequency = o.ema_overwrite_frequency,
          .lazy = o.lazy,
          .said = std::move(said)};
}

}  // namespace

SGD::SGD() : SGD(SGDOptions{}) {}
SGD::SGD(SGDOptions o) : Optimizer(std::make_shared<SGDRule>(o), settings_of("SGD", o)) {}

Adam::Adam() : Adam(AdamOptions{}) {}
Adam::Adam(AdamOptions o) : Optimizer(adam("adam", o), settings_of("Adam", o)) {}

AdamW::AdamW() : AdamW(AdamWOptions{}) {}
AdamW::AdamW(AdamWOptions o) : Optimizer(adam("adamw", o), settings_of("AdamW", o)) {}

Nadam::Nadam() : Nadam(AdamOptions{}) {}
Nadam::Nadam(AdamOptions o) : Optimizer(std::make_shared<NadamRule>(o), settings_of("Nadam", o)) {}

Adamax::Adamax() : Adamax(AdamOptions{}) {}
Adamax::Adamax(AdamOptions o) : Optimizer(std::make_shared<AdamaxRule>(o), settings_of("Adamax", o)) {}

Lamb::Lamb() : Lamb(AdamOptions{}) {}
Lamb::Lamb(AdamOptions o) : Optimizer(std::make_shared<LambRule>(o), settings_of("Lamb", o)) {}

RMSprop::RMSprop() : RMSprop(RMSpropOptions{}) {}
RMSprop::RMSprop(RMSpropOptions o) : Optimizer(std::make_shared<RMSpropRule>(o), settings_of("RMSprop", o)) {}

Adagrad::Adagrad() : Adagrad(AdagradOptions{}) {}
Adagrad::Adagrad(AdagradOptions o) : Optimizer(std::make_shared<AdagradRule>(o), settings_of("Adagrad", o)) {}

Adadelta::Adadelta() : Adadelta(AdadeltaOptions{}) {}
Adadelta::Adadelta(AdadeltaOptions o) : Optimizer(std::make_shared<AdadeltaRule>(o), settings_of("Adadelta", o)) {}

Ftrl::Ftrl() : Ftrl(FtrlOptions{}) {}
Ftrl::Ftrl(FtrlOptions o) : Optimizer(std::make_shared<FtrlRule>(o), settings_of("Ftrl", o)) {}

Lion::Lion() : Lion(LionOptions{}) {}
Lion::Lion(LionOptions o) : Optimizer(std::make_shared<LionRule>(o), settings_of("Lion", o)) {}

}  // namespace gradus
