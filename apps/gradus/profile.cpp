/// A short training of a configuration, profiled.
#include "apps/gradus/profile.h"
#include <iostream>
#include "apps/gradus/commands.h"
#include "apps/gradus/experiment.h"
#include "apps/gradus/path_kinds.h"
#include "apps/gradus/profile_pictures.h"
#include "apps/gradus/ranks.h"
#include "apps/gradus/report.h"
#include "apps/gradus/run_directory.h"
#include "apps/gradus/suggestion_keys.h"
#include "gradus/backend/plugin.h"

namespace gradus::command {
namespace {

TrainConfig config_of(const ProfileArguments& arguments) {
  require_configuration("profile", arguments.config);
  TrainConfig config = read_config(arguments.config, arguments.settings);
  if (arguments.data_directory) config.data.directory = *arguments.data_directory;
  if (arguments.threads) config.threads = *arguments.threads;
  return config;
}

/// Trains `steps` steps, of as many passes as they take. Nothing is written, and nothing is tested.
ProfileReport profiled_steps(Experiment& experiment, std::int64_t steps) {
  FitOptions& options = experiment.options;
  options.epochs = 1;
  options.steps_per_epoch = steps;
  options.validation.reset();
  options.verbose = false;
  return profile([&] {
    std::visit([&](const auto& train) { fit(experiment.model, experiment.optimizer, experiment.loss, train, options); },
               experiment.train);
  });
}

std::string page_of(const ProfileArguments& arguments, const TrainConfig& config, const Experiment& experiment,
                    const ProfileReport& report) {
  Report page{.title = "Profile of " + arguments.config.filename().string()};
  page.facts = {{"steps", std::to_string(arguments.steps)},
                {"threads", std::to_string(report.threads)},
                {"instructions", std::string(instruction_set())},
                {"parameters", std::to_string(experiment.model.variables().parameters())}};
  page.pictures = {{"Time", parts_svg(report)},
                   {"Layers: as wide as the time of their kernels", flame_svg(report)},
                   {"Timeline: the last programs", timeline_svg(report)},
                   {"Memory: by what holds it, for each program that ran", memory_svg(report)}};
  std::erase_if(page.pictures, [](const auto& picture) { return picture.second.empty(); });
  page.profile = text(report);
  page.summary = experiment.model.summary();
  page.configuration = to_toml(config);
  return to_html(page);
}

}  // namespace

int profile_training(const ProfileArguments& arguments) {
  require_one_process("profile");
  TrainConfig config = config_of(arguments);
  if (config.threads > 0) set_num_threads(static_cast<int>(config.threads));
  if (!config.device.empty()) set_default_device(device_named(config.device));
  Experiment experiment = make_experiment(config, load_data(config.data));
  experiment.options.strategy = strategy_of(config, Cluster());
  const RunDirectory run(arguments.output ? *arguments.output
                                          : make_run_directory(arguments.config.stem().string() + "-profile"));
  ProfileReport report = profiled_steps(experiment, arguments.steps);
  name_keys(report, config.data);
  run.write(run.report(), page_of(arguments, config, experiment, report));
  if (arguments.trace) report.save_trace(*arguments.trace);
  if (arguments.xplane) report.save_xplane(*arguments.xplane);
  if (arguments.json) std::cout << report.to_json() << '\n';
  else std::cout << report;
  std::cerr << "pictures: " << run.report().string() << '\n';
  return ok;
}

}  // namespace gradus::command
