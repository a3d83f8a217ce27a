/// The tables, and their readers and writers.
#include "apps/gradus/optimizer_config.h"
#include <algorithm>
#include <span>
#include "gradus/train/named_parts.h"

namespace gradus::command {
namespace {

struct OptimizerRow {
  std::string type;
  OptimizerOptions defaults;
  Optimizer (*make)(const OptimizerOptions&, const Schedule&);
};

template <class Kind, class Options> OptimizerRow optimizer_row(OptimizerKind<Kind, Options> kind) {
  return {std::string(kind.name), Options{},
          [](const OptimizerOptions& given, const Schedule& learning_rate) -> Optimizer {
            Options options = std::get<Options>(given);
            options.learning_rate = learning_rate;
            return Kind(std::move(options));
          }};
}

const std::vector<OptimizerRow>& optimizers() {
  static const std::vector<OptimizerRow> rows =
      std::apply([](const auto&... kind) { return std::vector{optimizer_row(kind)...}; }, optimizer_kinds);
  return rows;
}

struct ScheduleRow {
  std::string type;
  ScheduleOptions defaults;
  Schedule (*make)(const ScheduleOptions&, double learning_rate);
};

constexpr bool is_rate(std::string_view field) {
  return field == "initial_learning_rate" || field == "max_learning_rate";
}

template <class Kind, class Options> ScheduleRow schedule_row(std::string type) {
  return {std::move(type), Options{}, [](const ScheduleOptions& given, double learning_rate) -> Schedule {
            Options options = std::get<Options>(given);
            reflect::for_each_field(options, [&](std::string_view name, auto& field) {
              if constexpr (std::same_as<std::remove_cvref_t<decltype(field)>, double>)
                if (is_rate(name)) field = learning_rate;
            });
            return Kind(options);
          }};
}

const std::vector<ScheduleRow>& schedules() {
  static const std::vector<ScheduleRow> rows{
      schedule_row<CosineDecay, CosineDecayOptions>("cosine_decay"),
      schedule_row<CosineDecayRestarts, CosineDecayRestartsOptions>("cosine_decay_restarts"),
      schedule_row<PolynomialDecay, PolynomialDecayOptions>("polynomial_decay"),
      schedule_row<InverseTimeDecay, InverseTimeDecayOptions>("inverse_time_decay"),
      schedule_row<ExponentialDecay, ExponentialDecayOptions>("exponential_decay"),
      schedule_row<OneCycle, OneCycleOptions>("one_cycle"),
      {"piecewise_constant_decay", PiecewiseConstantDecayOptions{},
       [](const ScheduleOptions& given, double) -> Schedule {
         const auto& options = std::get<PiecewiseConstantDecayOptions>(given);
         return PiecewiseConstantDecay(options.boundaries, options.values);
       }},
  };
  return rows;
}

template <class Row> const Row& row_of(const std::vector<Row>& rows, const std::string& type) {
  return *std::ranges::find(rows, type, &Row::type);
}
template <class Row> std::vector<std::string> types_of(const std::vector<Row>& rows) {
  std::vector<std::string> types;
  for (const Row& row : rows) types.push_back(row.type);
  return types;
}

/// The rate is that of [optimizer], once.
const std::vector<std::string_view> rates{"initial_learning_rate", "max_learning_rate"};

ScheduleConfig read_schedule(ConfigReader reader, double learning_rate) {
  ScheduleConfig config;
  reader.require_key("type");
  reader.read_choice("type", config.type, types_of(schedules()));
  const ScheduleRow& row = row_of(schedules(), config.type);
  config.options = row.defaults;
  for (const std::string_view rate : rates)
    if (reader.has(rate)) reader.fail(rate, "is said by optimizer.learning_rate");
  std::visit([&](auto& options) { reader.read_fields(options, rates); }, config.options);
  reader.finish();
  reader.checked([&] { (void)row.make(config.options, learning_rate); });
  return config;
}

Schedule schedule_of(const std::optional<ScheduleConfig>& config, double learning_rate) {
  if (!config) return learning_rate;
  return row_of(schedules(), config->type).make(config->options, learning_rate);
}

TomlTable schedule_table(const ScheduleConfig& config) {
  TomlTable table;
  add(table, "type", config.type);
  std::visit([&](const auto& options) { add_fields(table, options, rates); }, config.options);
  return table;
}

ParameterGroupConfig read_group(ConfigReader reader, double learning_rate) {
  ParameterGroupConfig group;
  reader.require_key("variables");
  reader.read_fields(group);
  if (group.variables.empty() || std::ranges::count(group.variables, "") > 0)
    reader.fail("variables", "expected parts of names of variables, none of them empty");
  if (!group.learning_rate && !group.weight_decay && !reader.has("schedule"))
    reader.fail("variables", "belong to a group that says neither learning_rate nor weight_decay nor a schedule");
  for (const auto& [key, value] :
       {std::pair("learning_rate", group.learning_rate), {"weight_decay", group.weight_decay}})
    if (value && !is_not_negative(*value)) reader.fail(key, text("is ", *value, "; expected 0 or a positive number"));
  if (reader.find("schedule"))
    group.schedule = read_schedule(reader.table("schedule"), group.learning_rate.value_or(learning_rate));
  reader.finish();
  return group;
}

}  // namespace

OptimizerConfig read_optimizer(ConfigReader reader) {
  OptimizerConfig config;
  reader.read_choice("type", config.type, types_of(optimizers()));
  config.options = row_of(optimizers(), config.type).defaults;
  config.learning_rate = std::visit([](const auto& o) { return o.learning_rate.constant(); }, config.options);
  reader.read("learning_rate", config.learning_rate, "a positive number", is_positive);
  std::visit([&](auto& options) { reader.read_fields(options); }, config.options);
  reader.read("exclude_from_weight_decay", config.exclude_from_weight_decay);
  for (ConfigReader& group : reader.tables("groups"))
    config.groups.push_back(read_group(std::move(group), config.learning_rate));
  if (reader.find("schedule")) config.schedule = read_schedule(reader.table("schedule"), config.learning_rate);
  reader.finish();
  reader.checked([&] { (void)make_optimizer(config); });
  return config;
}

TomlTable table_of(const OptimizerConfig& config) {
  TomlTable table;
  add(table, "type", config.type);
  add(table, "learning_rate", config.learning_rate);
  std::visit([&](const auto& options) { add_fields(table, options); }, config.options);
  add(table, "exclude_from_weight_decay", config.exclude_from_weight_decay);
  if (!config.groups.empty()) {
    TomlArray groups;
    for (const ParameterGroupConfig& group : config.groups) {
      TomlTable one;
      add_fields(one, group);
      if (group.schedule) add(one, "schedule", schedule_table(*group.schedule));
      groups.push_back({std::move(one)});
    }
    table.emplace_back("groups", TomlNode{std::move(groups)});
  }
  if (config.schedule) add(table, "schedule", schedule_table(*config.schedule));
  return table;
}

Schedule make_schedule(const OptimizerConfig& config) { return schedule_of(config.schedule, config.learning_rate); }

Optimizer make_optimizer(const OptimizerConfig& config) {
  Optimizer optimizer = row_of(optimizers(), config.type).make(config.options, make_schedule(config));
  if (!config.exclude_from_weight_decay.empty()) optimizer.exclude_from_weight_decay(config.exclude_from_weight_decay);
  return optimizer;
}

void add_parameter_groups(Optimizer& optimizer, const OptimizerConfig& config, const Variables& variables) {
  for (std::size_t i = 0; i < config.groups.size(); ++i) {
    const ParameterGroupConfig& group = config.groups[i];
    const Variables members = variables.filter([&](std::string_view name) {
      return std::ranges::any_of(group.variables,
                                 [&](const std::string& part) { return name.find(part) != std::string_view::npos; });
    });
    try {
      require(members.size() > 0, "no variable of the model has a name with any of these parts in it");
      ParameterGroupOptions options{.weight_decay = group.weight_decay};
      if (group.learning_rate || group.schedule)
        options.learning_rate = schedule_of(group.schedule, group.learning_rate.value_or(config.learning_rate));
      optimizer.add_parameter_group(members, options);
    } catch (const InvalidArgument& error) { throw ConfigError(text("optimizer.groups[", i, "]: ", error.what())); }
  }
}

}  // namespace gradus::command
