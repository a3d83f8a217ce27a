/// Optimizers against plain loops in double, step by step; state, copies, schedules, and what is refused.
#include "gradus/optim/optimizers.h"
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <numbers>
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "tests/errors.h"

namespace gradus::optimizers_test {
namespace {

using Row = std::vector<double>;

/// One element of a variable with whatever a rule keeps for it: the plain form of an optimizer.
struct Cell {
  double w = 0;
  double m = 0, v = 0, v_max = 0, mean = 0;
  double accumulator = 0.1;
};
using Cells = std::vector<Cell>;
using ElementRule = std::function<void(Cell& cell, double g, double t, double lr)>;
/// Of a whole variable.
struct PlainRule {
  std::function<void(Cells& cells, const Row& g, double t, double lr)> update;
  PlainRule(ElementRule rule)
      : update([rule](Cells& cells, const Row& g, double t, double lr) {
          for (std::size_t i = 0; i < cells.size(); ++i) rule(cells[i], g[i], t, lr);
        }) {}
  PlainRule(void (*whole)(Cells&, const Row&, double, double)) : update(whole) {}
};

void adam(Cell& c, double g, double t, double lr, bool amsgrad) {
  const double b1 = 0.9, b2 = 0.999;
  c.m = b1 * c.m + (1 - b1) * g;
  c.v = b2 * c.v + (1 - b2) * g * g;
  c.v_max = std::max(c.v_max, c.v);
  const double alpha = lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
  c.w -= alpha * c.m / (std::sqrt(amsgrad ? c.v_max : c.v) + 1e-7);
}

void nadam(Cell& c, double g, double t, double lr) {
  const double b1 = 0.9, b2 = 0.999;
  const auto u = [&](double s) { return b1 * (1 - 0.5 * std::pow(0.96, s)); };
  double product = 1;
  for (int s = 1; s <= t; ++s) product *= u(s);
  c.m = b1 * c.m + (1 - b1) * g;
  c.v = b2 * c.v + (1 - b2) * g * g;
  const double m_hat = u(t + 1) * c.m / (1 - product * u(t + 1)) + (1 - u(t)) * g / (1 - product);
  c.w -= lr * m_hat / (std::sqrt(c.v / (1 - std::pow(b2, t))) + 1e-7);
}

void sgd(Cell& c, double g, double, double lr, double mu, bool nesterov) {
  c.m = mu * c.m - lr * g;
  c.w += nesterov ? mu * c.m - lr * g : c.m;
}

void rmsprop(Cell& c, double g, double, double lr, double momentum, bool centered) {
  c.v = 0.9 * c.v + 0.1 * g * g;
  c.mean = 0.9 * c.mean + 0.1 * g;
  const double step = lr * g / std::sqrt((centered ? c.v - c.mean * c.mean : c.v) + 1e-7);
  c.m = momentum * c.m + step;
  c.w -= c.m;
}

void adagrad(Cell& c, double g, double, double lr) {
  c.accumulator += g * g;
  c.w -= lr * g / std::sqrt(c.accumulator + 1e-7);
}

void adadelta(Cell& c, double g, double, double lr) {
  c.v = 0.95 * c.v + 0.05 * g * g;
  const double step = -std::sqrt(c.mean + 1e-7) * g / std::sqrt(c.v + 1e-7);
  c.mean = 0.95 * c.mean + 0.05 * step * step;
  c.w += lr * step;
}

void adamax(Cell& c, double g, double t, double lr) {
  c.m = 0.9 * c.m + 0.1 * g;
  c.v = std::max(0.999 * c.v, std::abs(g));
  c.w -= lr * c.m / ((1 - std::pow(0.9, t)) * (c.v + 1e-7));
}

struct FtrlNumbers {
  double power = 0.5, l1 = 0, l2 = 0, shrinkage = 0, beta = 0;
};
void ftrl(Cell& c, double g, double lr, const FtrlNumbers& o) {
  const double before = c.accumulator;
  c.accumulator += g * g;
  const double now = std::pow(c.accumulator, o.power);
  c.m += g + 2 * o.shrinkage * c.w - (now - std::pow(before, o.power)) / lr * c.w;
  c.w = (std::clamp(c.m, -o.l1, o.l1) - c.m) / (now / lr + 2 * (o.l2 + o.beta / (2 * lr)));
}

void lion(Cell& c, double g, double, double lr) {
  const double direction = 0.9 * c.m + 0.1 * g;
  c.w -= lr * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
  c.m = 0.99 * c.m + 0.01 * g;
}

void lamb(Cells& cells, const Row& g, double t, double lr) {
  Row steps;
  double of_w = 0, of_steps = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    Cell& c = cells[i];
    c.m = 0.9 * c.m + 0.1 * g[i];
    c.v = 0.999 * c.v + 0.001 * g[i] * g[i];
    steps.push_back(c.m / (1 - std::pow(0.9, t)) / (std::sqrt(c.v / (1 - std::pow(0.999, t))) + 1e-7));
    of_w += c.w * c.w;
    of_steps += steps[i] * steps[i];
  }
  const double ratio = of_w > 0 && of_steps > 0 ? std::sqrt(of_w) / std::sqrt(of_steps) : 1;
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].w -= ratio * lr * steps[i];
}

enum class Clip { none, each, all, value };

struct Case {
  std::string name;
  std::function<Optimizer()> make;
  PlainRule rule;
  std::function<double(int step)> rate = [](int) { return 0.01; };
  double decay = 0;
  Clip clip = Clip::none;
  double norm = 0;
  bool elementwise = true;
};

const CosineDecay cosine({.initial_learning_rate = 0.1, .decay_steps = 5});

std::vector<Case> cases() {
  const ElementRule with_adam = [](Cell& c, double g, double t, double lr) { adam(c, g, t, lr, false); };
  const auto with_sgd = [](double mu, bool nesterov) {
    return ElementRule([=](Cell& c, double g, double t, double lr) { sgd(c, g, t, lr, mu, nesterov); });
  };
  const auto with_rmsprop = [](double momentum, bool centered) {
    return ElementRule([=](Cell& c, double g, double t, double lr) { rmsprop(c, g, t, lr, momentum, centered); });
  };
  const auto with_ftrl = [](FtrlNumbers numbers) {
    return ElementRule([=](Cell& c, double g, double, double lr) { ftrl(c, g, lr, numbers); });
  };
  const auto cosine_rate = [](int step) {
    return 0.1 * 0.5 * (1 + std::cos(std::numbers::pi * std::min(step, 5) / 5));
  };
  return {
      {"sgd", [] { return SGD(); }, with_sgd(0, false)},
      {"momentum", [] { return SGD({.momentum = 0.9}); }, with_sgd(0.9, false)},
      {"nesterov", [] { return SGD({.momentum = 0.9, .nesterov = true}); }, with_sgd(0.9, true)},
      {"sgd_decay", [] { return SGD({.momentum = 0.5, .weight_decay = 0.1}); }, with_sgd(0.5, false), {}, 0.1},
      {"adam", [] { return Adam({.learning_rate = 0.01}); }, with_adam},
      {"amsgrad", [] { return Adam({.learning_rate = 0.01, .amsgrad = true}); },
       ElementRule([](Cell& c, double g, double t, double lr) { adam(c, g, t, lr, true); })},
      {"adamw", [] { return AdamW({.learning_rate = 0.01}); }, with_adam, {}, 0.004},
      {"adam_clipnorm",
       [] { return Adam({.learning_rate = 0.01, .clipnorm = 0.5}); },
       with_adam,
       {},
       0,
       Clip::each,
       0.5},
      {"sgd_global_clipnorm",
       [] { return SGD({.weight_decay = 0.2, .global_clipnorm = 0.7}); },
       with_sgd(0, false),
       {},
       0.2,
       Clip::all,
       0.7},
      {"adam_cosine", [] { return Adam({.learning_rate = cosine}); }, with_adam, cosine_rate},
      {"adamw_cosine", [] { return AdamW({.learning_rate = cosine, .weight_decay = 0.3}); }, with_adam, cosine_rate,
       0.3},
      {"nadam", [] { return Nadam({.learning_rate = 0.01}); }, ElementRule(nadam)},
      {"rmsprop", [] { return RMSprop({.learning_rate = 0.01}); }, with_rmsprop(0, false)},
      {"rmsprop_centered", [] { return RMSprop({.learning_rate = 0.01, .momentum = 0.8, .centered = true}); },
       with_rmsprop(0.8, true)},
      {"rmsprop_momentum", [] { return RMSprop({.learning_rate = 0.01, .momentum = 0.8}); }, with_rmsprop(0.8, false)},
      {"rmsprop_centered_alone", [] { return RMSprop({.learning_rate = 0.01, .centered = true}); },
       with_rmsprop(0, true)},
      {"adagrad", [] { return Adagrad({.learning_rate = 0.01}); }, ElementRule(adagrad)},
      {"adadelta", [] { return Adadelta({.learning_rate = 0.01}); }, ElementRule(adadelta)},
      {"adadelta_decay",
       [] { return Adadelta({.learning_rate = 0.01, .weight_decay = 0.1}); },
       ElementRule(adadelta),
       {},
       0.1},
      {"adamax", [] { return Adamax({.learning_rate = 0.01}); }, ElementRule(adamax)},
      {"ftrl", [] { return Ftrl({.learning_rate = 0.01}); }, with_ftrl({})},
      {"ftrl_regularized",
       [] {
         return Ftrl({.learning_rate = 0.01,
                      .learning_rate_power = -0.7,
                      .l1_regularization_strength = 0.3,
                      .l2_regularization_strength = 0.2,
                      .l2_shrinkage_regularization_strength = 0.1,
                      .beta = 0.4});
       },
       with_ftrl({.power = 0.7, .l1 = 0.3, .l2 = 0.2, .shrinkage = 0.1, .beta = 0.4})},
      {"lion", [] { return Lion({.learning_rate = 0.01, .weight_decay = 0.1}); }, ElementRule(lion), {}, 0.1},
      {"lamb", [] { return Lamb({.learning_rate = 0.01}); }, lamb, {}, 0, Clip::none, 0, false},
      {"lamb_decay",
       [] { return Lamb({.learning_rate = 0.01, .weight_decay = 0.3}); },
       lamb,
       {},
       0.3,
       Clip::none,
       0,
       false},
      {"amsgrad_of_adamw",
       [] { return AdamW({.learning_rate = 0.01, .amsgrad = true}); },
       ElementRule([](Cell& c, double g, double t, double lr) { adam(c, g, t, lr, true); }),
       {},
       0.004},
      {"adagrad_clipvalue",
       [] { return Adagrad({.learning_rate = 0.01, .clipvalue = 0.6}); },
       ElementRule(adagrad),
       {},
       0,
       Clip::value,
       0.6},
  };
}

/// Two variables, and a loss with a gradient that is easily told.
struct Problem {
  Variable a{random::normal({5}, {.dtype = f64, .seed = 1}), "a"},
      b{random::normal({2, 3}, {.dtype = f64, .seed = 2}), "b"};
  Tensor scale_a = random::uniform({5}, {.low = 0.5, .high = 3, .dtype = f64, .seed = 3});
  Tensor scale_b = random::uniform({2, 3}, {.low = 0.5, .high = 3, .dtype = f64, .seed = 4});
  Variables variables() { return Variables{a, b}; }

  /// d/dw of sum(scale * w^2) / 2 + sum(w) is scale * w + 1.
  Gradients gradients() {
    GradientTape tape;
    const auto part = [](const Tensor& w, const Tensor& scale) { return reduce_sum(scale * w * w * 0.5 + w); };
    return tape.gradient(part(a, scale_a) + part(b, scale_b), variables());
  }
};

class Plain {
 public:
  explicit Plain(Problem& problem) {
    for (const Tensor& w : {problem.a.value(), problem.b.value()}) {
      cells_.emplace_back();
      for (double value : w.to_vector<double>()) cells_.back().push_back({value});
    }
    scales_ = {problem.scale_a.to_vector<double>(), problem.scale_b.to_vector<double>()};
  }
  void step(const Case& c, int step) {
    std::vector<Row> gradients(2);
    Row norms;
    double squares = 0;
    for (std::size_t k = 0; k < 2; ++k) {
      double own = 0;
      for (std::size_t i = 0; i < cells_[k].size(); ++i) {
        gradients[k].push_back(scales_[k][i] * cells_[k][i].w + 1);
        own += gradients[k][i] * gradients[k][i];
      }
      norms.push_back(std::sqrt(own));
      squares += own;
    }
    const double lr = c.rate ? c.rate(step) : 0.01;
    for (std::size_t k = 0; k < 2; ++k) {
      for (double& g : gradients[k]) {
        if (c.clip == Clip::each) g *= c.norm / std::max(norms[k], c.norm);
        if (c.clip == Clip::all) g *= c.norm * std::min(1 / std::sqrt(squares), 1 / c.norm);
        if (c.clip == Clip::value) g = std::clamp(g, -c.norm, c.norm);
      }
      for (Cell& cell : cells_[k]) cell.w -= cell.w * c.decay * lr;
      c.rule.update(cells_[k], gradients[k], step + 1, lr);
    }
  }
  void expect(Problem& problem, const std::string& what) const {
    const std::vector<Row> got{problem.a.value().to_vector<double>(), problem.b.value().to_vector<double>()};
    for (std::size_t k = 0; k < 2; ++k)
      for (std::size_t i = 0; i < got[k].size(); ++i)
        EXPECT_NEAR(got[k][i], cells_[k][i].w, 1e-12 * std::max(1.0, std::abs(cells_[k][i].w))) << what << " " << i;
  }

 private:
  std::vector<Cells> cells_;
  std::vector<Row> scales_;
};

TEST(Optimizers, FollowTheirRulesLazily) {
  for (const Case& c : cases()) {
    Problem problem;
    Plain plain(problem);
    Optimizer optimizer = c.make();
    for (int step = 0; step < 8; ++step) {
      optimizer.apply_gradients(problem.gradients());
      plain.step(c, step);
      plain.expect(problem, c.name + ", step " + std::to_string(step));
    }
    EXPECT_EQ(optimizer.iterations(), 8);
  }
}

TEST(Optimizers, CompiledIsLazyBitForBit) {
  for (const Case& c : cases()) {
    Problem lazy, compiled;
    Optimizer one = c.make(), other = c.make();
    const auto step = function([&] { other.apply_gradients(compiled.gradients()); });
    for (int i = 0; i < 5; ++i) {
      one.apply_gradients(lazy.gradients());
      step();
    }
    EXPECT_EQ(step.explain().variants, 1);
    for (std::size_t k = 0; k < 2; ++k)
      EXPECT_TRUE(bitwise_equal(lazy.variables()[k].value(), compiled.variables()[k].value())) << c.name;
    EXPECT_EQ(other.iterations(), 5);
  }
}

/// The update of a variable is one kernel, whatever the rule is; the numbers of the step are computed beside them.
TEST(Optimizers, AVariableIsUpdatedByOneKernel) {
  for (const Case& c : cases()) {
    if (c.clip == Clip::each || c.clip == Clip::all || !c.elementwise) continue;
    const auto kernels = [&](int variables) {
      std::vector<Variable> all;
      Variables list;
      Tensors means;
      for (int i = 0; i < variables; ++i) {
        all.emplace_back(random::normal({40 + i}, {.seed = 1}));
        list.add(all.back());
      }
      Optimizer optimizer = c.make();
      const auto step = function([&](Tensor g) {
        std::vector<Tensor> each;
        for (int i = 0; i < variables; ++i) each.push_back(g * ones({40 + i}));
        optimizer.apply_gradients(Gradients(list, each, constant(1.0)));
      });
      step(constant(0.5));
      return step.explain().kernels.size();
    };
    EXPECT_EQ(kernels(5) - kernels(2), 3u) << c.name;
  }
}

/// Of a constant gradient every step is the learning rate: bias corrections lose nothing where beta is almost 1.
TEST(Optimizers, BetasNearOneKeepTheirPrecision) {
  Variable w(constant({1.0}, f64), "w");
  Adam optimizer({.learning_rate = 1, .beta_1 = 1 - 1e-10, .beta_2 = 1 - 1e-12, .epsilon = 0});
  for (int i = 0; i < 3; ++i) optimizer.apply_gradients(Gradients(Variables{w}, {constant({3.0}, f64)}, constant(1.0)));
  EXPECT_NEAR(w.value().item(), -2, 1e-12);
}

TEST(Optimizers, AccumulatedGradientsAreAppliedAsTheirMean) {
  Variable w(constant({0.0}), "w"), v(constant({0.0}), "v");
  Gradients total;
  total += Gradients(Variables{w}, {constant({1.0})}, constant(1.0));
  total += Gradients(Variables{w}, {constant({5.0})}, constant(3.0));
  SGD({.learning_rate = 1}).apply_gradients(total);
  EXPECT_EQ(w.value().item(), -4);
  SGD({.learning_rate = 1, .clipnorm = 2}).apply_gradients(Gradients(Variables{v}, {constant({4.0})}, constant(1.0)));
  EXPECT_EQ(v.value().item(), -2);
}

TEST(Optimizers, MixedTypes) {
  Variable w(constant({1.0}), "w"), v(constant({1.0}, f64), "v");
  Adam optimizer({.learning_rate = 0.1});
  for (int i = 0; i < 3; ++i)
    optimizer.apply_gradients(Gradients(Variables{w, v}, {constant({2.0}), constant({2.0}, f64)}, constant(1.0)));
  EXPECT_NEAR(w.value().item(), v.value().item(), 1e-6);
  EXPECT_NEAR(v.value().item(), 0.7, 1e-6);
}

TEST(Optimizers, StateBelongsToTheVariablesFirstSeen) {
  Problem mine, other;
  Adam optimizer;
  EXPECT_EQ(optimizer.variables().size(), 2u);
  optimizer.apply_gradients(mine.gradients());
  EXPECT_EQ(optimizer.variables().size(), 6u);
  EXPECT_EQ(optimizer.variables()[2].name(), "adam/a/momentum");
  expect_says(error_of<InvalidArgument>([&] { optimizer.apply_gradients(other.gradients()); }), "rebind");
  EXPECT_EQ(optimizer.iterations(), 1);
  optimizer.build(other.variables());
  optimizer.apply_gradients(other.gradients());
  EXPECT_EQ(optimizer.iterations(), 2);
  expect_says(error_of<InvalidArgument>([&] { optimizer.apply_gradients(Gradients()); }), "no variables");
}

TEST(Optimizers, ACopyGoesItsOwnWay) {
  Problem mine, copied;
  Adam optimizer({.learning_rate = 0.1});
  for (int i = 0; i < 2; ++i) optimizer.apply_gradients(mine.gradients());
  Adam copy = optimizer;
  copied.a.assign(mine.a);
  copied.b.assign(mine.b);
  expect_says(error_of<InvalidArgument>([&] { copy.apply_gradients(copied.gradients()); }), "rebind");
  copy.rebind(copied.variables());
  for (int i = 0; i < 3; ++i) optimizer.apply_gradients(mine.gradients());
  EXPECT_EQ(copy.iterations(), 2);
  for (int i = 0; i < 3; ++i) copy.apply_gradients(copied.gradients());
  EXPECT_TRUE(bitwise_equal(mine.a.value(), copied.a.value()));
  EXPECT_TRUE(bitwise_equal(mine.b.value(), copied.b.value()));
  expect_says(error_of<InvalidArgument>([&] { copy.rebind(Variables{copied.a}); }), "2 variables");
  expect_says(error_of<InvalidArgument>([&] { copy.rebind(Variables{copied.b, copied.a}); }), "f64[5]");
}

TEST(Optimizers, MovingKeepsTheState) {
  Problem problem;
  Adam optimizer;
  optimizer.apply_gradients(problem.gradients());
  Adam moved = std::move(optimizer);
  moved.apply_gradients(problem.gradients());
  EXPECT_EQ(moved.iterations(), 2);
  expect_says(error_of<InvalidArgument>([&] { optimizer.iterations(); }), "moved");  // NOLINT: that is the test
}

TEST(Optimizers, AssigningWritesTheValues) {
  Problem problem;
  Adam optimizer, start = optimizer;
  const auto step = function([&] { optimizer.apply_gradients(problem.gradients()); });
  step();
  Adam after_one = optimizer;
  step();
  step();
  EXPECT_EQ(optimizer.iterations(), 3);
  optimizer = after_one;
  EXPECT_EQ(optimizer.iterations(), 1);
  step();  // the compiled step sees it
  EXPECT_EQ(optimizer.iterations(), 2);
  EXPECT_EQ(after_one.iterations(), 1);
  expect_says(error_of<InvalidArgument>([&] { optimizer = start; }), "different state");
}

TEST(Optimizers, OneCapturedByValueWouldTrainACopy) {
  Problem problem;
  struct Holder {
    mutable Adam optimizer;
  };
  const auto step = function([held = Holder(), &problem] { held.optimizer.apply_gradients(problem.gradients()); });
  expect_says(error_of<InvalidArgument>([&] { step(); }), "by value");
}

TEST(Optimizers, LearningRatesAreDataAndNeverRetrace) {
  Variable w(constant(1.0), "w");
  SGD optimizer({.learning_rate = cosine});
  const auto step = function([&] {
    GradientTape tape;
    optimizer.apply_gradients(tape.gradient(w * 1, Variables{w}));
  });
  EXPECT_EQ(optimizer.learning_rate(), 0.1);
  step();
  EXPECT_NEAR(w.value().item(), 0.9, 1e-6);
  EXPECT_NEAR(optimizer.learning_rate(), cosine(1), 1e-15);
  optimizer.set_learning_rate(0.5);
  EXPECT_EQ(optimizer.learning_rate(), 0.5);
  step();
  EXPECT_NEAR(w.value().item(), 0.4, 1e-6);
  optimizer.set_learning_rate(0.25);
  step();
  EXPECT_NEAR(w.value().item(), 0.15, 1e-6);
  EXPECT_EQ(step.explain().variants, 1);
  expect_says(error_of<InvalidArgument>([&] { optimizer.set_learning_rate(cosine); }), "compiled");
  EXPECT_EQ(optimizer.learning_rate(), 0.25);
}

TEST(Optimizers, ANumberCanBecomeASchedule) {
  Variable w(constant(1.0), "w");
  SGD optimizer({.learning_rate = 0.5});
  optimizer.apply_gradients(Gradients(Variables{w}, {constant(1.0)}, constant(1.0)));
  optimizer.set_learning_rate(PiecewiseConstantDecay({1}, {0.25, 0.125}));
  EXPECT_EQ(optimizer.learning_rate(), 0.25);
  for (int i = 0; i < 2; ++i) optimizer.apply_gradients(Gradients(Variables{w}, {constant(1.0)}, constant(1.0)));
  EXPECT_EQ(w.value().item(), 1 - 0.5 - 0.25 - 0.125);
}

TEST(Optimizers, RefuseBadOptions) {
  expect_says(error_of<InvalidArgument>([] { Adam({.clipnorm = 1, .global_clipnorm = 1}); }), "clipnorm");
  expect_says(error_of<InvalidArgument>([] { Adam({.beta_1 = 1}); }), "beta_1");
  expect_says(error_of<InvalidArgument>([] { Adam({.beta_2 = -0.1}); }), "beta_2");
  expect_says(error_of<InvalidArgument>([] { Adam({.epsilon = -1}); }), "epsilon");
  expect_says(error_of<InvalidArgument>([] { Adam({.learning_rate = std::nan("")}); }), "learning_rate");
  expect_says(error_of<InvalidArgument>([] { AdamW({.weight_decay = -1}); }), "weight_decay");
  expect_says(error_of<InvalidArgument>([] { SGD({.momentum = 1.5}); }), "momentum");
  expect_says(error_of<InvalidArgument>([] { SGD({.clipnorm = -1}); }), "clipnorm");
  expect_says(error_of<InvalidArgument>([] { Nadam({.amsgrad = true}); }), "amsgrad");
  expect_says(error_of<InvalidArgument>([] { Adamax({.amsgrad = true}); }), "Adamax: it has no amsgrad");
  expect_says(error_of<InvalidArgument>([] { Lamb({.amsgrad = true}); }), "Lamb: it has no amsgrad");
  expect_says(error_of<InvalidArgument>([] { Lamb({.beta_2 = 1}); }), "beta_2");
  expect_says(error_of<InvalidArgument>([] { Adagrad({.initial_accumulator_value = -1}); }),
              "initial_accumulator_value");
  expect_says(error_of<InvalidArgument>([] { Adadelta({.rho = 1}); }), "rho");
  expect_says(error_of<InvalidArgument>([] { Lion({.beta_1 = 1}); }), "beta_1");
  expect_says(error_of<InvalidArgument>([] { Ftrl({.learning_rate = 0}); }), "learning_rate must be positive");
  expect_says(error_of<InvalidArgument>([] { Ftrl({.learning_rate_power = 0.5}); }), "learning_rate_power");
  expect_says(error_of<InvalidArgument>([] { Ftrl({.l1_regularization_strength = -1}); }), "l1_regularization");
  expect_says(error_of<InvalidArgument>([] { Ftrl({.beta = std::nan("")}); }), "beta");
  expect_says(error_of<InvalidArgument>([] { SGD({.clipnorm = 1, .clipvalue = 1}); }), "at most one");
  expect_says(error_of<InvalidArgument>([] { SGD({.clipvalue = -1}); }), "clipvalue");
  expect_says(error_of<InvalidArgument>([] { SGD({.use_ema = true, .ema_momentum = 1.1}); }), "ema_momentum");
  expect_says(error_of<InvalidArgument>([] { SGD({.use_ema = true, .ema_overwrite_frequency = -1}); }),
              "ema_overwrite_frequency");
  expect_says(error_of<InvalidArgument>([] { SGD({.ema_overwrite_frequency = 3}); }), "use_ema");
  expect_says(error_of<InvalidArgument>([] {
                SGD optimizer;
                optimizer.set_learning_rate(std::nan(""));
              }),
              "finite");
  Problem problem;
  Adam optimizer({.global_clipnorm = 1});
  expect_says(error_of<InvalidArgument>([&] { optimizer.apply_gradients(clip_by_norm(problem.gradients(), 1)); }),
              "clipped already");
  Variable integers(constant({1, 2}), "integers");
  expect_says(error_of<InvalidArgument>([&] { SGD().build(Variables{integers}); }), "integers");
}

}  // namespace
}  // namespace gradus::optimizers_test
