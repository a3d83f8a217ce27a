/// All keys, in one place each: a visit_keys for reading and writing them.
#include "apps/gradus/config.h"
#include <algorithm>
#include "gradus/base/input_file.h"
#include "gradus/train/named_parts.h"

namespace gradus::command {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 40;

/// Reads keys for visit_keys. A needed key has to exist.
struct KeyReader {
  ConfigReader& r;
  void size(std::string_view key, std::int64_t& value, bool needed = true, std::int64_t limit = most) const {
    if (needed) r.require_key(key);
    r.read(key, value, 1, limit);
  }
  void sizes(std::string_view key, std::vector<std::int64_t>& values) const {
    r.require_key(key);
    r.read(key, values, 0, 1, most);
  }
  void pair(std::string_view key, std::vector<std::int64_t>& values, bool needed) const {
    if (needed) r.require_key(key);
    r.read(key, values, 2, 1, 1 << 20);
  }
  void choice(std::string_view key, std::string& value, const std::vector<std::string>& choices) const {
    r.read_choice(key, value, choices);
  }
  void number(std::string_view key, double& value, std::string_view expected, bool (*check)(double),
              bool needed) const {
    if (needed) r.require_key(key);
    r.read(key, value, expected, check);
  }
  void needed(std::string_view key, std::string& value) const {
    r.require_key(key);
    r.read(key, value);
    if (value.empty()) r.fail(key, "is empty");
  }
  void number_within(std::string_view key, std::int64_t& value, std::int64_t limit) const {
    r.read(key, value, 0, limit);
  }
  void any(std::string_view key, auto& value) const { r.read(key, value); }
  void penalty(std::string_view key, std::optional<PenaltyConfig>& value) const {
    if (!r.find(key)) return;
    ConfigReader table = r.table(key);
    value.emplace();
    table.read("l1", value->l1, "0 or a positive number", is_not_negative);
    table.read("l2", value->l2, "0 or a positive number", is_not_negative);
    table.finish();
  }
};

struct KeyWriter {
  TomlTable& t;
  void size(std::string_view key, std::int64_t value, bool = true, std::int64_t = most) const { add(t, key, value); }
  void sizes(std::string_view key, const std::vector<std::int64_t>& values) const { add(t, key, values); }
  void pair(std::string_view key, const std::vector<std::int64_t>& values, bool) const {
    if (!values.empty()) add(t, key, values);
  }
  void choice(std::string_view key, const std::string& value, const std::vector<std::string>&) const {
    if (!value.empty()) add(t, key, value);
  }
  void number(std::string_view key, double value, std::string_view, bool (*)(double), bool) const {
    add(t, key, value);
  }
  void needed(std::string_view key, const std::string& value) const { add(t, key, value); }
  void number_within(std::string_view key, std::int64_t value, std::int64_t) const { add(t, key, value); }
  void any(std::string_view key, const auto& value) const { add(t, key, value); }
  void penalty(std::string_view key, const std::optional<PenaltyConfig>& value) const {
    if (!value) return;
    TomlTable table;
    add_fields(table, *value);
    add(t, key, std::move(table));
  }
};

const std::vector<std::string> data_kinds{"idx", "images", "npz", "csv", "text"};

template <class Key> void visit_pixels(DataConfig& d, const Key& key) {
  if (d.kind != "images") key.any("class_names", d.class_names);
  key.number("mean", d.mean, "a number", is_any, false);
  key.number("deviation", d.deviation, "a positive number", is_positive, false);
}

template <class Key> void visit_keys(DataConfig& d, const Key& key) {
  const auto share = [&] { key.number("test_share", d.test_share, "above 0 and below 1", is_share, false); };
  if (d.kind == "idx") {
    for (auto [name, file] : {std::pair{"train_images", &d.train_images},
                              {"train_labels", &d.train_labels},
                              {"test_images", &d.test_images},
                              {"test_labels", &d.test_labels}})
      key.needed(name, *file);
    return visit_pixels(d, key);
  }
  if (d.kind == "text") {
    key.needed("text", d.text);
    key.size("context", d.context, false, 1 << 20);
    key.size("stride", d.stride, false);
    return share();
  }
  if (d.kind == "npz") {
    key.needed("file", d.file);
    for (auto [name, array] :
         {std::pair{"train_x", &d.train_x}, {"train_y", &d.train_y}, {"test_x", &d.test_x}, {"test_y", &d.test_y}})
      key.any(name, *array);
    share();
    return visit_pixels(d, key);
  }
  key.needed("train", d.train);
  key.any("test", d.test);
  share();
  if (d.kind == "images") {
    key.size("height", d.height, true, 1 << 16);
    key.size("width", d.width, true, 1 << 16);
    key.size("channels", d.channels, false);
    return visit_pixels(d, key);
  }
  key.needed("label", d.label);
  key.any("header", d.header);
  key.any("separator", d.separator);
  key.any("missing_value", d.missing_value);
  key.any("columns", d.columns);
  key.any("categories", d.categories);
  key.choice("category_encoding", d.category_encoding, {"integer", "one_hot", "embedding"});
  if (d.category_encoding == "embedding") key.size("category_width", d.category_width, false, 1 << 16);
  key.any("sample_weight", d.sample_weight);
}

/// How batches are made.
template <class Key> void visit_making(DataConfig& d, const Key& key) {
  key.any("prefetch", d.prefetch);
  key.number_within("num_parallel_calls", d.num_parallel_calls, 1024);
  key.any("cache", d.cache);
}

DataConfig read_data(ConfigReader r) {
  DataConfig data;
  std::string directory;
  r.read_choice("kind", data.kind, data_kinds);
  r.read("directory", directory);
  data.directory = directory;
  visit_keys(data, KeyReader{r});
  visit_making(data, KeyReader{r});
  if (data.test_x.empty() != data.test_y.empty())
    r.fail(data.test_x.empty() ? "test_y" : "test_x", "needs the other of test_x and test_y");
  if (data.kind == "images" && data.channels != 1 && data.channels != 3 && data.channels != 4)
    r.fail("channels", text("is ", data.channels, "; expected 1, 3 or 4"));
  for (const std::string& column : data.columns) {
    if (column == data.label || column == data.sample_weight)
      r.fail("columns", text("has ", column, ", which is the ", column == data.label ? "label" : "sample_weight"));
    if (std::ranges::count(data.columns, column) > 1) r.fail("columns", text("has ", column, " twice"));
  }
  for (const std::string& column : data.categories)
    if (!data.columns.empty() && column != data.label && std::ranges::count(data.columns, column) == 0)
      r.fail("categories", text("has ", column, ", which is not among data.columns"));
  if (!data.sample_weight.empty() && data.sample_weight == data.label)
    r.fail("sample_weight", "is the label; expected another column");
  r.finish();
  return data;
}

const std::vector<std::string> layer_types{"flatten",
                                           "reshape",
                                           "normalization",
                                           "dense",
                                           "conv2d",
                                           "depthwise_conv2d",
                                           "separable_conv2d",
                                           "max_pooling2d",
                                           "average_pooling2d",
                                           "global_max_pooling2d",
                                           "global_average_pooling2d",
                                           "dropout",
                                           "batch_normalization",
                                           "layer_normalization",
                                           "embedding",
                                           "position_embedding",
                                           "transformer_block",
                                           "gru",
                                           "lstm",
                                           "scores"};
const std::vector<std::string> policies{"float32", "mixed_float16", "mixed_bfloat16"};

/// "automatic", then the names of the library's losses.
const std::vector<std::string>& losses() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{"automatic"};
    for (const LossByName& loss : named_losses()) all.emplace_back(loss.name);
    return all;
  }();
  return names;
}
std::vector<std::string> metrics() {
  std::vector<std::string> names;
  for (const MetricByName& metric : named_metrics()) names.emplace_back(metric.name);
  return names;
}

const std::vector<std::string> tasks{"automatic", "classification", "regression"};

/// The task that a loss belongs to.
std::string task_of_loss(const std::string& loss) {
  if (loss == "automatic") return loss;
  return std::ranges::find(named_losses(), loss, &LossByName::name)->of_classes ? "classification" : "regression";
}

template <class Key> void visit_keys(LayerConfig& l, const Key& key) {
  const bool depthwise = l.type == "depthwise_conv2d";
  if (l.type == "reshape") key.sizes("shape", l.shape);
  const bool recurrent = l.type == "gru" || l.type == "lstm", block = l.type == "transformer_block";
  if (l.type == "dense" || recurrent || block) key.size("units", l.units);
  if (l.type == "embedding") key.size("width", l.width);
  if (block) key.size("heads", l.heads);
  if (l.type == "conv2d" || l.type == "separable_conv2d") key.size("filters", l.filters);
  if (l.type == "conv2d" || l.type == "separable_conv2d" || depthwise) {
    key.pair("kernel_size", l.kernel_size, true);
    key.pair("strides", l.strides, false);
    key.choice("padding", l.padding, {"valid", "same"});
  }
  if (l.type == "dense" || l.type == "conv2d" || l.type == "separable_conv2d" || depthwise) {
    key.choice("activation", l.activation, activation_names());
    key.any("use_bias", l.use_bias);
  }
  if (l.type == "dense" || l.type == "conv2d" || l.type == "separable_conv2d" || depthwise || recurrent) {
    key.penalty("kernel_regularizer", l.kernel_regularizer);
    key.penalty("bias_regularizer", l.bias_regularizer);
    key.penalty("activity_regularizer", l.activity_regularizer);
  }
  if (l.type == "max_pooling2d" || l.type == "average_pooling2d") {
    key.pair("pool_size", l.pool_size, false);
    key.pair("strides", l.strides, false);
    key.choice("padding", l.padding, {"valid", "same"});
  }
  if (l.type == "dropout" || recurrent || block)
    key.number("rate", l.rate, "at least 0 and below 1", is_below_one, l.type == "dropout");
  if (l.type == "layer_normalization") key.number("epsilon", l.epsilon, "a positive number", is_positive, false);
  if (l.type == "batch_normalization") {
    key.number("momentum", l.momentum, "at least 0 and below 1", is_below_one, false);
    key.number("epsilon", l.epsilon, "a positive number", is_positive, false);
  }
  key.choice("policy", l.policy, policies);
}

LayerConfig read_layer(ConfigReader r) {
  LayerConfig layer;
  r.require_key("type");
  r.read_choice("type", layer.type, layer_types);
  visit_keys(layer, KeyReader{r});
  r.finish();
  return layer;
}

/// An optional table: `key.options(name, options, otherwise, make)`. Keys that are left out have the values of
/// `otherwise`, and make() validates the options. A run ends with its best weights by default.
template <class Key> void visit_tables(CallbackConfig& c, const Key& key) {
  key.options("early_stopping", c.early_stopping, {.restore_best_weights = true},
              [](const auto& o) { (void)early_stopping(o); });
  key.options("reduce_lr_on_plateau", c.reduce_lr_on_plateau, {}, [](const auto& o) { (void)reduce_lr_on_plateau(o); });
  key.options("model_checkpoint", c.model_checkpoint, {.save_best_only = true}, [](const auto&) {});
  key.options("tensorboard", c.tensorboard, {}, [](const auto&) {});
}

struct TableReader {
  ConfigReader& r;
  template <class Options, class Make>
  void options(std::string_view name, std::optional<Options>& value, std::type_identity_t<Options> otherwise,
               Make make) const {
    if (!r.find(name)) return;
    ConfigReader table = r.table(name);
    value = std::move(otherwise);
    table.read_fields(*value);
    table.finish();
    table.checked([&] { make(*value); });
  }
};

struct TableWriter {
  TomlTable& t;
  template <class Options, class Make>
  void options(std::string_view name, const std::optional<Options>& value, const std::type_identity_t<Options>&,
               Make) const {
    if (!value) return;
    TomlTable table;
    add_fields(table, *value);
    add(t, name, std::move(table));
  }
};

template <class Key> void visit_keys(CallbackConfig& c, const Key& key) {
  key.any("csv_logger", c.csv_logger);
  key.any("terminate_on_nan", c.terminate_on_nan);
  key.number("time_limit", c.time_limit, "seconds, 0 for none", is_not_negative, false);
}

CallbackConfig read_callbacks(ConfigReader r) {
  CallbackConfig callbacks;
  visit_keys(callbacks, KeyReader{r});
  visit_tables(callbacks, TableReader{r});
  r.finish();
  return callbacks;
}

/// The directory is the run's.
void read_checkpoints(ConfigReader r, CheckpointOptions& options) {
  r.read_fields(options);
  if (options.max_shard_bytes == 0) r.fail("max_shard_bytes", "is 0; expected a positive number");
  r.finish();
}

template <class Key> void visit_training(TrainConfig& c, const Key& key) {
  key.size("epochs", c.epochs, false, 1'000'000);
  key.size("batch_size", c.batch_size, false);
  key.any("micro_batch", c.micro_batch);
  key.any("max_bytes", c.max_bytes);
  key.size("replicas", c.replicas, false, 63);
  key.any("run_eagerly", c.run_eagerly);
  key.any("disable", c.disable);
  key.any("validate_each_epoch", c.validate_each_epoch);
  key.choice("policy", c.policy, policies);
  key.any("device", c.device);
  key.choice("task", c.task, tasks);
  key.choice("loss", c.loss, losses());
  key.any("metrics", c.metrics);
  key.any("class_weight", c.class_weight);
}

/// The key, the loss and the data must agree about the task.
void decide_task(const ConfigReader& r, TrainConfig& config) {
  const std::string of_loss = task_of_loss(config.loss);
  if (config.task != "automatic" && of_loss != "automatic" && config.task != of_loss)
    r.fail("task", text("is ", config.task, ", but train.loss, ", config.loss, ", is of ", of_loss));
  DataConfig& data = config.data;
  data.task = config.task == "automatic" ? of_loss : config.task;
  if (data.task != "regression") return;
  const std::string_view key = config.task == "automatic" ? "loss" : "task";
  if (data.kind == "images" || data.kind == "text")
    r.fail(key, text("is of regression, but data.kind \"", data.kind, "\" has classes alone"));
  if (!data.class_names.empty()) r.fail(key, "is of regression, but data.class_names names classes");
  if (std::ranges::find(data.categories, data.label) != data.categories.end())
    r.fail(key, text("is of regression, but the label, ", data.label, ", is among data.categories"));
  if (!config.class_weight.empty()) r.fail(key, "is of regression, but train.class_weight is of classes");
}

void read_training(ConfigReader r, TrainConfig& config) {
  visit_training(config, KeyReader{r});
  if (!std::ranges::all_of(config.class_weight, is_not_negative))
    r.fail("class_weight", "expected a number for each class, 0 or positive");
  if (!config.class_weight.empty() && std::ranges::none_of(config.class_weight, is_positive))
    r.fail("class_weight", "is 0 for every class, so nothing would be trained; expected a positive number among them");
  r.check_choices("metrics", config.metrics, metrics());
  decide_task(r, config);
  r.finish();
}

void read_distribution(ConfigReader r, DistributeConfig& distribute) {
  r.read("micro_shards", distribute.micro_shards, 1, 16'384);
  r.read("shard_optimizer", distribute.shard_optimizer);
  r.read("bf16_sums", distribute.bf16_sums);
  r.finish();
}

}  // namespace

TrainConfig parse_config(std::string_view written, std::string_view source, std::span<const std::string> settings) {
  TomlTable root = parse_toml(written, source);
  for (const std::string& setting : settings) set_value(root, setting);
  TrainConfig config;
  ConfigReader r(root, "", source);
  r.read("seed", config.seed, 0, std::numeric_limits<std::int64_t>::max());
  r.read("threads", config.threads, 0, 1024);
  r.require_key("data");
  config.data = read_data(r.table("data"));
  for (ConfigReader& layer : r.tables("layers")) config.layers.push_back(read_layer(std::move(layer)));
  require<ConfigError>(!config.layers.empty(), source,
                       ": there are no layers; add [[layers]] with type = \"dense\" and units");
  config.optimizer = read_optimizer(r.table("optimizer"));
  read_training(r.table("train"), config);
  read_checkpoints(r.table("checkpoints"), config.checkpoints);
  config.callbacks = read_callbacks(r.table("callbacks"));
  if (r.find("distribute")) read_distribution(r.table("distribute"), config.distribute.emplace());
  r.finish();
  return config;
}

TrainConfig read_config(const std::filesystem::path& file, std::span<const std::string> settings) {
  TrainConfig config = parse_config(read_text_file(file), file.string(), settings);
  if (config.data.directory.empty()) config.data.directory = file.parent_path();
  return config;
}

std::string to_toml(const TrainConfig& given) {
  TrainConfig config = given;  // visitors take an object to read into
  TomlTable root, data, train, checkpoints, callbacks;
  TomlArray layers;
  add(data, "kind", config.data.kind);
  add(data, "directory", config.data.directory.string());
  visit_keys(config.data, KeyWriter{data});
  visit_making(config.data, KeyWriter{data});
  for (LayerConfig& layer : config.layers) {
    TomlTable table;
    add(table, "type", layer.type);
    visit_keys(layer, KeyWriter{table});
    layers.push_back({std::move(table)});
  }
  visit_training(config, KeyWriter{train});
  add_fields(checkpoints, config.checkpoints);
  visit_keys(config.callbacks, KeyWriter{callbacks});
  visit_tables(config.callbacks, TableWriter{callbacks});
  add(root, "seed", config.seed);
  add(root, "threads", config.threads);
  add(root, "data", std::move(data));
  root.emplace_back("layers", TomlNode{std::move(layers)});
  add(root, "optimizer", table_of(config.optimizer));
  add(root, "train", std::move(train));
  add(root, "checkpoints", std::move(checkpoints));
  add(root, "callbacks", std::move(callbacks));
  if (config.distribute) {
    TomlTable distribute;
    add(distribute, "micro_shards", config.distribute->micro_shards);
    add(distribute, "shard_optimizer", config.distribute->shard_optimizer);
    add(distribute, "bf16_sums", config.distribute->bf16_sums);
    add(root, "distribute", std::move(distribute));
  }
  return to_toml(root);
}

}  // namespace gradus::command
