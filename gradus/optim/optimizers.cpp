/// The formulas: one struct an optimizer. Products of hyperparameters that do not change are made here, in f64.
#include "gradus/optim/optimizers.h"
#include <cmath>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/optim/update_rule.h"

namespace gradus {
namespace {

Tensor number(double value) { return fill({}, value, f64); }

/// 1 - beta^t, exact also where beta^t is near 1.
Tensor one_minus_power(double beta, const Tensor& t) {
  return beta == 0 ? number(1) : -expm1(t * number(std::log(beta)));
}

void check_beta(std::string_view optimizer, std::string_view name, double beta) {
  require(beta >= 0 && beta < 1, optimizer, ": ", name, " must be at least 0 and below 1, got ", beta);
}
void check_epsilon(std::string_view optimizer, double epsilon) {
  require(epsilon >= 0 && std::isfinite(epsilon), optimizer, ": epsilon must not be negative, got ", epsilon);
}
void check_momentum(std::string_view optimizer, double momentum) {
  require(momentum >= 0 && momentum <= 1, optimizer, ": momentum must be within 0 and 1, got ", momentum);
}

Tensor moving_mean(const Tensor& mean, const Tensor& x, double beta) { return mean * beta + x * (1 - beta); }

struct SGDRule final : UpdateRule {
  double momentum;
  bool nesterov;
  explicit SGDRule(const SGDOptions& o) : momentum(o.momentum), nesterov(o.nesterov) {
    check_momentum("SGD", momentum);
  }
  std::string_view name() const override { return "sgd"; }
  std::vector<std::string_view> slots() const override {
    if (momentum == 0) return {};
    return {"momentum"};
  }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor step = shared[0] * g;
    if (momentum == 0) return {w - step, {}};
    const Tensor m = slots[0] * momentum - step;
    return {nesterov ? w + (m * momentum - step) : w + m, {m}};
  }
};

struct AdamRule final : UpdateRule {
  std::string_view title;
  double beta_1, beta_2, epsilon;
  bool amsgrad;
  AdamRule(std::string_view n, double b1, double b2, double e, bool a)
      : title(n), beta_1(b1), beta_2(b2), epsilon(e), amsgrad(a) {
    check_beta(title, "beta_1", beta_1);
    check_beta(title, "beta_2", beta_2);
    check_epsilon(title, epsilon);
  }
  std::string_view name() const override { return title; }
  std::vector<std::string_view> slots() const override {
    if (amsgrad) return {"momentum", "velocity", "velocity_max"};
    return {"momentum", "velocity"};
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

struct NadamRule final : UpdateRule {
  double beta_1, beta_2, epsilon;
  explicit NadamRule(const AdamOptions& o) : beta_1(o.beta_1), beta_2(o.beta_2), epsilon(o.epsilon) {
    require(!o.amsgrad, "Nadam: it has no amsgrad; take Adam");
    check_beta("Nadam", "beta_1", beta_1);
    check_beta("Nadam", "beta_2", beta_2);
    check_epsilon("Nadam", epsilon);
  }
  std::string_view name() const override { return "nadam"; }
  std::vector<std::string_view> slots() const override { return {"momentum", "velocity"}; }
  std::vector<double> joint_state() const override { return {1}; }  // the product of all u

  Tensor u(const Tensor& t) const {
    return number(beta_1) * (number(1) - number(0.5) * exp(t * number(std::log(0.96))));
  }
  Shared share(const StepNumbers& step, In state) const override {
    const Tensor now = u(step.t), next = u(step.t + number(1)), product = state[0] * now;
    const Tensor of_momentum = step.learning_rate * next / (number(1) - product * next);
    const Tensor of_gradient = step.learning_rate * (number(1) - now) / (number(1) - product);
    return {{of_momentum, of_gradient, one_minus_power(beta_2, step.t)}, {product}};
  }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    const Tensor m = moving_mean(slots[0], g, beta_1), v = moving_mean(slots[1], square(g), beta_2);
    return {w - (shared[0] * m + shared[1] * g) / (sqrt(v / shared[2]) + epsilon), {m, v}};
  }
};

struct RMSpropRule final : UpdateRule {
  double rho, momentum, epsilon;
  bool centered;
  explicit RMSpropRule(const RMSpropOptions& o)
      : rho(o.rho), momentum(o.momentum), epsilon(o.epsilon), centered(o.centered) {
    check_beta("RMSprop", "rho", rho);
    check_momentum("RMSprop", momentum);
    check_epsilon("RMSprop", epsilon);
  }
  std::string_view name() const override { return "rmsprop"; }
  std::vector<std::string_view> slots() const override {
    std::vector<std::string_view> names{"velocity"};
    if (centered) names.push_back("mean_gradient");
    if (momentum > 0) names.push_back("momentum");
    return names;
  }
  Shared share(const StepNumbers& step, In) const override { return {{step.learning_rate}, {}}; }
  Updated update(const Tensor& w, const Tensor& g, In slots, In shared) const override {
    Tensors next{moving_mean(slots[0], square(g), rho)};
    Tensor denominator = next[0] + epsilon;
    if (centered) {
      next.push_back(moving_mean(slots[1], g, rho));
      denominator = next[0] - square(next[1]) + epsilon;
    }
    Tensor step = shared[0] * g / sqrt(denominator);
    if (momentum > 0) next.push_back(step = slots.back() * momentum + step);
    return {w - step, next};
  }
};

std::shared_ptr<const UpdateRule> adam(std::string_view name, const auto& o, bool amsgrad) {
  return std::make_shared<AdamRule>(name, o.beta_1, o.beta_2, o.epsilon, amsgrad);
}

}  // namespace

SGD::SGD() : SGD(SGDOptions{}) {}
SGD::SGD(SGDOptions o)
    : Optimizer(std::make_shared<SGDRule>(o), {o.learning_rate, o.weight_decay, o.clipnorm, o.global_clipnorm}) {}

Adam::Adam() : Adam(AdamOptions{}) {}
Adam::Adam(AdamOptions o)
    : Optimizer(adam("adam", o, o.amsgrad), {o.learning_rate, o.weight_decay, o.clipnorm, o.global_clipnorm}) {}

AdamW::AdamW() : AdamW(AdamWOptions{}) {}
AdamW::AdamW(AdamWOptions o)
    : Optimizer(adam("adamw", o, false), {o.learning_rate, o.weight_decay, o.clipnorm, o.global_clipnorm}) {}

Nadam::Nadam() : Nadam(AdamOptions{}) {}
Nadam::Nadam(AdamOptions o)
    : Optimizer(std::make_shared<NadamRule>(o), {o.learning_rate, o.weight_decay, o.clipnorm, o.global_clipnorm}) {}

RMSprop::RMSprop() : RMSprop(RMSpropOptions{}) {}
RMSprop::RMSprop(RMSpropOptions o)
    : Optimizer(std::make_shared<RMSpropRule>(o), {o.learning_rate, o.weight_decay, o.clipnorm, o.global_clipnorm}) {}

}  // namespace gradus
