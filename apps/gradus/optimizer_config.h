/// [optimizer] of a configuration: one table of optimizers and one of schedules; the fields of their options are the
/// keys.
#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "apps/gradus/config_reader.h"
#include "gradus/optim/optimizers.h"
#include "gradus/optim/schedule.h"

namespace gradus::command {

struct PiecewiseConstantDecayOptions {
  std::vector<std::int64_t> boundaries;
  std::vector<double> values;
};
using ScheduleOptions =
    std::variant<CosineDecayOptions, CosineDecayRestartsOptions, PolynomialDecayOptions, InverseTimeDecayOptions,
                 ExponentialDecayOptions, OneCycleOptions, PiecewiseConstantDecayOptions>;
struct ScheduleConfig {
  std::string type;
  ScheduleOptions options;
};

using OptimizerOptions = std::variant<AdamOptions, SGDOptions, AdamWOptions, RMSpropOptions, AdagradOptions,
                                      AdadeltaOptions, FtrlOptions, LionOptions>;
/// Variables with a rate and a decay of their own; missing ones are those of the others.
struct ParameterGroupConfig {
  std::vector<std::string> variables = {};  // parts of names
  std::optional<double> learning_rate = {}, weight_decay = {};
  std::optional<ScheduleConfig> schedule = {};  // of learning_rate or, without one, of the optimizer's
};
struct OptimizerConfig {
  std::string type = "adam";
  /// The number, or the schedule's initial_learning_rate or max_learning_rate.
  double learning_rate = 0.001;
  std::optional<ScheduleConfig> schedule = {};
  OptimizerOptions options = AdamOptions{};                 // but for their learning_rate
  std::vector<std::string> exclude_from_weight_decay = {};  // parts of names of variables
  std::vector<ParameterGroupConfig> groups = {};
};

OptimizerConfig read_optimizer(ConfigReader reader);
TomlTable table_of(const OptimizerConfig& config);

Schedule make_schedule(const OptimizerConfig& config);
/// InvalidArgument for options that the library does not take. Without the groups, which are of a model.
Optimizer make_optimizer(const OptimizerConfig& config);
/// ConfigError for a group without variables, or with some of a group before it.
void add_parameter_groups(Optimizer& optimizer, const OptimizerConfig& config, const Variables& variables);

}  // namespace gradus::command
