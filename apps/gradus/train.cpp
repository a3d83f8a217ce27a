/// `gradus train`.
#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "apps/gradus/decimals.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/interrupt.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/ranks.h"
#include "apps/gradus/report.h"
#include "apps/gradus/run_directory.h"
#include "gradus/backend/plugin.h"
#include "gradus/base/input_file.h"
#include "gradus/base/rooms.h"
#include "gradus/train/checkpoint_directory.h"

namespace gradus::command {
namespace {

TrainConfig resolve(const TrainArguments& arguments) {
  require<ConfigError>(arguments.config.empty() == arguments.resume.has_value(),
                       "train: expected a configuration, or --resume with a run directory, and not both");
  require<ConfigError>(!arguments.resume || !arguments.output,
                       "train: --resume goes on in its own run directory; "
                       "leave --output out");
  require<ConfigError>(arguments.resume || !arguments.data_changed, "train: --data-changed goes with --resume");
  std::vector<std::string> settings = arguments.settings;
  for (const auto& [key, value] : {std::pair("train.epochs", arguments.epochs),
                                   {"train.batch_size", arguments.batch_size},
                                   {"seed", arguments.seed},
                                   {"threads", arguments.threads}})
    if (value) settings.push_back(text(key, '=', *value));
  if (arguments.resume) require_run("train --resume", *arguments.resume);
  else require_configuration("train", arguments.config);
  TrainConfig config = read_config(arguments.resume ? *arguments.resume / "config.toml" : arguments.config, settings);
  if (arguments.device) config.device = *arguments.device;
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  // The run may be resumed from anywhere.
  if (config.data.directory.empty()) config.data.directory = ".";
  config.data.directory = std::filesystem::absolute(config.data.directory).lexically_normal();
  return config;
}

RunDirectory run_directory_of(const TrainArguments& arguments) {
  if (arguments.resume) return RunDirectory(*arguments.resume);
  if (arguments.output) return RunDirectory(*arguments.output);
  return RunDirectory(make_run_directory(arguments.config.stem().string()), true);
}

/// True if there is a checkpoint to go on from; without one a resumed run begins from the start. If checkpoints exist
/// and all are damaged, it throws, since training from the start would lose them.
bool has_checkpoint(const RunDirectory& run) {
  std::vector<std::string> damaged;
  const auto newest = CheckpointDirectory({.directory = run.checkpoints()}).read_newest(damaged);
  require<DataError>(newest || damaged.empty(), "run directory ", run.path().string(),
                     ": none of its checkpoints is whole; start over with gradus train ", run.config().string(),
                     " --output in another one", damaged.empty() ? "" : "; " + damaged[0]);
  return newest.has_value();
}

/// A resumed run keeps the words, columns and characters that it began with.
Data load_data_of(const TrainConfig& config, const RunDirectory& run, bool goes_on) {
  std::error_code none;
  if (!goes_on || !std::filesystem::exists(run.data(), none)) return load_data(config.data);
  check_columns(config.data, read_facts(run.data()), run.path());
  return load_data(config.data, run.path());
}

/// Those that write no files, but decide how the training goes on.
std::vector<Callback> deciding_callbacks_of(const CallbackConfig& config) {
  std::vector<Callback> all;
  if (config.early_stopping) all.push_back(early_stopping(*config.early_stopping));
  if (config.reduce_lr_on_plateau) all.push_back(reduce_lr_on_plateau(*config.reduce_lr_on_plateau));
  if (config.terminate_on_nan) all.push_back(terminate_on_nan());
  if (config.time_limit > 0) all.push_back(time_limit(std::chrono::duration<double>(config.time_limit)));
  return all;
}

std::vector<Callback> callbacks_of(const CallbackConfig& config, const RunDirectory& run) {
  std::vector<Callback> all{json_lines_logger(run.metrics())};
  if (config.csv_logger) all.push_back(csv_logger(run.path() / "metrics.csv"));
  if (config.tensorboard) all.push_back(tensorboard(run.path() / "tensorboard", *config.tensorboard));
  if (config.model_checkpoint) {
    const bool best = config.model_checkpoint->save_best_only;
    all.push_back(model_checkpoint(run.path() / (best ? "best.safetensors" : "epoch-{epoch}.safetensors"),
                                   *config.model_checkpoint));
  }
  for (Callback& callback : deciding_callbacks_of(config)) all.push_back(std::move(callback));
  return all;
}

/// The median of the epochs after the first, which also compiles.
double typical_seconds(std::vector<double> seconds) {
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  std::ranges::sort(seconds);
  return seconds.empty() ? 0 : seconds[seconds.size() / 2];
}

struct Outcome {
  History history = {};
  std::optional<Evaluation> test = {};
};

Report report_of(const TrainConfig& config, const Experiment& experiment, const Data& data, const Outcome& outcome,
                 const RunDirectory& run) {
  Report report{.title = "Training run"};
  if (outcome.test) {
    report.facts = {{"test " + metric_of(data), fixed(outcome.test->metrics.at(0).second, 4)},
                    {"test loss", fixed(outcome.test->loss, 4)}};
    report.findings = examine(experiment.model, data, config.data);
  }
  report.facts.insert(report.facts.end(), {{"seconds an epoch", fixed(typical_seconds(outcome.history.seconds), 3)},
                                           {"training examples", std::to_string(data.train.examples)},
                                           {"test examples", std::to_string(data.test.examples)},
                                           {"parameters", std::to_string(experiment.model.variables().parameters())},
                                           {"threads", std::to_string(num_threads())},
                                           {"instructions", std::string(instruction_set())}});
  std::error_code none;
  if (std::filesystem::exists(run.metrics(), none)) report.charts = charts_of(read_text_file(run.metrics()));
  report.summary = experiment.model.summary();
  report.configuration = to_toml(config);
  return report;
}

void say(const TrainArguments& arguments, const Data& data, const Outcome& outcome, const RunDirectory& run) {
  const double metric = outcome.test->metrics.at(0).second, seconds = typical_seconds(outcome.history.seconds);
  if (arguments.json) {
    std::string key = "test_" + metric_of(data);
    std::ranges::replace(key, ' ', '_');
    std::cout << nlohmann::json{{key, metric},
                                {"test_loss", outcome.test->loss},
                                {"seconds_per_epoch", seconds},
                                {"report", run.report().string()}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << "test " << metric_of(data) << ' ' << fixed(metric, 4) << ", " << fixed(seconds, 2)
            << " s/epoch, report: " << run.report().string() << '\n';
}

History fitted(Experiment& e) {
  return std::visit([&](const auto& train) { return fit(e.model, e.optimizer, e.loss, train, e.options); }, e.train);
}
Evaluation tested(const Experiment& e, const TrainConfig& config, const Data& data) {
  const EvaluateOptions options{
      .metrics = make_metrics(config, data), .sample_weight = e.options.sample_weight, .strategy = e.options.strategy};
  return std::visit([&](const auto& test) { return evaluate(e.model, e.loss, test, options); }, e.test);
}

/// A trial of a few steps: later failures appear now.
int try_out(const TrainArguments& arguments, TrainConfig config, const Cluster& cluster) {
  Experiment experiment = make_experiment(config, load_data(config.data));
  if (cluster.ranks() == 1) experiment.options.strategy = strategy_of(config, cluster);
  experiment.options.fast_dev_run = arguments.fast_dev_run;
  experiment.options.verbose = !arguments.quiet;
  const double loss = fitted(experiment).loss.at(0);
  if (arguments.json)
    std::cout << nlohmann::json{{"trial_steps", arguments.fast_dev_run}, {"loss", loss}}.dump() << '\n';
  else
    std::cout << "trial of " << arguments.fast_dev_run << " steps: loss " << fixed(loss, 4)
              << ", nothing was written\n";
  return ok;
}

/// Warns that the model takes the numbers of words in a feature column for quantities.
void tell_of_words(const DataConfig& config, const DataFacts& facts) {
  if (config.category_encoding != "integer") return;
  for (const auto& [column, words] : facts.categories)
    if (column != config.label && words.size() > 2)
      std::cerr << "gradus: data.categories: the words of `" << printable(column, true) << "` become 0 to "
                << words.size() - 1 << " in one column, in their sorted order, which the model takes for quantities; "
                << "data.json lists them; category_encoding = \"one_hot\" or \"embedding\" takes them for words\n";
}

/// The facts of the data, with their checksum. A run that is resumed has to find those that it began with.
DataFacts checked_facts(const TrainArguments& arguments, const Data& data, const TrainConfig& config,
                        const RunDirectory& run, bool goes_on) {
  DataFacts facts = data.facts;
  facts.checksum = checksum_of(data, config.data);
  std::error_code none;
  if (!goes_on || !std::filesystem::exists(run.data(), none)) return facts;
  const std::optional<DataChecksum> then = read_facts(run.data()).checksum;
  if (!then) {
    std::cerr << "gradus: " << run.data().string() << " has no checksum of the data; these are taken for the same\n";
    return facts;
  }
  const std::string other = difference(*facts.checksum, *then);
  require<DataError>(other.empty() || arguments.data_changed, "run directory ", run.path().string(), ": the data of ",
                     config.data.directory.string(), " are not those that it was trained with: ", other,
                     "; bring those back, or go on with these by --data-changed");
  return facts;
}

Data data_of_follower(const TrainArguments& arguments, const TrainConfig& config) {
  if (!arguments.resume) return load_data(config.data);
  const RunDirectory run(*arguments.resume);
  return load_data_of(config, run, has_checkpoint(run));
}

/// A rank that writes nothing: the first one keeps the run directory.
int follow_training(const TrainArguments& arguments, const TrainConfig& config, const Strategy& strategy) {
  const Data data = data_of_follower(arguments, config);
  Experiment experiment = make_experiment(config, data);
  const InterruptGuard interrupt;
  FitOptions& options = experiment.options;
  options.strategy = strategy;
  options.callbacks = deciding_callbacks_of(config.callbacks);
  options.callbacks.push_back({.on_step_end = [&](StepLog log) { log.stop = log.stop || interrupt.asked(); }});
  options.checkpoints = config.checkpoints;
  if (arguments.resume) options.checkpoints.directory = RunDirectory(*arguments.resume).checkpoints();
  else options.checkpoints.directory.clear();  // it starts fresh, and knows when the first rank saves
  fitted(experiment);
  if (strategy.any(interrupt.asked())) return interrupted;
  tested(experiment, config, data);
  return ok;
}

int run_training(const TrainArguments& arguments, const TrainConfig& config, const RunDirectory& run,
                 const std::optional<Strategy>& strategy) {
  RunClaim claim(run);
  const bool goes_on = arguments.resume && has_checkpoint(run);
  if (!arguments.resume) {
    claim.begin_training();
    run.write(run.config(), to_toml(config));
  }
  if (!arguments.quiet) std::cerr << "reading " << config.data.directory.string() << '\n';
  const Data data = load_data_of(config, run, goes_on);
  const DataFacts facts = checked_facts(arguments, data, config, run, goes_on);
  if (!goes_on) tell_of_words(config.data, facts);
  const auto write_facts = [&] {
    if (data.vocabulary) run.write(run.vocabulary(), data.vocabulary->to_json());
    run.write(run.data(), to_json(facts));
  };
  if (!goes_on) write_facts();
  Experiment experiment = make_experiment(config, data);
  if (!arguments.quiet) std::cerr << experiment.model.summary();

  const InterruptGuard interrupt;
  FitOptions& options = experiment.options;
  options.verbose = !arguments.quiet;
  options.strategy = strategy;
  options.callbacks = callbacks_of(config.callbacks, run);
  options.callbacks.push_back({.on_step_end = [&](StepLog log) {
    claim.keep();
    log.stop = log.stop || interrupt.asked();
  }});
  // Facts about a resumed run are written once its checkpoint was found to fit.
  if (arguments.resume)
    options.callbacks.push_back({.on_epoch_begin = [&](EpochBegin) {
      if (goes_on) write_facts();
      run.write(run.config(), to_toml(config));
    }});
  options.checkpoints = config.checkpoints;
  options.checkpoints.directory = run.checkpoints();
  Outcome outcome;
  outcome.history = fitted(experiment);
  const bool is_interrupted = strategy ? strategy->any(interrupt.asked()) : interrupt.asked();
  if (!is_interrupted) outcome.test = tested(experiment, config, data);

  save_safetensors(run.weights(), experiment.model);
  run.write(run.report(), to_html(report_of(config, experiment, data, outcome, run)));
  if (!outcome.test) {
    std::cerr << "interrupted; go on with: gradus train --resume " << run.path().string() << '\n';
    return interrupted;
  }
  say(arguments, data, outcome, run);
  return ok;
}

/// A training that a launcher starts again continues its run, if there is one by now.
TrainArguments as_started_again(TrainArguments arguments) {
  const char* const restart = std::getenv("GRADUS_RESTART");
  if (restart == nullptr || std::string_view(restart) == "0" || arguments.resume || arguments.fast_dev_run > 0)
    return arguments;
  require<ConfigError>(arguments.output.has_value(),
                       "train: what is started again has to find its run: say --output DIRECTORY");
  std::error_code none;
  if (!std::filesystem::exists(RunDirectory(*arguments.output).config(), none)) return arguments;
  arguments.resume = std::exchange(arguments.output, {});
  arguments.config.clear();
  return arguments;
}

}  // namespace

int train(const TrainArguments& given) {
  const Cluster cluster = workers_for("train");
  const TrainArguments arguments = as_started_again(given);
  TrainConfig config = resolve(arguments);
  if (config.threads) set_num_threads(static_cast<int>(config.threads));
  if (!config.device.empty()) set_default_device(device_named(config.device));
  if (arguments.fast_dev_run > 0) return try_out(arguments, config, cluster);
  const std::optional<Strategy> strategy = strategy_of(config, cluster);
  if (strategy && strategy->own_rank() > 0) return follow_training(arguments, config, *strategy);
  return run_training(arguments, config, run_directory_of(arguments), strategy);
}

}  // namespace gradus::command
