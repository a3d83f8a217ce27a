/// Names of outputs, and the sum of their losses.
#include "gradus/train/outputs.h"
#include <algorithm>
#include <cmath>
#include "gradus/base/nearest.h"
#include "gradus/gradients/shard_target.h"
#include "gradus/graph/same_value.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

std::vector<std::string> outputs_of_losses(const std::vector<Losses::Entry>& entries) {
  std::vector<std::string> names;
  for (const Losses::Entry& each : entries) names.push_back(each.output);
  return names;
}

bool have_one_weight(const std::vector<ExaminedOutput>& outputs) {
  const Loss& first = outputs[0].loss;
  return std::ranges::all_of(outputs, [&](const ExaminedOutput& each) {
    return each.loss.is_sum() == first.is_sum() &&
           (first.is_sum() || are_surely_equal(*each.loss.own_weight().node(), *first.own_weight().node()));
  });
}

Loss times_weight(const Loss& loss, double factor) { return factor == 1 ? loss : loss * factor; }

/// This shard's part of the mean over all examples.
Tensor part_of_mean(const Loss& loss) {
  if (!differs_by_shard(loss.own_sum())) return loss.value();
  return loss.is_sum() ? loss.own_sum() : divide_no_nan(loss.own_sum(), loss.weight());
}

}  // namespace

detail::ExampleWeights detail::ExampleWeights::of(const Tensor& own, const Tensor& mask, DType prediction) {
  return {.own = own, .mask = mask, .joint = joint_weight(own, mask, prediction)};
}

Losses::Losses(std::vector<NamedLoss> losses, LossesOptions options) {
  require(!losses.empty(), "Losses: there are none; expected {{\"output\", MeanSquaredError()}}");
  for (NamedLoss& each : losses) {
    require(std::ranges::find(entries_, each.output, &Entry::output) == entries_.end(), "Losses: two are of `",
            each.output, "`");
    entries_.push_back({std::move(each.output), std::move(each.loss), 1});
  }
  for (const auto& [output, weight] : options.loss_weights) {
    const auto found = std::ranges::find(entries_, output, &Entry::output);
    require(found != entries_.end(), "Losses: loss_weights: `", output, "` has no loss",
            did_you_mean(output, outputs_of_losses(entries_)));
    require(std::isfinite(weight), "Losses: loss_weights: the weight of `", output, "` must be finite, got ", weight);
    found->weight = weight;
  }
}

std::vector<std::string> Losses::outputs(const std::optional<std::vector<std::string>>& known) const {
  std::vector<std::string> named = outputs_of_losses(entries_);
  std::ranges::sort(named);
  if (!known) return named;
  for (const Entry& each : entries_)
    require(std::ranges::find(*known, each.output) != known->end(), "Losses: `", each.output,
            "` is no output of the model", did_you_mean(each.output, *known));
  std::vector<std::string> ordered;
  std::ranges::copy_if(*known, std::back_inserter(ordered),
                       [&](const std::string& each) { return std::ranges::binary_search(named, each); });
  return ordered;
}

const Losses::Entry& Losses::of(std::string_view output) const {
  const auto found = std::ranges::find(entries_, output, &Entry::output);
  internal_check(found != entries_.end(), "no loss of output ", output);
  return *found;
}

Loss detail::total_of_outputs(const Losses& losses, const std::vector<ExaminedOutput>& outputs, bool& parts_differ) {
  parts_differ = !have_one_weight(outputs);
  if (!parts_differ) {
    Loss total = times_weight(outputs[0].loss, losses.of(outputs[0].name).weight);
    for (std::size_t i = 1; i < outputs.size(); ++i)
      total = total + times_weight(outputs[i].loss, losses.of(outputs[i].name).weight);
    return total;
  }
  Tensor sum;
  for (const ExaminedOutput& each : outputs) {
    const Tensor part = part_of_mean(each.loss) * losses.of(each.name).weight;
    sum = sum.defined() ? sum + cast(part, sum.dtype()) : part;
  }
  const Shape& rows = outputs[0].y.shape();
  const Tensor weight = extent(rows.rank() > 0 ? rows[0] : 1, sum.dtype());
  if (!differs_by_shard(sum)) return Loss::of_mean(sum, weight);
  const Tensor rows_of_all = Loss::of_mean(sum, weight).weight();
  return Loss::of_sums(rows_of_all * sum, weight);
}

}  // namespace gradus
