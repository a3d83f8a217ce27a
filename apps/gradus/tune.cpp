/// `gradus tune`: a learning-rate range test, a batch size, or a search over any keys of the configuration.
#include <charconv>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/run_directory.h"
#include "apps/gradus/tune.h"

namespace gradus::command {
namespace {

// Values of a key, as on the command line.

/// "a,[3,3],b": parted by the commas that stand in no brackets.
std::vector<std::string> list_of(std::string_view written) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : written) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0) parts.emplace_back();
    else parts.back() += c;
  }
  return parts;
}

template <class Number> std::optional<Number> number_of(std::string_view written) {
  Number value{};
  const auto [end, problem] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (problem != std::errc() || end != written.data() + written.size()) return {};
  return value;
}

/// "1e-4..1e-1", "16..64", "16..64:16" after "log:" or nothing.
void add_range(SearchSpace& space, const std::string& key, std::string_view written, bool logarithmic) {
  const std::size_t dots = written.find(".."), colon = std::min(written.find(':', dots), written.size());
  const std::string_view low = written.substr(0, dots), high = written.substr(dots + 2, colon - dots - 2);
  const auto first = number_of<std::int64_t>(low), last = number_of<std::int64_t>(high);
  const auto from = number_of<double>(low), to = number_of<double>(high);
  const auto step = colon == written.size() ? 1 : number_of<std::int64_t>(written.substr(colon + 1));
  require<ConfigError>(from && to && step && (colon == written.size() || (first && last && !logarithmic)), "--vary ",
                       key, "=", written, ": expected LOW..HIGH of numbers, or LOW..HIGH:STEP of integers");
  if (logarithmic) space.log_uniform(key, *from, *to);
  else if (first && last) space.integers(key, *first, *last, {.step = *step});
  else space.uniform(key, *from, *to);
}

void add(SearchSpace& space, const std::string& vary) {
  const std::size_t equals = vary.find('=');
  require<ConfigError>(equals != std::string::npos && equals > 0 && equals + 1 < vary.size(), "--vary ", vary,
                       ": expected KEY=VALUES, such as optimizer.learning_rate=1e-3,1e-2");
  const std::string key = vary.substr(0, equals), values = vary.substr(equals + 1);
  require<ConfigError>(!key.starts_with("data"), "--vary ", key, ": data are read once; vary what is done with them");
  constexpr std::string_view log = "log:";
  if (values.starts_with(log) && values.find("..") != std::string::npos)
    return add_range(space, key, std::string_view(values).substr(log.size()), true);
  if (values.find("..") != std::string::npos) return add_range(space, key, values, false);
  std::vector<SearchValue> choices;
  for (const std::string& each : list_of(values)) {
    if (const auto integer = number_of<std::int64_t>(each)) choices.emplace_back(*integer);
    else if (const auto number = number_of<double>(each)) choices.emplace_back(*number);
    else choices.emplace_back(each);
  }
  space.choice(key, std::move(choices));
}

SearchSpace space_of(const TuneArguments& arguments) {
  SearchSpace space;
  try {
    for (const std::string& vary : arguments.vary) add(space, vary);
  } catch (const InvalidArgument& error) { throw ConfigError(error.what()); }
  return space;
}

/// As the configuration takes it. A number has a point, since an integer would be one.
std::string setting_of(const std::string& key, const SearchValue& value) {
  std::string written = to_text(value, 17);
  const bool is_number = std::holds_alternative<double>(value);
  if (is_number && written.find_first_of(".e") == std::string::npos) written += ".0";
  return key + "=" + written;
}

// Training of a trial.

TrainConfig configured(const TuneArguments& arguments, const SearchTrial& trial) {
  std::vector<std::string> settings;
  for (const auto& [key, value] : trial.values) settings.push_back(setting_of(key, value));
  if (arguments.seed) settings.push_back(text("seed=", *arguments.seed));
  if (arguments.epochs) settings.push_back(text("train.epochs=", *arguments.epochs));
  require_configuration("tune", arguments.config);
  TrainConfig config = read_config(arguments.config, settings);
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  // The best configuration is written elsewhere, and trained from anywhere.
  if (config.data.directory.empty()) config.data.directory = ".";
  config.data.directory = std::filesystem::absolute(config.data.directory).lexically_normal();
  return config;
}

/// The data of all trials. Part of the training examples is held out, in place of the test examples, which are not for
/// choosing.
Data load_examples(const TuneArguments& arguments, const TrainConfig& config) {
  require<ConfigError>(arguments.validation_share > 0 && arguments.validation_share < 1,
                       "--validation-share: expected a number above 0 and below 1, got ", arguments.validation_share);
  if (!arguments.quiet) std::cerr << "reading " << config.data.directory.string() << '\n';
  Data data = load_data(config.data);
  const std::int64_t all = data.train.examples;
  const auto held = static_cast<std::int64_t>(std::round(static_cast<double>(all) * arguments.validation_share));
  require<DataError>(held > 0 && held < all, "of ", all, " training examples a share of ", arguments.validation_share,
                     " is held out, which leaves none on one side");
  // Windows of a text overlap, so its end is held out; else a random part, whatever the order in the file.
  const auto mixed = [&](const auto& examples) {
    return data.vocabulary ? examples : examples.shuffle({.seed = 0, .reshuffle_each_iteration = false});
  };
  const Split whole = data.train;
  const Dataset<2> raw = mixed(whole.raw);
  data.train = {raw.take(all - held), all - held};
  data.test = {raw.skip(all - held), held};
  if (whole.weighted) {
    const Dataset<3> weighted = mixed(*whole.weighted);
    data.train.weighted = weighted.take(all - held);
    data.test.weighted = weighted.skip(all - held);
  }
  return data;
}

EpochTrainer trainer_of(const TrainConfig& config, const Data& data) {
  Experiment e = make_experiment(config, data);
  std::visit([&](const auto& test) { e.options.validation = test; }, e.test);
  e.options.verbose = false;
  return std::visit(
      [&](auto& train) {
        return epoch_trainer(std::move(e.model), std::move(e.optimizer), std::move(e.loss), std::move(train),
                             std::move(e.options));
      },
      e.train);
}

// Files that are written.

RunDirectory run_directory_of(const TuneArguments& arguments) {
  if (arguments.output) return RunDirectory(*arguments.output);
  return RunDirectory(make_run_directory(arguments.config.stem().string() + "-tune"));
}

void save(const RunDirectory& run, const std::string& name, const ResultTable& table,
          const std::vector<PlotPanel>& picture) {
  table.save(run.path() / (name + ".csv"));
  table.save(run.path() / (name + ".jsonl"));
  save_svg(run.path() / (name + ".svg"), picture);
}

int test_learning_rate(const TuneArguments& arguments, const TrainConfig& config, const RunDirectory& run) {
  const Experiment e = make_experiment(config, load_examples(arguments, config));
  const LearningRateRangeOptions options{.seed = static_cast<std::uint64_t>(config.seed),
                                         .sample_weight = is_weighted(config)};
  const LearningRateRange range = std::visit(
      [&](const auto& train) { return learning_rate_range_test(e.model, e.optimizer, e.loss, train, options); },
      e.train);
  save(run, "learning_rates", range.table(), range.picture());
  const double suggestion = range.suggestion();
  const std::string picture = (run.path() / "learning_rates.svg").string();
  if (arguments.json) std::cout << nlohmann::json{{"learning_rate", suggestion}, {"picture", picture}}.dump() << '\n';
  else std::cout << "learning rate " << suggestion << ", picture: " << picture << '\n';
  return ok;
}

int test_batch_size(const TuneArguments& arguments, const TrainConfig& config, const RunDirectory& run) {
  const Data data = load_examples(arguments, config);
  const Experiment e = make_experiment(config, data);
  const BatchSizeOptions options{.memory_limit = static_cast<std::size_t>(arguments.memory_limit.value_or(0)) * MiB,
                                 .sample_weight = is_weighted(config)};
  const BatchSizes sizes = std::visit(
      [&]<class All>(const All&) {
        const auto of_size = [&](std::int64_t size) { return std::get<All>(training_batches(config, data, size)); };
        return tune_batch_size(e.model, e.optimizer, e.loss, of_size, options);
      },
      e.train);
  save(run, "batch_sizes", sizes.table(), sizes.picture());
  const std::string picture = (run.path() / "batch_sizes.svg").string();
  if (arguments.json)
    std::cout << nlohmann::json{{"batch_size", sizes.batch_size}, {"picture", picture}}.dump() << '\n';
  else std::cout << sizes.table() << "batch size " << sizes.batch_size << ", picture: " << picture << '\n';
  return ok;
}

/// Writes the rows so far to the disk, and reports them on stderr, whenever a trial ends.
class Watched {
 public:
  Watched(const SearchSpace& space, const RunDirectory& run, bool quiet) : so_far_{space}, run_(run), quiet_(quiet) {}
  void operator()(const SearchRow& row) {
    so_far_.rows.push_back(row);
    so_far_.table().save(run_.path() / "trials.jsonl");
    if (quiet_) return;
    std::cerr << "trial " << row.trial.index << ':';
    for (const auto& [key, value] : row.trial.values) std::cerr << ' ' << key << '=' << to_text(value);
    if (row.score) std::cerr << ", validation loss " << *row.score;
    if (row.state != TrialState::done) std::cerr << ", " << to_text(row.state);
    std::cerr << '\n';
  }

 private:
  SearchResult so_far_;
  const RunDirectory& run_;
  bool quiet_;
};

SearchResult run_search(const TuneArguments& arguments, const SearchSpace& space, const TrainConfig& base,
                        const Data& data, SearchOptions options) {
  const std::string kind = !arguments.search.empty() ? arguments.search : space.count() ? "grid" : "random";
  const MakeEpochTrainer make = [&](const SearchTrial& trial) {
    return trainer_of(configured(arguments, trial), data);
  };
  const ScoreFunction whole = [&](const SearchTrial& trial) {
    const TrainConfig config = configured(arguments, trial);
    return trainer_of(config, data)(static_cast<int>(config.epochs));
  };
  const HalvingSchedule schedule{.max_epochs = static_cast<int>(base.epochs)};
  if (kind == "grid") return grid_search(space, whole, options);
  if (kind == "halving") return successive_halving(space, arguments.trials, schedule, make, options);
  if (kind == "hyperband") return hyperband(space, schedule, make, options);
  return random_search(space, arguments.trials, whole, options);
}

int search(const TuneArguments& arguments, const TrainConfig& base, const RunDirectory& run) {
  const SearchSpace space = space_of(arguments);
  require<ConfigError>(space.size() > 0,
                       "tune: nothing is varied; say --vary KEY=VALUES, --learning-rate or --batch-size");
  // A key that there is not is found before the data are read.
  SearchTrial first;
  first.values = space.drawn(1, 0).front();
  (void)configured(arguments, first);
  const bool in_rounds = arguments.search == "halving" || arguments.search == "hyperband";
  for (const auto& [key, value] : first.values)
    require<ConfigError>(!in_rounds || key != "train.epochs", "--vary ", key, ": --search ", arguments.search,
                         " itself sets the epochs of a trial, --epochs the most; vary them with grid or random");
  const Data data = load_examples(arguments, base);
  Watched watched(space, run, arguments.quiet);
  const SearchResult result = run_search(arguments, space, base, data,
                                         {.seed = static_cast<std::uint64_t>(base.seed),
                                          .parallel = static_cast<int>(arguments.parallel),
                                          .on_trial = [&](const SearchRow& row) { watched(row); }});
  save(run, "trials", result.table(), result.picture());
  if (!arguments.json) std::cout << result.table();
  const SearchRow& best = result.best();
  run.write(run.path() / "best.toml", to_toml(configured(arguments, best.trial)));
  if (arguments.json) {
    nlohmann::ordered_json values;
    for (const auto& [key, value] : best.trial.values) std::visit([&](const auto& v) { values[key] = v; }, value);
    std::cout << nlohmann::ordered_json{{"validation_loss", *best.score},
                                        {"best", values},
                                        {"trials", result.rows.size()},
                                        {"config", (run.path() / "best.toml").string()}}
                     .dump()
              << '\n';
  } else {
    std::cout << "best: trial " << best.trial.index << ", validation loss " << *best.score
              << ", configuration: " << (run.path() / "best.toml").string() << '\n';
  }
  return ok;
}

}  // namespace

int tune(const TuneArguments& arguments) {
  const TrainConfig config = configured(arguments, {});
  const std::int64_t threads = arguments.threads.value_or(config.threads);
  if (threads > 0) set_num_threads(static_cast<int>(threads));
  const RunDirectory run = run_directory_of(arguments);
  const RunClaim claim(run);
  if (arguments.learning_rate) return test_learning_rate(arguments, config, run);
  if (arguments.batch_size) return test_batch_size(arguments, config, run);
  return search(arguments, config, run);
}

}  // namespace gradus::command
