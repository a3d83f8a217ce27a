// fit, evaluate and predict of models from Python. A model and its loss are called while a step is traced; a step then
// runs without Python, but for callbacks that ask for steps.
#include <chrono>
#include "python/src/asked.h"
#include "python/src/binding.h"
#include "python/src/generated.h"
#include "python/src/pipeline.h"

namespace gradus::python {
namespace {

using erased::Task;

// ---- losses

/// A Loss, or a tensor: the mean of one number an example, or a scalar as it is.
Loss loss_of(nb::handle given) {
  if (nb::isinstance<Loss>(given)) return nb::cast<const Loss&>(given);
  const Tensor value = tensor_of(given);
  return value.shape().rank() > 0 ? Loss::mean(value) : Loss::of(value);
}

/// A loss of the library, or a function of Python of (y, prediction) or (y, prediction, sample_weight).
OutputLoss loss_function_of(const nb::object& given) {
  if (nb::isinstance<LossFunction>(given)) return OutputLoss(nb::cast<const LossFunction&>(given));
  struct OfPython {
    Held f;
    Loss operator()(const Tensor& y, const Tensor& prediction) const {
      return in_python([&] { return loss_of(f.get()(y, prediction)); });
    }
    Loss operator()(const Tensor& y, const Tensor& prediction, const Tensor& sample_weight) const {
      return in_python([&] { return loss_of(f.get()(y, prediction, sample_weight)); });
    }
  };
  return OutputLoss(OfPython{Held(given)});
}

// ---- the task

/// A training as Python describes it; _training.py makes it.
struct Plan {
  std::size_t fields = 0, inputs = 0;  // of an element; of the model
  bool is_weighted = false;            // the last field is the weight of an example
  ClassWeights class_weights;
  Held call;                         // the model: a list of tensors in, a tensor or a list of tensors out
  std::vector<std::string> outputs;  // their names, if there are several
  std::optional<OutputLoss> loss;    // of one output
  std::optional<Losses> losses;      // of several
  Held train, test;                  // steps of the user's own: a list of fields in, a dict of logs out
};

Tensors outputs_of(const Plan& plan, In inputs) {
  return in_python([&] {
    const nb::object found = plan.call.get()(list_of(inputs));
    return is_sequence(found) ? fields_of(found) : Tensors{tensor_of(found)};
  });
}

/// A model with one output, and its loss.
erased::OneOutput one_output(const Plan& plan) {
  return {plan.inputs, plan.is_weighted, plan.class_weights, [&plan](In in) { return outputs_of(plan, in).at(0); },
          [&plan](const Tensor& y, const Tensor& prediction, const auto& weights) {
            return plan.loss->weighed(y, prediction, weights);
          }};
}

Logs logs_of(const Held& step, In fields) {
  return in_python([&] {
    Logs logs;
    const nb::object found = step.get()(list_of(fields));
    if (!nb::isinstance<nb::dict>(found))
      throw nb::type_error(
          text("train_step and test_step give a dict of numbers by name, such as {\"loss\": loss}, not ",
               class_of(found))
              .c_str());
    for (const auto& [name, value] : nb::cast<nb::dict>(found)) logs.add(nb::cast<std::string>(name), loss_of(value));
    return logs;
  });
}

/// The task of a plan, which outlives it.
Task task_of(const Module& model, const Plan& plan) {
  Task task{.fields = plan.fields};
  if (plan.train || plan.test) {
    if (plan.train) task.train = [&plan](In fields) { return logs_of(plan.train, fields); };
    if (plan.test) task.test = [&plan](In fields) { return logs_of(plan.test, fields); };
  } else if (plan.losses) {
    const auto call = [&plan](In inputs) {
      const Tensors found = outputs_of(plan, inputs);
      require(found.size() == plan.outputs.size(), "the model has given ", found.size(), " outputs, and now ",
              plan.outputs.size());
      detail::NamedTensors named;
      for (std::size_t i = 0; i < found.size(); ++i) named.emplace_back(plan.outputs[i], found[i]);
      return named;
    };
    task = detail::task_of_outputs(model.layer_behind(), *plan.losses, plan.losses->outputs(plan.outputs), call,
                                   plan.inputs, plan.fields);
  } else {
    task.examine = [&model, parts = one_output(plan)](In fields) {
      return erased::examine(model.layer_behind(), parts, fields);
    };
  }
  task.build = [&model, &plan](const std::vector<Spec>& specs, CallMode mode) {
    return erased::build_all(model.layer_behind(), std::span(specs).first(plan.inputs), mode);
  };
  return task;
}

template <class T> void take(const nb::dict& from, const char* name, T& into) {
  if (from.contains(name) && !from[name].is_none()) into = nb::cast<T>(from[name]);
}
void take(const nb::dict& from, const char* name, Held& into) {
  if (from.contains(name) && !from[name].is_none()) into = Held(nb::object(from[name]));
}

/// An option of fit.
template <class T> T option(nb::handle given, const char* name) { return asked<T>(given, {"fit", name}); }
template <class T> void ask(const nb::dict& from, const char* name, T& into) {
  if (from.contains(name) && !from[name].is_none()) into = option<T>(from[name], name);
}

ClassWeights class_weights_of(nb::handle given) {
  ClassWeights weights;
  for (const auto& [label, weight] : nb::cast<nb::dict>(given))
    weights[option<std::int64_t>(label, "class_weight")] = option<double>(weight, "class_weight");
  return weights;
}

Losses losses_of(const nb::dict& losses, const nb::dict& factors) {
  std::vector<NamedLoss> named;
  for (const auto& [output, loss] : losses)
    named.push_back({nb::cast<std::string>(output), loss_function_of(nb::borrow(loss))});
  LossesOptions options;
  for (const auto& [output, factor] : factors)
    options.loss_weights[nb::cast<std::string>(output)] = nb::cast<double>(factor);
  return Losses(std::move(named), std::move(options));
}

Plan plan_of(const nb::dict& given) {
  Plan plan;
  take(given, "fields", plan.fields);
  take(given, "inputs", plan.inputs);
  take(given, "is_weighted", plan.is_weighted);
  take(given, "outputs", plan.outputs);
  take(given, "call", plan.call);
  take(given, "train", plan.train);
  take(given, "test", plan.test);
  if (given.contains("class_weight")) plan.class_weights = class_weights_of(given["class_weight"]);
  if (given.contains("losses"))
    plan.losses = losses_of(nb::cast<nb::dict>(given["losses"]), nb::cast<nb::dict>(given["loss_weights"]));
  else if (given.contains("loss")) plan.loss = loss_function_of(nb::object(given["loss"]));
  return plan;
}

// ---- callbacks

using Named = std::vector<std::pair<std::string, double>>;

nb::dict dict_of(const Named& numbers) {
  nb::dict made;
  for (const auto& [name, value] : numbers) made[name.c_str()] = value;
  return made;
}

nb::dict logs_of(const EpochLog& log) {
  nb::dict logs;
  if (log.has_loss) logs["loss"] = log.loss;
  if (log.validation_loss) logs["validation_loss"] = *log.validation_loss;
  logs.update(dict_of(log.metrics));
  return logs;
}

/// Functions of Python by the names of a Callback's. Those of epochs and steps give True to end the training.
Callback callback_of(const nb::dict& hooks, std::string name) {
  Callback made;
  made.name = std::move(name);
  const auto hook = [&](const char* of) {
    Held f;
    take(hooks, of, f);
    return f;
  };
  const auto asks_to_stop = [](const Held& f, auto&&... arguments) {
    return in_python([&] { return PyObject_IsTrue(nb::object(f.get()(arguments...)).ptr()) == 1; });
  };
  if (const Held f = hook("on_train_begin")) made.on_train_begin = [f](TrainBegin) { in_python([&] { f.get()(); }); };
  if (const Held f = hook("on_train_end")) made.on_train_end = [f](TrainEnd) { in_python([&] { f.get()(); }); };
  if (const Held f = hook("on_test_begin")) made.on_test_begin = [f](TestLog) { in_python([&] { f.get()(); }); };
  if (const Held f = hook("on_test_end")) made.on_test_end = [f](TestLog) { in_python([&] { f.get()(); }); };
  if (const Held f = hook("on_epoch_begin"))
    made.on_epoch_begin = [f, asks_to_stop](EpochBegin log) { log.stop |= asks_to_stop(f, log.epoch); };
  if (const Held f = hook("on_epoch_end"))
    made.on_epoch_end = [f, asks_to_stop](EpochLog log) {
      log.stop |= in_python([&] { return asks_to_stop(f, log.epoch, logs_of(log)); });
    };
  if (const Held f = hook("on_step_end"))
    made.on_step_end = [f, asks_to_stop](StepLog log) { log.stop |= asks_to_stop(f, log.step, log.loss); };
  if (const Held f = hook("variables"))
    made.variables = [f] {
      return in_python([&] {
        Variables all;
        for (const nb::handle each : nb::object(f.get()())) all.add(nb::cast<const Variable&>(each));
        return all;
      });
    };
  return made;
}

/// Ctrl-C ends the training after the step that runs. Python is asked a few times a second.
Callback interrupts() {
  using Clock = std::chrono::steady_clock;
  Callback made;
  made.name = "interrupts of Python";
  made.on_step_end = [asked = Clock::now()](StepLog) mutable {
    if (Clock::now() - asked < std::chrono::milliseconds(50)) return;
    asked = Clock::now();
    in_python(check_signals);
  };
  return made;
}

// ---- options

std::vector<Metric> metrics_of(nb::handle given) {
  std::vector<Metric> all;
  for (const nb::handle each : given) all.push_back(nb::cast<const Metric&>(each));
  return all;
}

void take_strategy(const nb::dict& from, std::optional<Strategy>& into) {
  if (from.contains("strategy")) into = nb::cast<const Strategy&>(from["strategy"]);
}

FitOptions fit_options_of(const nb::dict& given) {
  FitOptions options{.epochs = 1};
  ask(given, "epochs", options.epochs);
  ask(given, "initial_epoch", options.initial_epoch);
  ask(given, "steps_per_epoch", options.steps_per_epoch);
  ask(given, "validation_split", options.validation_split);
  ask(given, "micro_batch", options.micro_batch);
  ask(given, "verbose", options.verbose);
  ask(given, "unbatched", options.unbatched);
  ask(given, "fast_dev_run", options.fast_dev_run);
  ask(given, "sample_weight", options.sample_weight);
  take_strategy(given, options.strategy);
  if (given.contains("metrics")) options.metrics = metrics_of(given["metrics"]);
  if (given.contains("weighted_metrics")) options.weighted_metrics = metrics_of(given["weighted_metrics"]);
  if (given.contains("class_weight")) options.class_weight = class_weights_of(given["class_weight"]);
  if (given.contains("validation"))
    options.validation = AnyDataset(*nb::cast<const PythonPipeline&>(given["validation"]).stages);
  if (given.contains("validation_freq")) {
    const nb::object freq = given["validation_freq"];
    options.validation_freq = is_sequence(freq) ? ValidationFrequency(option<std::vector<int>>(freq, "validation_freq"))
                                                : ValidationFrequency(option<int>(freq, "validation_freq"));
  }
  if (given.contains("checkpoints")) {
    const nb::dict checkpoints = nb::cast<nb::dict>(given["checkpoints"]);
    CheckpointOptions made{.directory = option<std::filesystem::path>(checkpoints["directory"], "checkpoints")};
    ask(checkpoints, "max_to_keep", made.max_to_keep);
    ask(checkpoints, "every_steps", made.every_steps);
    options.checkpoints = made;
  }
  if (given.contains("callbacks"))
    for (const nb::handle each : nb::cast<nb::list>(given["callbacks"]))
      options.callbacks.push_back(
          nb::isinstance<nb::dict>(each)
              ? callback_of(nb::cast<nb::dict>(each), nb::cast<std::string>(nb::cast<nb::dict>(each)["name"]))
              : nb::cast<const Callback&>(each));
  options.callbacks.push_back(interrupts());
  return options;
}

nb::dict dict_of(const History& history) {
  nb::dict made;
  made["loss"] = history.loss;
  if (!history.validation_loss.empty()) made["validation_loss"] = history.validation_loss;
  for (const auto& [name, values] : history.metrics) made[name.c_str()] = values;
  made["seconds"] = history.seconds;
  return made;
}

nb::dict fit_model(Module& model, Optimizer& optimizer, const nb::dict& given, const PythonPipeline& data,
                   const nb::dict& options) {
  const Plan plan = plan_of(given);
  const Task task = task_of(model, plan);
  FitOptions chosen = fit_options_of(options);
  return dict_of(without_gil([&] { return erased::fit(model, optimizer, task, *data.stages, std::move(chosen)); }));
}

nb::dict evaluate_model(Module& model, const nb::dict& given, const PythonPipeline& data, const nb::dict& options) {
  const Plan plan = plan_of(given);
  const Task task = task_of(model, plan);
  EvaluateOptions chosen{.sample_weight = plan.is_weighted};
  take(options, "unbatched", chosen.unbatched);
  take_strategy(options, chosen.strategy);
  if (options.contains("metrics")) chosen.metrics = metrics_of(options["metrics"]);
  if (options.contains("weighted_metrics")) chosen.weighted_metrics = metrics_of(options["weighted_metrics"]);
  const Evaluation found = without_gil([&] { return erased::evaluate(task, *data.stages, std::move(chosen)); });
  nb::dict made;
  made["loss"] = found.loss;
  made.update(dict_of(found.metrics));
  return made;
}

// ---- optimizers

/// Pairs of a gradient and its Variable, as plain means of weight 1. A Variable without a gradient keeps its value.
Gradients gradients_of_pairs(nb::handle pairs) {
  Variables variables;
  std::vector<Tensor> means;
  nb::list without;
  for (const nb::handle each : pairs) {
    const nb::object pair = nb::borrow(each);
    if (!is_sequence(pair) || nb::len(pair) != 2 || !nb::isinstance<Variable>(nb::object(pair[1])))
      throw nb::type_error(
          "apply_gradients: takes Gradients, as tape.gradient(loss, variables) gives them, or pairs of a gradient and "
          "its Variable");
    const auto& variable = nb::cast<const Variable&>(nb::object(pair[1]));
    if (nb::object(pair[0]).is_none()) {
      without.append(variable.name());
      continue;
    }
    variables.add(variable);
    means.push_back(tensor_of(nb::object(pair[0]), variable.dtype()));
  }
  if (means.empty())
    throw nb::value_error(text("apply_gradients: no Variable has a gradient", nb::len(without) ? ": " : "",
                               nb::len(without) ? text_of(without) : "")
                              .c_str());
  if (nb::len(without) > 0) {
    const std::string message =
        text("apply_gradients: these Variables have no gradient, and keep their values: ", text_of(without));
    if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) != 0) throw nb::python_error();
  }
  return erased::gradients_of(std::move(variables), std::move(means), constant(1.0f));
}

// ---- files of weights

void save_model_weights(const Module& model, const std::string& file) {
  without_gil([&] {
    if (file.ends_with(".npz")) save_npz(file, model);
    else if (file.ends_with(".h5")) save_weights(file, model);
    else save_safetensors(file, model);
  });
}

std::string load_model_weights(Module& model, const std::string& file, bool strict) {
  const LoadWeightsOptions options{.strict = strict};
  return without_gil([&] {
    if (file.ends_with(".npz")) return text(load_npz(file, model, options));
    if (!file.ends_with(".h5") && !file.ends_with(".keras")) return text(load_safetensors(file, model, options));
    require(strict, "load_weights: a file of Keras is read as a whole: strict is True");
    load_weights(file, model);
    return text("all of ", model.variables().size(), " variables");
  });
}

// ---- progress

void show_in_python(std::string_view message) {
  in_python([&] {
    const nb::object stream = nb::module_::import_("sys").attr("stderr");
    if (stream.is_none()) return;
    stream.attr("write")(nb::str(message.data(), message.size()));
    stream.attr("flush")();
  });
}

/// True if Python's stderr is the process's, which shows lines that change on a terminal.
bool stderr_is_of_process() {
  const nb::module_ sys = nb::module_::import_("sys");
  return sys.attr("stderr").is(sys.attr("__stderr__"));
}

}  // namespace

void bind_training(nb::module_& module) {
  module.def("_fit", fit_model, "model"_a, "optimizer"_a, "plan"_a, "data"_a, "options"_a);
  module.def("_evaluate", evaluate_model, "model"_a, "plan"_a, "data"_a, "options"_a);
  module.def(
      "_notice_repeated_softmax", [] { set_repeated_softmax(RepeatedSoftmax::noticed); },
      "from_logits with the output of a softmax is a notice, not an error.");
  module.def(
      "_save_model",
      [](const Module& model, const std::string& file) { without_gil([&] { save_model(file, model); }); }, "model"_a,
      "file"_a);
  module.def(
      "_load_model",
      [](const std::string& file, bool inference_only) {
        return without_gil([&] { return load_model(file, {.inference_only = inference_only}); });
      },
      "file"_a, "inference_only"_a);
  module.def(
      "_load_functional",
      [](const std::string& file, bool inference_only) {
        return without_gil([&] { return load_functional(file, {.inference_only = inference_only}); });
      },
      "file"_a, "inference_only"_a);
  module.def("_save_weights", save_model_weights, "model"_a, "file"_a);
  module.def("_load_weights", load_model_weights, "model"_a, "file"_a, "strict"_a);
  module.def(
      "_show_progress", [] { set_progress_sink(stderr_is_of_process() ? MessageSink() : show_in_python); },
      "Progress goes to Python's stderr.");
  module.def(
      "_gradients_of_pairs", [](nb::handle pairs) { return object_of_gradients(gradients_of_pairs(pairs)); },
      "pairs"_a);
}

}  // namespace gradus::python
