/// Each penalty has its own backward pass, so that it may be divided by its own weight.
#include "gradus/train/part_penalties.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

void add_up(Tensors& sums, const Gradients& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (i < sums.size()) sums[i] = sums[i] + more[i];
    else sums.push_back(more[i]);
  }
}

}  // namespace

PartPenalties::PartPenalties(const Module& model, std::int64_t rows)
    : model_(model), variables_(model.trainable_variables()), rows_(rows) {}

Gradients PartPenalties::gradient(GradientTape& tape, const Examined& part, std::int64_t rows) {
  const bool has_penalty = part.penalty.defined() || part.activity_penalty.defined();
  if (part.activity_penalty.defined()) {
    const Tensor penalty = part.activity_penalty * (static_cast<double>(rows) / static_cast<double>(rows_));
    add_up(gradients_, tape.gradient(penalty, variables_, {.unconnected = Unconnected::zero}));
    of_activities_ = of_activities_.defined() ? of_activities_ + penalty : penalty;
  }
  return tape.gradient(part.loss, variables_, {.unconnected = has_penalty ? Unconnected::zero : Unconnected::error});
}

void PartPenalties::add_to(Loss& loss, Gradients& gradients) const {
  GradientTape tape;
  Examined on_variables{.loss = loss};
  detail::add_penalties(on_variables, model_.layer_behind());
  Tensors means = gradients_;
  if (on_variables.penalty.defined())
    add_up(means, tape.gradient(on_variables.penalty, variables_, {.unconnected = Unconnected::zero}));
  if (means.empty() || gradients.size() == 0) return;
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = gradients[i] + means[i];
  gradients = Gradients(variables_, std::move(means), gradients.weight());
  on_variables.activity_penalty = of_activities_;
  loss = on_variables.total();
}

}  // namespace gradus
