/// Each penalty has its own backward pass, so that it may be divided by its own weight.
#include "gradus/train/part_penalties.h"
#include <optional>
#include <vector>
#include "gradus/graph/shard_context.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

using Parts = std::vector<std::optional<GradientPart>>;

/// Shards of two lengths add up the same gradients, those of zeros, too.
GradientOptions penalised() { return {.unconnected = number_of_shards() > 0 ? Unconnected::zero : Unconnected::none}; }

/// Adds gradients of some of the variables. The gradient of a table that no penalty reads stays one of lookups.
void add_up(Parts& sums, const Gradients& more, const Variables& variables) {
  sums.resize(variables.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    std::optional<GradientPart>& sum = sums[static_cast<std::size_t>(variables.find(*more.variables()[i].cell()))];
    sum = sum ? *sum + more.mean(i) : more.mean(i);
  }
}

/// The rows of all shards, if a strategy divides the batch; else `own`.
std::int64_t rows_of_batch(std::int64_t own) {
  const ShardPlace* const at = shard_place();
  return at && at->rows[0] > 0 ? at->of_first * at->rows[0] + at->of_second * at->rows[1] : own;
}

}  // namespace

PartPenalties::PartPenalties(const Module& model, std::int64_t rows)
    : model_(model), variables_(model.trainable_variables()), rows_(rows), rows_of_all_(rows_of_batch(rows)) {}

Gradients PartPenalties::gradient(GradientTape& tape, const Examined& part, std::int64_t rows) {
  const bool has_penalty = part.penalty.defined() || part.activity_penalty.defined();
  if (part.activity_penalty.defined()) {
    const std::int64_t all = part.activity_penalty.node()->varies ? rows_of_all_ : rows_;
    const Tensor penalty = part.activity_penalty * (static_cast<double>(rows) / static_cast<double>(all));
    gradients_ += tape.gradient(Loss::of_total(penalty), variables_, penalised());
    of_activities_ = of_activities_.defined() ? of_activities_ + penalty : penalty;
  }
  return tape.gradient(part.loss, variables_, {.unconnected = has_penalty ? Unconnected::zero : Unconnected::error});
}

void PartPenalties::add_to(Loss& loss, Gradients& gradients) const {
  Examined on_variables{.loss = loss};
  Parts penalties;
  if (gradients_.size() > 0) add_up(penalties, gradients_, variables_);
  {  // A sum over shards that is older than a tape is made again under it, by shards of some lengths alone.
    GradientTape tape;
    detail::add_penalties(on_variables, model_.layer_behind());
    if (on_variables.penalty.defined())
      add_up(penalties, tape.gradient(on_variables.penalty, variables_, penalised()), variables_);
  }
  if (penalties.empty() || gradients.size() == 0) return;
  std::vector<GradientPart> means;
  for (std::size_t i = 0; i < penalties.size(); ++i)
    means.push_back(penalties[i] ? gradients.mean(i) + *penalties[i] : gradients.mean(i));
  gradients = Gradients(variables_, std::move(means), gradients.weight());
  loss = on_variables.total();
  if (of_activities_.defined()) loss = loss.plus_part(of_activities_);
}

}  // namespace gradus
