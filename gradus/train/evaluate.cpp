/// evaluate and predict.
#include <algorithm>
#include "gradus/data/batch_readers.h"
#include "gradus/function/mode.h"
#include "gradus/function/pending.h"
#include "gradus/ops/masked_rows.h"
#include "gradus/train/build.h"
#include "gradus/train/fit.h"
#include "gradus/train/shared_pass.h"
#include "gradus/train/step.h"

namespace gradus {

void check_length(const Pipeline& dataset, std::string_view what, std::string_view remedy) {
  require(!dataset.is_endless(), what, " has no end; say how much is to be read, with ", remedy);
  require<DataError>(dataset.cardinality() != 0, what, " is empty");
}

Pipeline distributed(const Pipeline& dataset, const std::optional<Strategy>& strategy) {
  return strategy ? strategy->distributed(dataset) : dataset;
}

namespace {

/// A prediction is of all rows, so the data may not end in one process before they do in the others.
void require_all_rows(const Tensors& batch) {
  for (const Tensor& field : batch)
    if (const auto part = batch_of_part(field); part && !part->has_ended.empty()) {
      const auto rank = static_cast<int>(std::ranges::find(part->has_ended, true) - part->has_ended.begin());
      throw DataError(text("predict: the data set has fewer batches on ", part->readers->name_of(rank),
                           " than on others: all ranks read the same data"));
    }
}

}  // namespace

Evaluation detail::evaluate(const Task& task, const Pipeline& dataset, EvaluateOptions options) {
  check_length(dataset, "evaluate: the data set", ".take(steps)");
  require(task.test || !task.train, "evaluate: a training step of one's own does not tell how to evaluate; give a ",
          "function that gives Logs and trains nothing, or TrainingSteps with .test");
  check_batched("evaluate: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  build_for_elements(dataset, CallMode::inference, task.build);
  EvaluationStep step(task, std::move(options.metrics), std::move(options.weighted_metrics),
                      with_signature({.name = "evaluate"}, dataset.specs()), options.strategy);
  told_to_all(options.strategy, [&] { step.run(distributed(dataset, options.strategy)); });
  return {step.totals().loss(), step.totals().metrics()};
}

Tensor detail::predict(const Module& model, const ElementFunction& call, const Pipeline& dataset,
                       PredictOptions options, std::size_t inputs) {
  check_options("predict", options);
  check_length(dataset, "predict: the data set", ".take(steps)");
  for (const Spec& spec : dataset.specs())
    require(spec.shape.rank() > 0, "predict: an element of the data set is a scalar ", spec, ", expected [rows, ...]");
  check_batched("predict: the data set", dataset.specs(), dataset.batchings(), options.unbatched);
  build_for_elements(dataset, CallMode::inference, [&](const std::vector<Spec>& specs, CallMode mode) {
    return build_all(model.layer_behind(), std::span(specs).first(inputs), mode);
  });
  StepFunction function(with_signature({.name = "predict"}, dataset.specs()), options.strategy);
  const ModeScope mode(CallMode::inference);
  Tensors parts;
  told_to_all(options.strategy, [&] {
    const auto reading = distributed(dataset, options.strategy).epoch(0).begin();
    for (; !reading->at_end(); reading->advance()) {
      const Tensors& batch = reading->element();
      require_all_rows(batch);
      parts.push_back(function.result(batch, [&](In x) { return Called{call(x), nullptr}; }));
    }
  });
  require<DataError>(!parts.empty(), "predict: the data set is empty");
  return joined_rows(parts);
}

Tensor predict(const Module& model, const Tensor& x, PredictOptions options) {
  check_options("predict", options);
  require(x.shape().rank() > 0, "predict: x is a scalar, expected [rows, ...]");
  const std::int64_t rows = x.shape()[0];
  if (options.strategy && rows > 0) {
    const MaskedRows masked({&x, 1});
    const auto call = [&](In in) { return Tensors{model(masked.take(in)[0])}; };
    const Pipeline batches = data::slices({masked.all().begin(), masked.all().end()}).batch(options.batch_size, {});
    return detail::predict(model, call, batches, options, 1);
  }
  if (rows <= options.batch_size) return model(x, inference);
  Tensors parts;
  for (std::int64_t begin = 0; begin < rows; begin += options.batch_size) {
    parts.push_back(model(masked_rows(x, begin, std::min(begin + options.batch_size, rows)), inference));
    parts.back().observed();  // of one batch no more than its result stays in memory
  }
  return joined_rows(parts);
}

}  // namespace gradus
