/// Advice about the training of a configuration, and the configuration that follows from it.
#include "apps/gradus/advise.h"
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string_view>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "apps/gradus/config_changes.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/ranks.h"
#include "gradus/advice/levers.h"
#include "gradus/advice/ranks.h"
#include "gradus/advice/trial.h"
#include "gradus/backend/plugin.h"
#include "gradus/base/input_file.h"
#include "gradus/base/nearest.h"
#include "gradus/distribute/messages/network_rates.h"
#include "gradus/formats/atomic_file.h"

namespace gradus::command {
namespace {

/// The values of --apply.
struct Applied {
  std::optional<std::filesystem::path> file = {};
  std::vector<std::string> names = {};
};

void add_names(Applied& applied, const std::string& value) {
  const std::vector<std::string> known{"batch_size", "precision", "bf16", "float16"};
  std::string_view rest = value;
  for (std::size_t end = 0; end != rest.npos; rest.remove_prefix(std::min(rest.size(), end + 1))) {
    end = rest.find(',');
    std::string name(rest.substr(0, end));
    require<ConfigError>(std::ranges::count(known, name) > 0, "--apply: expected a file that ends in .toml, or names ",
                         "of levers that change what is learned, batch_size and precision, got `", name, "`",
                         did_you_mean(name, known));
    applied.names.push_back(std::move(name));
  }
}

Applied applied_by(const AdviseArguments& arguments) {
  Applied applied;
  for (const std::string& value : arguments.apply) {
    std::error_code none;
    require<Unavailable>(!std::filesystem::is_directory(value, none), "--apply ", value,
                         ": this is a directory; expected a file");
    if (!value.ends_with(".toml")) {
      add_names(applied, value);
      continue;
    }
    require<ConfigError>(!applied.file, "--apply: expected one file, got ", applied.file.value_or("").string(), " and ",
                         value);
    applied.file = value;
  }
  require<ConfigError>(applied.names.empty() || applied.file,
                       "--apply=", applied.names.empty() ? "" : applied.names.front(),
                       " says what to take, and nothing says where to write it: add --apply OUT.toml");
  if (applied.file) const AtomicFile writable(*applied.file);  // before the time is spent
  return applied;
}

void check(const AdviseArguments& arguments) {
  std::vector<std::string> levers;
  for (const LeverKind& kind : lever_kinds()) levers.emplace_back(kind.name);
  for (const std::string& name : arguments.levers)
    require<ConfigError>(
        std::ranges::any_of(lever_kinds(), [&](const LeverKind& kind) { return is_named(kind, name); }),
        "--lever: there is no lever `", name, "`", did_you_mean(name, levers));
  require<ConfigError>(arguments.max_seconds > 0 && std::isfinite(arguments.max_seconds),
                       "--max-seconds: expected a positive number, got ", arguments.max_seconds);
}

TrainConfig config_of(const AdviseArguments& arguments) {
  require_configuration("advise", arguments.config);
  TrainConfig config = read_config(arguments.config, arguments.settings);
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  if (arguments.threads) config.threads = *arguments.threads;
  return config;
}

/// The lever's name as --apply spells it.
std::string name_in_apply(const Lever& lever) { return lever.name == "batch size" ? "batch_size" : lever.name; }

/// Tells which levers would gain and were not taken.
void tell_what_is_left(const Applied& applied, const Advice& advice) {
  for (const Lever& lever : advice.levers)
    if (lever.worth_it && lever.changes_learning && std::ranges::count(advice.changes, lever.change) == 0)
      std::cerr << "gradus: left out, since it changes what is learned: " << lever.change
                << "; to take it say --apply=" << name_in_apply(lever)
                << (applied.file ? "" : " beside --apply OUT.toml") << '\n';
}

const Lever* row_of(const Advice& advice, std::string_view name) {
  for (const Lever& lever : advice.levers)
    if (lever.name == name) return &lever;
  return nullptr;
}

/// Keys whose values differ from those of the training as it was.
class Changes {
 public:
  Changes(const TrainConfig& config, const Advice& advice, int threads)
      : config_(config), advice_(advice), threads_(threads) {}

  std::vector<ConfigChange> all() {
    const Setting& now = *advice_.setting;
    add("compile", "train", "run_eagerly", config_.run_eagerly, now.function.run_eagerly);
    add_passes();
    const bool prefetches = config_.data.prefetch.value_or(config_.data.kind == "images");
    add("prefetch", "data", "prefetch", prefetches, now.ahead.buffers != 0);
    if (now.data.parallel_calls)
      add("parallel map", "data", "num_parallel_calls", config_.data.num_parallel_calls, std::int64_t{0});
    add("cache", "data", "cache", config_.data.cache, config_.data.cache || now.data.cache);
    add("batch size", "train", "batch_size", config_.batch_size, now.data.batch_size.value_or(config_.batch_size));
    add("micro_batch", "train", "micro_batch", config_.micro_batch, now.micro_batch);
    add("recompute", "train", "max_bytes", config_.max_bytes, static_cast<std::int64_t>(now.function.max_bytes));
    add("threads", "", "threads", std::int64_t{threads_}, std::int64_t{now.threads});
    if (!config_.distribute)
      add("replicas", "train", "replicas", config_.replicas,
          std::int64_t{now.strategy ? now.strategy->num_replicas_in_sync() : 1});
    if (now.policy)
      add(now.policy->compute == bf16 ? "bf16" : "float16", "train", "policy", quoted(config_.policy),
          quoted(now.policy->compute == bf16 ? "mixed_bfloat16" : "mixed_float16"));
    return std::move(changes_);
  }

 private:
  static std::string quoted(const std::string& text) { return '"' + text + '"'; }
  static std::string written(bool value) { return value ? "true" : "false"; }
  static std::string written(std::int64_t value) { return text(value); }
  static std::string written(const std::string& value) { return value; }

  template <class T> void add(std::string_view lever, std::string table, std::string key, const T& was, const T& is) {
    if (was == is) return;
    const Lever* row = row_of(advice_, lever);
    changes_.push_back(
        {std::move(table), std::move(key), written(is), text("was ", written(was), "; ", row ? row->reason : "")});
  }
  void add_passes() {
    const std::vector<std::string>& now = advice_.setting->function.disable;
    std::string list;
    for (const std::string& pass : now) list += (list.empty() ? "" : ", ") + quoted(pass);
    std::string before;
    for (const std::string& pass : config_.disable) before += (before.empty() ? "" : ", ") + quoted(pass);
    add("fuse", "train", "disable", "[" + before + "]", "[" + list + "]");
  }

  const TrainConfig& config_;
  const Advice& advice_;
  const int threads_;
  std::vector<ConfigChange> changes_;
};

void write_config(const AdviseArguments& arguments, const std::filesystem::path& file,
                  std::vector<ConfigChange> changes) {
  const std::string written = read_text_file(arguments.config), source = arguments.config.string();
  const auto parent = [](const std::filesystem::path& of) {
    return std::filesystem::absolute(of).lexically_normal().parent_path();
  };
  // A configuration that names no directory means its own.
  if (parse_config(written, source, arguments.settings).data.directory.empty() &&
      parent(arguments.config) != parent(file))
    changes.push_back({"data", "directory", nlohmann::json(parent(arguments.config).string()).dump(),
                       "that of " + arguments.config.filename().string()});
  AtomicFile out(file);
  out.write(changed_config(written, source, arguments.settings, changes));
  out.commit();
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

/// The network of the options, else a measured one: the first that exists, TCP before shared memory.
NetworkCost network_of(const AdviseArguments& arguments) {
  NetworkCost cost{.bytes_per_second = 0};
  const bool is_given = arguments.latency_us && arguments.gigabytes_per_second;
  std::string problem;
  if (!is_given)
    for (const NetworkRates& rates : measure_local_networks()) {
      if (rates.problem.empty()) cost = {rates.latency, rates.message_seconds, rates.bytes_per_second};
      else problem = rates.problem;
    }
  if (arguments.latency_us) cost.latency = *arguments.latency_us * 1e-6;
  if (arguments.gigabytes_per_second) cost.bytes_per_second = *arguments.gigabytes_per_second * 1e9;
  require<Unavailable>(cost.bytes_per_second > 0,
                       "advise: no network could be measured; say --latency-us and --gigabytes-per-second: ", problem);
  return cost;
}

SimulatedRanks simulated_ranks(const AdviseArguments& arguments, const Experiment& experiment) {
  AdviseOptions options{.max_seconds = std::min(arguments.max_seconds, 10.0), .fit = experiment.options};
  options.fit.strategy.reset();
  const StepCost cost = std::visit(
      [&](const auto& train) {
        return step_cost(experiment.model, experiment.optimizer, experiment.loss, train, options);
      },
      experiment.train);
  return simulate_ranks(cost, network_of(arguments));
}

nlohmann::ordered_json as_json(const SimulatedRanks& ranks) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const RanksRow& row : ranks.rows)
    rows.push_back({{"ranks", row.ranks}, {"compute", row.compute}, {"exchange", row.exchange}});
  return {{"last_paying", ranks.last_paying},
          {"best", ranks.best},
          {"fixed_seconds", ranks.step.fixed_seconds},
          {"seconds_per_row", ranks.step.seconds_per_row},
          {"gradient_bytes", ranks.step.gradient_bytes},
          {"latency", ranks.network.latency},
          {"message_seconds", ranks.network.message_seconds},
          {"bytes_per_second", ranks.network.bytes_per_second},
          {"rows", std::move(rows)}};
}

std::string to_json(const Advice& advice, const std::vector<ConfigChange>& changes,
                    const std::optional<SimulatedRanks>& ranks) {
  nlohmann::ordered_json levers = nlohmann::ordered_json::array(), keys = nlohmann::ordered_json::array();
  for (const Lever& lever : advice.levers)
    levers.push_back({{"name", lever.name},
                      {"verdict", name_of(lever.verdict)},
                      {"worth_it", lever.worth_it},
                      {"is_in_use", lever.is_in_use},
                      {"changes_learning", lever.changes_learning},
                      {"seconds_before", number(lever.seconds_before)},
                      {"seconds_after", number(lever.seconds_after)},
                      {"ratio_low", number(lever.ratio_low)},
                      {"ratio_high", number(lever.ratio_high)},
                      {"pairs", lever.pairs},
                      {"bytes_before", lever.bytes_before},
                      {"bytes_after", lever.bytes_after},
                      {"max_relative_difference", number(lever.max_relative_difference)},
                      {"reason", lever.reason}});
  for (const ConfigChange& change : changes)
    keys.push_back({{"key", change.table.empty() ? change.key : change.table + "." + change.key},
                    {"value", change.value},
                    {"comment", change.comment}});
  nlohmann::ordered_json all{{"where_time_goes", advice.where_time_goes},
                             {"seconds_before", number(advice.seconds_before)},
                             {"seconds_after", number(advice.seconds_after)},
                             {"ratio_low", number(advice.ratio_low)},
                             {"ratio_high", number(advice.ratio_high)},
                             {"pairs", advice.pairs},
                             {"bytes_before", advice.bytes_before},
                             {"bytes_after", advice.bytes_after},
                             {"seconds", advice.seconds},
                             {"changes", std::move(keys)},
                             {"levers", std::move(levers)}};
  if (ranks) all["simulated_ranks"] = as_json(*ranks);
  return all.dump();
}

}  // namespace

int advise_training(const AdviseArguments& arguments) {
  require_one_process("advise");
  check(arguments);
  const Applied applied = applied_by(arguments);
  TrainConfig config = config_of(arguments);
  if (config.threads > 0) set_num_threads(static_cast<int>(config.threads));
  if (!config.device.empty()) set_default_device(device_named(config.device));
  Experiment experiment = make_experiment(config, load_data(config.data));
  experiment.options.strategy = strategy_of(config, Cluster());
  const AdviseOptions options{.max_seconds = arguments.max_seconds,
                              .allow_lower_precision = arguments.allow_lower_precision,
                              .fit = experiment.options,
                              .levers = arguments.levers,
                              .apply = applied.names};
  const int threads = num_threads();
  const Advice advice = std::visit(
      [&](const auto& train) {
        return gradus::advise(experiment.model, experiment.optimizer, experiment.loss, train, options);
      },
      experiment.train);
  const std::vector<ConfigChange> changes = Changes(config, advice, threads).all();
  std::optional<SimulatedRanks> ranks;
  if (arguments.ranks) ranks = simulated_ranks(arguments, experiment);
  if (arguments.json) std::cout << to_json(advice, changes, ranks) << '\n';
  else std::cout << advice;
  if (ranks && !arguments.json) std::cout << '\n' << *ranks;
  tell_what_is_left(applied, advice);
  if (!applied.file) return ok;
  write_config(arguments, *applied.file, changes);
  std::cerr << "configuration: " << applied.file->string() << '\n';
  return ok;
}

}  // namespace gradus::command
