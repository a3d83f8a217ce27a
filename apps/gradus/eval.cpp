/// `gradus eval`.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include "apps/gradus/commands.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/model.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/ranks.h"

namespace gradus::command {

int eval(const EvalArguments& arguments) {
  const Cluster cluster = workers_for("eval");
  require_run("eval", arguments.run);
  TrainConfig config = read_config(arguments.run / "config.toml");
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  if (const std::int64_t threads = arguments.threads.value_or(config.threads))
    set_num_threads(static_cast<int>(threads));
  const std::optional<Strategy> strategy = strategy_of(config, cluster);
  const Data data = load_data(config.data, arguments.run);
  Sequential model = make_model(config, data.outputs(), data.facts);
  model.build(data.input);
  load_safetensors(arguments.run / "weights.safetensors", model);
  const EvaluateOptions options{
      .metrics = make_metrics(config, data), .sample_weight = is_weighted(config), .strategy = strategy};
  const LossFunction loss = make_loss(config, data);
  const Evaluation result =
      std::visit([&](const auto& test) { return evaluate(model, loss, test, options); }, test_batches(config, data));
  if (!cluster.is_chief()) return ok;
  const double metric = result.metrics.at(0).second;
  if (arguments.json) {
    std::string key = "test_" + metric_of(data);
    std::ranges::replace(key, ' ', '_');
    std::cout << nlohmann::json{{key, metric}, {"test_loss", result.loss}}.dump() << '\n';
  } else {
    std::cout << std::fixed << std::setprecision(4) << "test " << metric_of(data) << ' ' << metric << ", test loss "
              << result.loss << '\n';
  }
  return ok;
}

}  // namespace gradus::command
