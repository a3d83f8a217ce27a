// What trainer.h keeps to itself: a model, its optimizer and its data.
#include "trainer.h"
#include <gradus/gradus.h>
using namespace gradus;

namespace {
Tensor column(const std::vector<float>& values) { return from_values(values, {std::ssize(values), 1}); }
}  // namespace

struct Trainer::State {
  Sequential model{Dense(64, tanh), Dense(64, tanh), Dense(1)};
  Adam optimizer{{.learning_rate = 5e-3}};
  Dataset<2> dataset;
};

Trainer::Trainer(const std::vector<float>& x, const std::vector<float>& y, unsigned seed)
    : state_(new State{.dataset = data::from_tensor_slices(column(x), column(y)).shuffle({.seed = seed}).batch(32)}) {
  set_seed(seed);
  state_->model.build({f32, {any_size, 1}});
}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

double Trainer::train(int epochs) {
  const History history =
      fit(state_->model, state_->optimizer, MeanSquaredError(), state_->dataset, {.epochs = epochs, .verbose = false});
  return history.loss.back();
}

std::vector<float> Trainer::predict(const std::vector<float>& x) const {
  return gradus::predict(state_->model, column(x)).to_vector<float>();
}
