/// Accumulation over unequal parts with weights is the step of the whole batch: with clipping, decay, groups, a
/// schedule and moving averages, by tape and by accumulated_gradients, in f64 within 1e-12.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/optim/optimizers.h"

namespace gradus::accumulation_test {
namespace {

constexpr int steps = 12;

struct Net {
  Variable kernel{random::normal({5, 3}, {.dtype = f64, .seed = 1}), "kernel"},
      bias{random::normal({3}, {.dtype = f64, .seed = 2}), "bias"};
  Variables variables() { return Variables{kernel, bias}; }
  /// Each row weighs what `weight` says; 0: it is masked.
  Loss loss(const Tensor& x, const Tensor& y, const Tensor& weight) const {
    return Loss::mean(reduce_mean(square(tanh(matmul(x, kernel) + bias) - y), {.axis = {-1}}), weight);
  }
};

struct Batch {
  Tensor x = random::normal({13, 5}, {.dtype = f64, .seed = 3}), y = random::normal({13, 3}, {.dtype = f64, .seed = 4});
  Tensor weight = cast(random::integers({13}, {.high = 4, .seed = 5}), f64) * 0.5;
};

Gradients whole(Net& net, const Batch& b) {
  GradientTape tape;
  return tape.gradient(net.loss(b.x, b.y, b.weight), net.variables());
}
Gradients by_tape(Net& net, const Batch& b) {
  Gradients total;
  for (auto [x, y, weight] : micro_batches({b.x, b.y, b.weight}, 4)) {
    GradientTape tape;
    total += tape.gradient(net.loss(x, y, weight), net.variables());
  }
  return total;
}
Gradients by_loop(Net& net, const Batch& b) {
  return accumulated_gradients([&](Tensor x, Tensor y, Tensor weight) { return net.loss(x, y, weight); },
                               net.variables(), {b.x, b.y, b.weight}, {.micro_batch = 5})
      .gradients;
}

using Ways = Gradients (*)(Net&, const Batch&);

std::vector<std::pair<std::string, std::function<Optimizer(Net&)>>> optimizers() {
  const CosineDecay cosine({.initial_learning_rate = 0, .decay_steps = 9, .warmup_steps = 3, .warmup_target = 0.05});
  return {
      {"adamw",
       [cosine](Net& net) {
         AdamW optimizer({.learning_rate = cosine,
                          .weight_decay = 0.1,
                          .global_clipnorm = 0.05,
                          .use_ema = true,
                          .ema_momentum = 0.7,
                          .ema_overwrite_frequency = 4});
         optimizer.exclude_from_weight_decay(Variables{net.bias});
         return Optimizer(optimizer);
       }},
      {"sgd",
       [](Net& net) {
         SGD optimizer({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .clipnorm = 0.1});
         optimizer.add_parameter_group(Variables{net.bias}, {.learning_rate = 0.3, .weight_decay = 0.0});
         return Optimizer(optimizer);
       }},
      {"lamb", [](Net&) { return Optimizer(Lamb({.learning_rate = 0.05, .clipvalue = 0.02})); }},
      {"nadam", [](Net&) { return Optimizer(Nadam({.learning_rate = 0.05})); }},
  };
}

TEST(Accumulation, IsTheStepOfTheWholeBatch) {
  const Batch batch;
  for (const auto& [name, make] : optimizers())
    for (const Ways way : {by_tape, by_loop}) {
      Net one, other;
      Optimizer large = make(one), accumulating = make(other);
      const auto step = function([&] { accumulating.apply_gradients(way(other, batch)); });
      for (int i = 0; i < steps; ++i) {
        large.apply_gradients(whole(one, batch));
        step();
        for (std::size_t k = 0; k < 2; ++k)
          EXPECT_LT(max_abs_difference(one.variables()[k], other.variables()[k]), 1e-12) << name << ", step " << i;
      }
      EXPECT_EQ(accumulating.iterations(), steps);  // updates, not parts
      EXPECT_EQ(large.learning_rate(), accumulating.learning_rate());
    }
}

}  // namespace
}  // namespace gradus::accumulation_test
