/// `gradus compile`, a model or its training step as an object file for programs without Gradus, and `gradus export`,
/// the same as text for accelerators.
#include <functional>
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/facts_in_c.h"
#include "apps/gradus/run_directory.h"
#include "gradus/function/export_object.h"
#include "gradus/onnx/model.h"
#include "gradus/train/batch_gradients.h"
#include "gradus/train/checkpoints.h"
#include "gradus/train/task.h"

namespace gradus::command {
namespace {

namespace fs = std::filesystem;

/// Delivers a step that takes arguments of these specs: "train" or "predict".
using Deliver = std::function<void(const std::string& title, TracedFunction& traced, const std::vector<Spec>& specs,
                                   const Body& body)>;
/// Called once all steps are delivered, while their models live. `weights`: a comment on the weights of examples, which
/// a training step takes; empty: it takes none.
using Finish = std::function<void(const DataConfig& config, const DataFacts& facts, const std::string& weights)>;

/// The exported model, for either command.
struct ExportedModel {
  const fs::path& source;
  bool train, predict;
  std::optional<std::int64_t> batch_size;
  const std::optional<fs::path>& data_directory;
};

class Exporter {
 public:
  Exporter(
      const auto& arguments, std::string command, Deliver deliver, Finish finish = [](const auto&...) {})
      : of_{arguments.source, arguments.train, arguments.predict || !arguments.train, arguments.batch_size,
            arguments.data_directory},
        command_(std::move(command)),
        deliver_(std::move(deliver)),
        finish_(std::move(finish)) {}

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
  void deliver(const std::string& title, const std::vector<Spec>& specs, const Body& body,
               FunctionOptions options = {}) const {
    options.name = command_;
    TracedFunction traced(std::move(options), nullptr, 0);
    deliver_(title, traced, specs, body);
  }
  /// As the files of data have it, where that is known: the step itself prepares it.
  static Spec raw(Spec input, const DataFacts& facts) {
    input.dtype = facts.raw.value_or(input.dtype);
    return input;
  }
  static Tensor prepared_by_step(const Tensor& x, const DataConfig& config, const DataFacts& facts) {
    return facts.raw ? prepared(x, config) : x;
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
    deliver("predict", specs, [&](In in) { return Called{model(in), nullptr}; });
    finish_({}, {}, {});
  }

  void prediction(const Sequential& model, const Spec& input, const DataConfig& config, const DataFacts& facts) const {
    const std::int64_t rows = of_.batch_size.value_or(1);
    deliver("predict", {with_rows(raw(input, facts), rows, command_ + ": the input")},
            [&](In in) { return Called{{model(prepared_by_step(in[0], config, facts), inference)}, nullptr}; });
  }

  /// One step of fit, on one device: parts of the batch, forward, loss, penalties, backward, update. A batch has x, y,
  /// and weights if the configuration gives any.
  void training_step(Experiment& experiment, const TrainConfig& config, const DataFacts& facts) const {
    if (config.distribute || config.replicas > 1)
      std::cerr << "gradus: " << command_
                << ": the step takes its batch on one device, as a whole: its results are not "
                << "those of a training with " << (config.distribute ? "[distribute]" : "train.replicas")
                << ", which adds up shards\n";
    const std::int64_t rows = of_.batch_size.value_or(config.batch_size);
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
    specs[0] = raw(specs[0], facts);
    const gradus::detail::Task task = specs.size() > 2 ? task_of<3>(experiment.model, experiment.loss, true)
                                                       : task_of<2>(experiment.model, experiment.loss, false);
    const Body body = [&](In in) {
      const ModeScope mode(CallMode::training);
      Tensors fields(in.begin(), in.end());
      fields[0] = prepared_by_step(in[0], config.data, facts);
      const std::vector<Tensors> parts = parts_of_batch(fields, config.micro_batch);
      const BatchGradients batch = batch_gradients(experiment.model, task, parts, parts.size() == 1);
      experiment.optimizer.apply_gradients(batch.gradients);
      return Called{{batch.loss.value()}, nullptr};
    };
    FunctionOptions options = experiment.options.function;
    options.run_eagerly = false;
    deliver("train", specs, body, std::move(options));
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
    if (!of_.train && is_run) {
      const DataFacts facts = read_facts(of_.source / "data.json");
      Sequential model = make_model(config, static_cast<std::int64_t>(facts.classes.size()), facts);
      model.build(facts.input);
      load_safetensors(of_.source / "weights.safetensors", model);
      prediction(model, facts.input, config.data, facts);
      return finish_(config.data, facts, {});
    }
    const Data data = is_run ? load_data(config.data, of_.source) : load_data(config.data);
    Experiment experiment = make_experiment(config, data);
    if (is_run && of_.train) go_on(experiment);
    else if (is_run) load_safetensors(of_.source / "weights.safetensors", experiment.model);
    if (of_.train) training_step(experiment, config, data.facts);
    if (of_.predict) prediction(experiment.model, data.input, config.data, data.facts);
    finish_(config.data, data.facts, of_.train ? weights_in_c(config) : std::string());
  }

  const ExportedModel of_;
  const std::string command_;
  const Deliver deliver_;
  const Finish finish_;
};

/// Weights are written: a file that the command reads, or that the run has of its training, is a mistake.
void check_not_read(const CompileArguments& arguments) {
  if (!arguments.weights) return;
  std::error_code none;
  std::vector<fs::path> read{arguments.source};
  for (const char* name : {"config.toml", "weights.safetensors", "data.json", "metrics.jsonl", "vocabulary.json"})
    read.push_back(arguments.source / name);
  for (const fs::path& file : read)
    require<ConfigError>(
        !fs::equivalent(*arguments.weights, file, none), "compile: --weights: expected a file to write, given ",
        arguments.weights->string(), ", which belongs to ", arguments.source.string(),
        ": its weights are read without this option; name another file, such as ", arguments.stem.string(), ".weights");
}

}  // namespace

int compile_object(const CompileArguments& arguments) {
  require<ConfigError>(!arguments.weights || !arguments.weights->empty(),
                       "compile: --weights: expected the path of a file, given nothing: name one, such as ",
                       arguments.stem.filename().string(), ".weights, or leave the option out");
  check_not_read(arguments);
  try {
    (void)object_places(arguments.stem, arguments.weights.value_or(fs::path()));
  } catch (const InvalidArgument& error) { throw ConfigError(error.what()); }
  ObjectFiles files;
  std::vector<std::string> titles;
  TracedSteps steps;
  const auto deliver = [&](const std::string& title, TracedFunction& traced, const std::vector<Spec>& specs,
                           const Body& body) {
    titles.push_back(title);
    steps.push_back(traced.trace_step(specs, {}, body));
  };
  const auto finish = [&](const DataConfig& config, const DataFacts& facts, const std::string& weights) {
    if (titles.size() == 1) titles = {std::string()};  // it has the name of the stem
    const ObjectOptions options{
        .instruction_set = arguments.instruction_set,
        .target = arguments.target,
        .weights = arguments.weights.value_or(fs::path()),
        .declarations = facts_in_c(arguments.stem.filename().string(), config, facts) + weights};
    files = write_object_files(arguments.stem, titles, steps, options);
  };
  Exporter(arguments, "compile", deliver, finish).run();
  std::cout << files.object.string() << '\n' << files.header.string() << '\n';
  if (!files.weights.empty()) std::cout << files.weights.string() << '\n';
  return ok;
}

int export_text(const ExportArguments& arguments) {
  Exporter(arguments, "export",
           [&](const std::string&, TracedFunction& traced, const std::vector<Spec>& specs, const Body& body) {
             write_stablehlo(arguments.stablehlo, traced.stablehlo(specs, {}, body));
           })
      .run();
  std::cout << arguments.stablehlo.string() << '\n';
  return ok;
}

}  // namespace gradus::command
