/// `gradus compile`, a model or its training step as an object file for programs without Gradus, and `gradus export`,
/// the same as text for accelerators.
#include <functional>
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/run_directory.h"
#include "gradus/function/export_object.h"
#include "gradus/onnx/model.h"
#include "gradus/train/checkpoints.h"

namespace gradus::command {
namespace {

namespace fs = std::filesystem;

/// Delivers a step that takes arguments of these specs.
using Deliver = std::function<void(TracedFunction& traced, const std::vector<Spec>& specs, const Body& body)>;

/// The exported model, for either command.
struct ExportedModel {
  const fs::path& source;
  bool train;
  std::optional<std::int64_t> batch_size;
  const std::optional<fs::path>& data_directory;
};

class Exporter {
 public:
  Exporter(const auto& arguments, std::string command, Deliver deliver)
      : of_{arguments.source, arguments.train, arguments.batch_size, arguments.data_directory},
        command_(std::move(command)),
        deliver_(std::move(deliver)) {}

  void run() const {
    if (of_.source.extension() == ".onnx") onnx_model();
    else configuration();
  }

 private:
  /// With `rows` rows where the first dimension is open.
  static Spec with_rows(Spec spec, std::int64_t rows, const std::string& what) {
    for (int i = 0; i < spec.shape.rank(); ++i) {
      if (spec.shape[i] >= 0) continue;
      require(i == 0, what, " is ", spec, ": the size of dimension ", i,
              " is open, and what is exported is for known sizes");
      spec.shape.set(0, rows);
    }
    return spec;
  }
  void deliver(const std::vector<Spec>& specs, const Body& body) const {
    TracedFunction traced({.name = command_}, nullptr, 0);
    deliver_(traced, specs, body);
  }

  void onnx_model() const {
    require<ConfigError>(!of_.train, command_, ": ", of_.source.string(),
                         ": an ONNX model has no training step; leave out --train");
    const onnx::Model model = onnx::load(of_.source);
    std::vector<Spec> specs;
    for (const onnx::Port& port : model.inputs()) {
      const std::string what = text(command_, ": input ", printable(port.name, true));
      require(port.shape.has_value(), what, ": its rank is open, and what is exported is for known sizes");
      specs.push_back(with_rows({port.dtype, *port.shape}, of_.batch_size.value_or(1), what));
    }
    deliver(specs, [&](In in) { return Called{model(in), nullptr}; });
  }

  void prediction(const Sequential& model, const Spec& input, std::int64_t rows) const {
    deliver({with_rows(input, rows, command_ + ": the input")},
            [&](In in) { return Called{{model(in[0], inference)}, nullptr}; });
  }

  /// The step of the loop that docs show: forward, loss, penalties, backward, update. A batch has x, y, and weights if
  /// the configuration gives any.
  void training_step(Experiment& experiment, std::int64_t rows) const {
    std::vector<Spec> specs;
    std::visit(
        [&](const auto& batches) {
          for (const auto& batch : batches) {
            std::apply([&](const auto&... field) { (specs.push_back(field.spec()), ...); }, batch);
            break;
          }
        },
        experiment.train);
    require<DataError>(!specs.empty(), command_, ": there is no batch to train on");
    for (Spec& spec : specs) spec.shape.set(0, rows);
    deliver(specs, [&](In in) {
      const ModeScope mode(CallMode::training);
      GradientTape tape;
      const Tensor scores = experiment.model(in[0], training);
      Loss loss = in.size() > 2 ? experiment.loss(in[1], scores, in[2]) : experiment.loss(in[1], scores);
      for (const Tensor& penalty : experiment.model.losses()) loss = loss + penalty;
      experiment.optimizer.apply_gradients(tape.gradient(loss, experiment.model.trainable_variables()));
      return Called{{loss.value()}, nullptr};
    });
  }

  /// The step goes on where the run ended: with the weights, slots, counts and random numbers of its newest checkpoint.
  void go_on(Experiment& experiment) const {
    const fs::path checkpoints = of_.source / RunDirectory::checkpoints_name;
    if (Checkpoints({.directory = checkpoints}, experiment.model, experiment.optimizer).restore()) return;
    load_safetensors(of_.source / "weights.safetensors", experiment.model);
    std::cerr
        << "gradus: " << checkpoints.string()
        << " has no checkpoint: the optimizer of the step starts from the beginning, with the weights of the run\n";
  }

  void configuration() const {
    std::error_code none;
    const bool is_run = fs::is_directory(of_.source, none);
    TrainConfig config = read_config(is_run ? of_.source / "config.toml" : of_.source);
    if (of_.data_directory) config.data.directory = *of_.data_directory;
    const std::int64_t rows = of_.batch_size.value_or(of_.train ? config.batch_size : 1);
    if (!of_.train && is_run) {
      const DataFacts facts = read_facts(of_.source / "data.json");
      Sequential model = make_model(config, static_cast<std::int64_t>(facts.classes.size()), facts);
      model.build(facts.input);
      load_safetensors(of_.source / "weights.safetensors", model);
      return prediction(model, facts.input, rows);
    }
    const Data data = is_run ? load_data(config.data, of_.source) : load_data(config.data);
    Experiment experiment = make_experiment(config, data);
    if (is_run && of_.train) go_on(experiment);
    else if (is_run) load_safetensors(of_.source / "weights.safetensors", experiment.model);
    if (of_.train) training_step(experiment, rows);
    else prediction(experiment.model, data.input, rows);
  }

  const ExportedModel of_;
  const std::string command_;
  const Deliver deliver_;
};

}  // namespace

int compile_object(const CompileArguments& arguments) {
  try {
    (void)object_function_name(arguments.stem);
  } catch (const InvalidArgument& error) { throw ConfigError(error.what()); }
  ObjectFiles files;
  Exporter(arguments, "compile", [&](TracedFunction& traced, const std::vector<Spec>& specs, const Body& body) {
    const ObjectOptions options{.instruction_set = arguments.instruction_set,
                                .target = arguments.target,
                                .weights = arguments.weights.value_or(fs::path())};
    files = traced.export_object(arguments.stem, specs, options, {}, body);
  }).run();
  std::cout << files.object.string() << '\n' << files.header.string() << '\n';
  if (!files.weights.empty()) std::cout << files.weights.string() << '\n';
  return ok;
}

int export_text(const ExportArguments& arguments) {
  Exporter(arguments, "export", [&](TracedFunction& traced, const std::vector<Spec>& specs, const Body& body) {
    write_stablehlo(arguments.stablehlo, traced.stablehlo(specs, {}, body));
  }).run();
  std::cout << arguments.stablehlo.string() << '\n';
  return ok;
}

}  // namespace gradus::command
