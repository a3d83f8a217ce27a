/// `gradus compile`: a model, or its training step, as an object file for programs without Gradus.
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/experiment.h"
#include "gradus/onnx/model.h"

namespace gradus::command {
namespace {

namespace fs = std::filesystem;

ObjectOptions options_of(const CompileArguments& arguments) {
  return {.instruction_set = arguments.instruction_set, .weights = arguments.weights.value_or(fs::path())};
}

/// With so many rows where the first dimension is open.
Spec with_rows(Spec spec, std::int64_t rows, const std::string& what) {
  for (int i = 0; i < spec.shape.rank(); ++i) {
    if (spec.shape[i] >= 0) continue;
    require(i == 0, what, " is ", spec, ": the size of dimension ", i,
            " is open, and an object file is for known sizes");
    spec.shape.set(0, rows);
  }
  return spec;
}

ObjectFiles compile_onnx(const CompileArguments& arguments) {
  require(!arguments.train, "compile: ", arguments.source.string(),
          ": an ONNX model has no training step; leave out --train");
  const onnx::Model model = onnx::load(arguments.source);
  std::vector<Spec> specs;
  for (const onnx::Port& port : model.inputs()) {
    const std::string what = text("compile: input ", printable(port.name, true));
    require(port.shape.has_value(), what, ": its rank is open, and an object file is for known sizes");
    specs.push_back(with_rows({port.dtype, *port.shape}, arguments.batch_size.value_or(1), what));
  }
  TracedFunction traced({.name = "compile"}, nullptr, 0);
  return traced.export_object(arguments.stem, specs, options_of(arguments), {},
                              [&](In in) { return Called{model(in), nullptr}; });
}

ObjectFiles compile_prediction(const CompileArguments& arguments, const Sequential& model, const Spec& input,
                               std::int64_t rows) {
  const auto predict = function([&](Tensor x) { return model(x, inference); }, {.name = "compile"});
  return predict.export_object(arguments.stem, {with_rows(input, rows, "compile: the input")}, options_of(arguments));
}

/// The step of the loop that docs show: forward, loss, penalties, backward, update. A batch has x, y, and weights if
/// the configuration gives any.
ObjectFiles compile_training(const CompileArguments& arguments, Experiment& experiment, std::int64_t rows) {
  std::vector<Spec> specs;
  std::visit(
      [&](const auto& batches) {
        for (const auto& batch : batches) {
          std::apply([&](const auto&... field) { (specs.push_back(field.spec()), ...); }, batch);
          break;
        }
      },
      experiment.train);
  require<DataError>(!specs.empty(), "compile: there is no batch to train on");
  for (Spec& spec : specs) spec.shape.set(0, rows);
  TracedFunction traced({.name = "compile"}, nullptr, 0);
  return traced.export_object(arguments.stem, specs, options_of(arguments), {}, [&](In in) {
    const ModeScope mode(CallMode::training);
    GradientTape tape;
    const Tensor scores = experiment.model(in[0], training);
    Loss loss = in.size() > 2 ? experiment.loss(in[1], scores, in[2]) : experiment.loss(in[1], scores);
    for (const Tensor& penalty : experiment.model.losses()) loss = loss + penalty;
    experiment.optimizer.apply_gradients(tape.gradient(loss, experiment.model.trainable_variables()));
    return Called{{loss.value()}, nullptr};
  });
}

ObjectFiles compile_configuration(const CompileArguments& arguments) {
  std::error_code none;
  const bool is_run = fs::is_directory(arguments.source, none);
  TrainConfig config = read_config(is_run ? arguments.source / "config.toml" : arguments.source);
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  const std::int64_t rows = arguments.batch_size.value_or(arguments.train ? config.batch_size : 1);
  if (!arguments.train && is_run) {
    const DataFacts facts = read_facts(arguments.source / "data.json");
    Sequential model = make_model(config, static_cast<std::int64_t>(facts.classes.size()));
    model.build(facts.input);
    load_safetensors(arguments.source / "weights.safetensors", model);
    return compile_prediction(arguments, model, facts.input, rows);
  }
  const Data data = is_run ? load_data(config.data, arguments.source) : load_data(config.data);
  Experiment experiment = make_experiment(config, data);
  if (is_run) load_safetensors(arguments.source / "weights.safetensors", experiment.model);
  return arguments.train ? compile_training(arguments, experiment, rows)
                         : compile_prediction(arguments, experiment.model, data.input, rows);
}

}  // namespace

int compile_object(const CompileArguments& arguments) {
  const ObjectFiles files =
      arguments.source.extension() == ".onnx" ? compile_onnx(arguments) : compile_configuration(arguments);
  std::cout << files.object.string() << '\n' << files.header.string() << '\n';
  if (!files.weights.empty()) std::cout << files.weights.string() << '\n';
  return ok;
}

}  // namespace gradus::command
