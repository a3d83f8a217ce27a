/// Errors for models, losses and data sets that do not fit together.
#include "gradus/train/task.h"
#include <algorithm>
#include <set>
#include "gradus/base/nearest.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/data/stage.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus::detail {

void fail_fields(std::size_t fields, std::size_t inputs, bool sample_weight) {
  if (sample_weight)
    throw InvalidArgument(text("sample_weight is said, but elements have ", fields, " fields, and the model takes ",
                               inputs, ": there is none left for the weight; expected (x..., y, sample_weight)"));
  throw InvalidArgument(text("elements have ", fields, " fields, but the model takes ", inputs,
                             " besides y; if the last field is a weight, say {.sample_weight = true}"));
}

void fail_weighted_loss(bool only_mask) {
  constexpr std::string_view remedy =
      ", but the loss cannot be called with (y, prediction, sample_weight); give it that parameter";
  throw InvalidArgument(only_mask ? text("the prediction has a mask (Embedding's mask_zero or Masking made it)", remedy,
                                         ", or end the model with a layer that drops the mask, such as Lambda")
                                  : text("sample_weight is said", remedy));
}

void fail_class_weights() {
  throw InvalidArgument("class_weight is for models with a single output, as in Keras; give the others sample weights");
}

void fail_unbuilt() {
  throw InvalidArgument(
      "fit: the model is not built, and a training step of one's own does not tell for which fields; call "
      "model.build({...}) before");
}

Tensor without_left_out(const Tensor& x, const Tensor& weight) {
  const Tensor beside = is_floating(x.dtype()) ? weight_beside(weight, x) : Tensor();
  if (!beside.defined()) return x;
  return where(logical_and(is_left_out(beside), logical_not(is_finite(x))), fill_like(x, 0), x);
}

namespace {

Tensor sum_of(const Tensors& losses, DType t) {
  Tensor sum;
  for (const Tensor& loss : losses) sum = sum.defined() ? sum + cast(loss, t) : cast(loss, t);
  return sum;
}

}  // namespace

void add_penalties(Examined& examined, const Layer& model) {
  if (!examined.loss.defined()) return;
  const DType t = examined.loss.own_weight().dtype();
  examined.penalty = sum_of(model.penalties(), t);
  examined.activity_penalty = sum_of(model.call_losses(), t);
  if (examined.activity_penalty.defined()) model.forget_call_losses();
}

Tensors inputs_of(In fields, std::size_t inputs, bool is_weighted) {
  Tensors given(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(inputs));
  if (is_weighted)
    for (Tensor& x : given) x = without_left_out(x, fields[inputs + 1]);
  return given;
}

Examined examine(const Layer& model, const OneOutput& parts, In fields) {
  const StepScope step(model);
  Examined result{.y = fields[parts.inputs],
                  .prediction = parts.call(inputs_of(fields, parts.inputs, parts.is_weighted))};
  const DType dtype = result.prediction.dtype();
  auto weights = ExampleWeights::of(parts.is_weighted ? fields[parts.inputs + 1] : Tensor(),
                                    SequenceMask::of(result.prediction), dtype);
  result.sample_weight = weights.joint;
  if (!parts.class_weights.empty() && is_training())
    weights = ExampleWeights::of(weights_of_examples(parts.class_weights, result.y, result.prediction, weights.mask),
                                 weights.mask, dtype);
  result.loss_weight = weights.joint;
  result.loss = parts.loss(result.y, result.prediction, weights);
  add_penalties(result, model);
  return result;
}

std::size_t inputs_beside_outputs(std::size_t fields, std::size_t outputs, bool sample_weight,
                                  const std::vector<std::size_t>& taken) {
  const auto fits = [&](std::size_t inputs) {
    const std::size_t rest = fields - inputs;
    return sample_weight ? rest == outputs + 1 || rest == 2 * outputs : rest == outputs;
  };
  for (auto inputs = taken.rbegin(); inputs != taken.rend(); ++inputs)
    if (fits(*inputs)) return *inputs;
  TextStream numbers;
  for (const std::size_t each : taken) numbers << (each == taken[0] ? "" : " or ") << each;
  throw InvalidArgument(text("elements have ", fields, " fields, but the model takes ", numbers.str(), ", and ",
                             outputs, " of its outputs have losses; expected (x..., one y for each of them",
                             sample_weight ? ", one sample_weight, or one for each)" : ")"));
}

namespace {

/// A weight that is 0 where all of them are; empty if they are not alike.
Tensor weight_of_all(In weights) {
  if (weights.empty()) return {};
  Tensor sum = abs(weights[0]);
  for (const Tensor& each : weights.subspan(1)) {
    if (each.spec() != weights[0].spec()) return {};
    sum = sum + abs(each);
  }
  return sum;
}

struct OutputsTask {
  const Layer& model;
  const Losses& losses;
  const std::vector<std::string> outputs;
  const OutputsOf call;
  const std::size_t inputs;

  Tensors inputs_of(In fields, In weights) const {
    Tensors given(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(inputs));
    if (const Tensor weight = weight_of_all(weights); weight.defined())
      for (Tensor& x : given) x = without_left_out(x, weight);
    return given;
  }
  static Tensor prediction_of(const NamedTensors& predictions, const std::string& output) {
    std::vector<std::string> known;
    for (const auto& [name, prediction] : predictions) {
      if (name == output) return prediction;
      known.push_back(name);
    }
    throw InvalidArgument(text("Losses: `", output, "` is no output of the model", did_you_mean(output, known)));
  }
  ExaminedOutput output_of(const std::string& name, const NamedTensors& predictions, const Tensor& y,
                           const Tensor& own) const {
    const Tensor prediction = prediction_of(predictions, name);
    const auto weights = ExampleWeights::of(own, SequenceMask::of(prediction), prediction.dtype());
    return {name, losses.of(name).loss.weighed(y, prediction, weights), y, prediction, weights.joint};
  }
  Examined examine(In fields) const {
    const StepScope call_of_step(model);
    const In targets = fields.subspan(inputs, outputs.size()), weights = fields.subspan(inputs + outputs.size());
    const NamedTensors predictions = call(inputs_of(fields, weights));
    Examined result{.y = targets[0]};
    for (std::size_t i = 0; i < outputs.size(); ++i)
      result.outputs.push_back(output_of(outputs[i], predictions, targets[i],
                                         weights.empty() ? Tensor() : weights[weights.size() == 1 ? 0 : i]));
    result.loss = total_of_outputs(losses, result.outputs, result.parts_differ);
    add_penalties(result, model);
    return result;
  }
};

}  // namespace

Task task_of_outputs(Layer& model, const Losses& losses, std::vector<std::string> outputs, OutputsOf call,
                     std::size_t inputs, std::size_t fields) {
  Task task{.fields = fields, .outputs = outputs};
  task.examine = [with = std::make_shared<OutputsTask>(OutputsTask{model, losses, std::move(outputs), std::move(call),
                                                                   inputs})](In in) { return with->examine(in); };
  task.build = [&model, inputs](const std::vector<Spec>& specs, CallMode mode) {
    return build_all(model, std::span(specs).first(inputs), mode);
  };
  return task;
}

}  // namespace gradus::detail

namespace gradus {

using detail::Examined;
using detail::Task;
namespace {

bool is_whole(const Layer& layer, std::set<const Layer*>& seen) {
  if (!seen.insert(&layer).second) return true;
  return layer.is_built() &&
         std::ranges::all_of(layer.children(), [&](const auto& child) { return is_whole(*child, seen); });
}
bool is_whole(const Layer& layer) {
  std::set<const Layer*> seen;
  return is_whole(layer, seen);
}

}  // namespace

bool build_all(Layer& model, std::span<const Spec> inputs, CallMode mode) {
  const bool was_built = model.is_built();
  model.ensure_built(inputs);
  const auto run_in = [&](CallMode each) {
    if (!is_whole(model) && std::ranges::none_of(inputs, has_any_size)) model.run_for(inputs, each);
  };
  if (was_built) run_in(CallMode::inference);
  if (mode == CallMode::training) run_in(mode);  // such as a head beside the result
  return is_whole(model);
}

namespace {

std::string element_text(const std::vector<Spec>& specs) {
  TextStream fields;
  for (const Spec& spec : specs) fields << (&spec == specs.data() ? "" : ", ") << spec;
  return fields.str();
}

/// A generator does not declare whether its elements are batches; the sizes of their first axes show if they cannot be.
/// If the sizes are fixed and equal, one example looks like a batch.
void check_generated(std::string_view what, const std::vector<Spec>& specs) {
  const auto rows = [](const Spec& spec) { return spec.shape[0]; };
  if (specs.empty() || std::ranges::find(specs, any_size, rows) != specs.end()) return;
  const bool is_apart = specs.size() > 1 && std::ranges::count(specs, rows(specs.back()), rows) == 1;
  require(!is_apart, what, ": it is not known whether its elements, (", element_text(specs),
          "), are batches; they cannot be, since the last field has ", rows(specs.back()),
          " rows and the others have other numbers; write .batch(32) behind it. If elements are meant as they are, say "
          "{.unbatched = true}");
  notice(
      text("gradus: ", what, ": each of its elements, (", element_text(specs), "), is taken for a batch of ",
           rows(specs.back()),
           " examples; if it is one example, write .batch(32) behind it; {.unbatched = true} says that it is not\n"));
}

}  // namespace

void check_batched(std::string_view what, const std::vector<Spec>& specs, std::optional<int> batchings,
                   bool unbatched) {
  if (unbatched) return;
  const bool has_scalar = std::ranges::any_of(specs, [](const Spec& spec) { return spec.shape.rank() == 0; });
  if (!batchings && !has_scalar) return check_generated(what, specs);
  if (batchings != 0 && !has_scalar) return;
  throw InvalidArgument(text(what, " was not batched: an element is one example, (", element_text(specs),
                             "), and rows of it would be taken for examples; write .batch(32) behind it. If elements "
                             "are meant as they are, say {.unbatched = true}"));
}

Loss Examined::total() const {
  const Loss all = penalty.defined() ? loss + penalty : loss;
  if (!activity_penalty.defined()) return all;
  return all.plus_mean_of_rows(activity_penalty, y.shape().rank() > 0 ? y.shape()[0] : 1);
}

}  // namespace gradus
