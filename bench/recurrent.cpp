/// Training steps of recurrent networks.
#include "bench/workloads.h"
#include "gradus/function/function.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/random.h"
#include "gradus/optim/optimizers.h"

namespace gradus::bench {
namespace {

/// x [32, 128, 32]: one layer of 64 units over 128 places, a classifier of its last state.
Figures train(Module recurrent) {
  Sequential model;
  model.add(std::move(recurrent));
  model.add(Dense(10));
  Adam optimizer({.learning_rate = 1e-3});
  SparseCategoricalCrossentropy loss_function(from_logits);
  const Tensor x = random::uniform({32, 128, 32}, {.seed = 0}), y = random::integers({32}, {.high = 10, .seed = 1});
  const auto train_step = function(
      [&](Tensor sequences, Tensor labels) {
        GradientTape tape;
        Loss loss = loss_function(labels, model(sequences, training));
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        return loss;
      },
      function_options);
  model.build(x.spec());
  synchronize();
  std::vector<double> losses;
  Figures figures = measure({.step = [&] { losses.push_back(train_step(x, y).item()); },
                             .step_without_reading = [&] { train_step(x, y); },
                             .wait = synchronize});
  figures.extra["compile_s"] = train_step.explain().compile_seconds;
  figures.extra["kernels"] = train_step.explain().kernels.size();
  add_losses(figures, losses);
  return figures;
}

}  // namespace

void add_recurrent(Workloads& workloads) {
  workloads["lstm"] = [] { return train(LSTM(64)); };
  workloads["gru"] = [] { return train(GRU(64)); };
  workloads["simple_rnn"] = [] { return train(SimpleRNN(64)); };
}

}  // namespace gradus::bench
