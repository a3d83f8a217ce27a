/// `gradus train`.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <iomanip>
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/model.h"
#include "apps/gradus/report.h"
#include "apps/gradus/run_directory.h"

namespace gradus::command {
namespace {

std::atomic<bool> interrupt_asked{false};

/// While it lives, an interrupt stops the training instead of the process.
class InterruptGuard {
 public:
  InterruptGuard() : before_(std::signal(SIGINT, [](int) { interrupt_asked.store(true); })) {}
  ~InterruptGuard() { std::signal(SIGINT, before_); }
  InterruptGuard(const InterruptGuard&) = delete;

 private:
  void (*before_)(int);
};

TrainConfig resolve(const TrainArguments& arguments) {
  TrainConfig config = read_config(arguments.config);
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  config.epochs = arguments.epochs.value_or(config.epochs);
  config.batch_size = arguments.batch_size.value_or(config.batch_size);
  config.seed = arguments.seed.value_or(config.seed);
  config.threads = arguments.threads.value_or(config.threads);
  return config;
}

/// Of the epochs after the first, which also compiles.
double typical_seconds(std::vector<double> seconds) {
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  std::ranges::sort(seconds);
  return seconds.empty() ? 0 : seconds[seconds.size() / 2];
}

std::string fixed(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return std::move(out).str();
}

struct Outcome {
  History history;
  std::optional<Evaluation> test;
};

Report report_of(const TrainConfig& config, const Sequential& model, const Data& data, const Outcome& outcome) {
  const History& h = outcome.history;
  Report report{.title = "Training run"};
  if (outcome.test) {
    report.facts = {{"test accuracy", fixed((*outcome.test)["sparse_categorical_accuracy"], 4)},
                    {"test loss", fixed(outcome.test->loss, 4)}};
  }
  report.facts.insert(report.facts.end(), {{"seconds an epoch", fixed(typical_seconds(h.seconds), 3)},
                                           {"training examples", std::to_string(data.train.examples)},
                                           {"test examples", std::to_string(data.test.examples)},
                                           {"parameters", std::to_string(model.variables().parameters())},
                                           {"threads", std::to_string(num_threads())},
                                           {"instructions", std::string(instruction_set())}});
  Chart loss{"loss", {{"training", h.loss}}};
  Chart accuracy{"accuracy", {{"training", h["sparse_categorical_accuracy"]}}};
  if (!h.validation_loss.empty()) {
    loss.curves.push_back({"test", h.validation_loss});
    accuracy.curves.push_back({"test", h["validation_sparse_categorical_accuracy"]});
  }
  report.charts = {std::move(loss), std::move(accuracy), {"seconds an epoch", {{"training", h.seconds}}}};
  report.summary = model.summary();
  report.configuration = to_toml(config);
  return report;
}

nlohmann::json line_of(const EpochLog& log) {
  nlohmann::json line{{"epoch", log.epoch + 1}, {"loss", log.loss}, {"seconds", log.seconds}};
  if (log.validation_loss) line["validation_loss"] = *log.validation_loss;
  for (const auto& [name, value] : log.metrics) line[name] = value;
  return line;
}

}  // namespace

int train(const TrainArguments& arguments) {
  const TrainConfig config = resolve(arguments);
  if (config.threads) set_num_threads(static_cast<int>(config.threads));
  set_seed(static_cast<std::uint64_t>(config.seed));
  RunDirectory run(arguments.output.value_or(default_run_directory(arguments.config)));
  run.write(run.config(), to_toml(config));
  if (!arguments.quiet) std::cerr << "reading " << config.data.directory.string() << '\n';
  const Data data = load_data(config.data);
  if (data.vocabulary) run.write(run.path() / "vocabulary.json", data.vocabulary->to_json());
  Sequential model = make_model(config, data.vocabulary ? data.vocabulary->size() : 0);
  model.build(data.input);
  if (!arguments.quiet) std::cerr << model.summary();
  Optimizer optimizer = make_optimizer(config.optimizer);
  const SparseCategoricalCrossentropy loss(from_logits);

  const InterruptGuard guard;
  const Dataset<2> test = batches(data.test.raw, config.data, test_batch(config.data));
  FitOptions options{.epochs = static_cast<int>(config.epochs),
                     .metrics = {SparseCategoricalAccuracy()},
                     .micro_batch = config.micro_batch,
                     .verbose = !arguments.quiet};
  if (config.validate_each_epoch) options.validation = test;
  options.callbacks.push_back({.on_epoch_end = [&](EpochLog log) { run.add_metrics(line_of(log)); },
                               .on_step_end = [](StepLog log) { log.stop = log.stop || interrupt_asked.load(); }});
  Outcome outcome;
  outcome.history =
      fit(model, optimizer, loss, batches(data.train.raw.shuffle(), config.data, config.batch_size), options);
  if (!interrupt_asked) outcome.test = evaluate(model, loss, test, {.metrics = {SparseCategoricalAccuracy()}});

  save_safetensors(run.weights(), model);
  run.write(run.report(), to_html(report_of(config, model, data, outcome)));
  if (!outcome.test) {
    std::cerr << "interrupted; what was trained is in " << run.path().string() << '\n';
    return interrupted;
  }
  const double accuracy = (*outcome.test)["sparse_categorical_accuracy"],
               seconds = typical_seconds(outcome.history.seconds);
  if (arguments.json)
    std::cout << nlohmann::json{{"test_accuracy", accuracy},
                                {"test_loss", outcome.test->loss},
                                {"seconds_per_epoch", seconds},
                                {"report", run.report().string()}}
                     .dump()
              << '\n';
  else
    std::cout << "test accuracy " << fixed(accuracy, 4) << ", " << fixed(seconds, 2)
              << " s/epoch, report: " << run.report().string() << '\n';
  return ok;
}

}  // namespace gradus::command
