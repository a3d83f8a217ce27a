/// Training steps of recurrent networks.
#include "bench/inputs.h"
#include "bench/training.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/recurrent.h"

namespace gradus::bench {
namespace {

/// x [32, 128, 32]: one layer of 64 units over 128 places, a classifier of its last state.
Figures train_recurrent(Module recurrent) {
  Sequential model;
  model.add(std::move(recurrent));
  model.add(Dense(10));
  Adam optimizer({.learning_rate = 1e-3});
  const SparseCategoricalCrossentropy loss_function(from_logits);
  const auto [x, y] = batch_of({32, 128, 32});
  model.build(x.spec());
  optimizer.build(model.trainable_variables());
  return measure_training(train_step(model, optimizer, loss_function), x, y);
}

}  // namespace

void add_recurrent(Workloads& workloads) {
  workloads["lstm"] = [] { return train_recurrent(LSTM(64)); };
  workloads["gru"] = [] { return train_recurrent(GRU(64)); };
  workloads["simple_rnn"] = [] { return train_recurrent(SimpleRNN(64)); };
}

}  // namespace gradus::bench
