/// Reading of the configuration. Each table is read through a Reader that knows which keys were asked for, so that what
/// remains is a mistake.
#include "apps/gradus/config.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <nlohmann/json.hpp>
#include "gradus/base/nearest.h"

namespace gradus::command {
namespace {

/// What the parser of toml++ takes for granted, and some malformed files break (3.3: "[/").
struct BrokenAssumption {};
constexpr void assume(bool holds) {
  if (!holds) throw BrokenAssumption();
}

}  // namespace
}  // namespace gradus::command

// Its assertions throw, in every build: without them it would go on where nothing is defined any more.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(condition) gradus::command::assume(static_cast<bool>(condition))
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace gradus::command {
namespace {

// toml++ 3.3 runs into what is not defined on some letters beyond ASCII, in comments too. So it sees ASCII alone: every
// other byte, and ~ itself, stands as ~ and two hexadecimal digits, in what is parsed and in what is printed.

std::string to_ascii(std::string_view written) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string ascii;
  for (const char c : written) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && c != '~') ascii += c;
    else ascii += {'~', digits[byte / 16], digits[byte % 16]};
  }
  return ascii;
}

std::string from_ascii(std::string_view ascii) {
  const auto is_digit = [&](std::size_t i) {
    return std::string_view("0123456789abcdef").find(ascii[i]) != std::string_view::npos;
  };
  const auto digit = [&](std::size_t i) { return ascii[i] <= '9' ? ascii[i] - '0' : ascii[i] - 'a' + 10; };
  std::string written;
  for (std::size_t i = 0; i < ascii.size(); ++i) {
    // A message may quote the first byte of a code alone.
    const bool is_code = ascii[i] == '~' && i + 2 < ascii.size() && is_digit(i + 1) && is_digit(i + 2);
    written += is_code ? static_cast<char>(digit(i + 1) * 16 + digit(i + 2)) : ascii[i];
    if (is_code) i += 2;
  }
  return written;
}

void require_utf8(std::string_view written, std::string_view source) {
  try {
    (void)nlohmann::json(written).dump();
  } catch (const nlohmann::json::type_error&) { throw ConfigError(text(source, ": this is not UTF-8 text")); }
}

std::string place(std::string_view source, const toml::node& node) {
  if (node.source().begin.line == 0) return text(source, ": ");  // a setting
  return text(source, ", line ", node.source().begin.line, ": ");
}

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "true or false";
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    default: return "a date or time";
  }
}

class Reader {
 public:
  Reader(const toml::table& table, std::string name, std::string_view source)
      : table_(table), name_(std::move(name)), source_(source) {}

  void read(std::string_view key, std::string& value) {
    if (const toml::node* node = find(key)) value = from_ascii(get<std::string>(*node, key, "a string"));
  }
  void read(std::string_view key, std::int64_t& value, std::int64_t least, std::int64_t most) {
    const toml::node* node = find(key);
    if (!node) return;
    value = get<std::int64_t>(*node, key, "an integer");
    require<ConfigError>(value >= least && value <= most, place(source_, *node), "`", full(key), "` is ", value,
                         "; expected ", least, " to ", most);
  }
  /// An integer, which stands for `count` equal ones, or an array of `count`; of any positive number if that is 0.
  void read(std::string_view key, std::vector<std::int64_t>& values, std::size_t count, std::int64_t least,
            std::int64_t most) {
    const toml::node* node = find(key);
    if (!node) return;
    const std::string expected =
        text(count > 0 ? text("an integer or ", count, " of them") : "integers", " from ", least, " to ", most);
    values.clear();
    const auto add = [&](const toml::node& each) {
      const auto value = each.value_exact<std::int64_t>();
      require<ConfigError>(value && *value >= least && *value <= most, place(source_, each), "`", full(key),
                           "`: expected ", expected);
      values.push_back(*value);
    };
    if (const toml::array* array = node->as_array())
      for (const toml::node& each : *array) add(each);
    else add(*node);
    if (values.size() == 1 && count > 0) values.resize(count, values[0]);
    require<ConfigError>(count > 0 ? values.size() == count : !values.empty(), place(source_, *node), "`", full(key),
                         "` has ", values.size(), " numbers; expected ", expected);
  }
  void read(std::string_view key, bool& value) {
    if (const toml::node* node = find(key)) value = get<bool>(*node, key, "true or false");
  }
  /// A finite number; `check` says what it must be.
  void read(std::string_view key, double& value, std::string_view expected, bool (*check)(double)) {
    const toml::node* node = find(key);
    if (!node) return;
    require<ConfigError>(node->is_number(), place(source_, *node), "`", full(key), "` is ", kind_of(*node),
                         "; expected a number");
    value = node->value<double>().value();
    require<ConfigError>(std::isfinite(value) && check(value), place(source_, *node), "`", full(key), "` is ", value,
                         "; expected ", expected);
  }
  void read_choice(std::string_view key, std::string& value, std::vector<std::string> choices) {
    const toml::node* node = find(key);
    if (!node) return;
    read(key, value);
    require<ConfigError>(std::ranges::find(choices, value) != choices.end(), place(source_, *node), "`", full(key),
                         "` is \"", value, "\"", did_you_mean(value, choices));
  }
  const toml::node* find(std::string_view key) {
    asked_.emplace_back(key);
    const auto node = table_[key];
    return node.node();
  }
  void require_key(std::string_view key) const {
    require<ConfigError>(table_.contains(key), source_, ": `", full(key), "` is missing");
  }
  /// Every key of the table has been asked for.
  void finish() const {
    for (const auto& [key, node] : table_)
      require<ConfigError>(std::ranges::find(asked_, key.str()) != asked_.end(), place(source_, node), "unknown key `",
                           full(from_ascii(key.str())), "`", did_you_mean(from_ascii(key.str()), asked_));
  }
  Reader table(std::string_view key) {
    static const toml::table empty;
    const toml::node* node = find(key);
    if (!node) return {empty, full(key), source_};
    require<ConfigError>(node->is_table(), place(source_, *node), "`", full(key), "` is ", kind_of(*node),
                         "; expected a table, [", key, "]");
    return {*node->as_table(), full(key), source_};
  }
  std::vector<Reader> tables(std::string_view key) {
    std::vector<Reader> found;
    const toml::node* node = find(key);
    if (!node) return found;
    const toml::array* array = node->as_array();
    require<ConfigError>(array && array->is_homogeneous(toml::node_type::table), place(source_, *node), "`", full(key),
                         "` is ", kind_of(*node), "; expected tables, [[", key, "]]");
    for (const toml::node& element : *array)
      found.emplace_back(*element.as_table(), full(key) + "[" + std::to_string(found.size()) + "]", source_);
    return found;
  }

 private:
  std::string full(std::string_view key) const { return name_.empty() ? std::string(key) : text(name_, ".", key); }
  template <class T> T get(const toml::node& node, std::string_view key, std::string_view expected) const {
    const auto value = node.value_exact<T>();
    require<ConfigError>(value.has_value(), place(source_, node), "`", full(key), "` is ", kind_of(node), "; expected ",
                         expected);
    return *value;
  }
  const toml::table& table_;
  std::string name_;
  std::string_view source_;
  std::vector<std::string> asked_;
};

bool is_positive(double x) { return x > 0; }
bool is_not_negative(double x) { return x >= 0; }
bool is_below_one(double x) { return x >= 0 && x < 1; }
bool is_share(double x) { return x > 0 && x < 1; }
bool is_any(double) { return true; }

constexpr std::int64_t most = std::int64_t{1} << 40;

void read_text_data(Reader& r, DataConfig& data) {
  r.require_key("text");
  r.read("text", data.text);
  r.read("context", data.context, 1, 1 << 20);
  r.read("stride", data.stride, 1, most);
  r.read("test_share", data.test_share, "above 0 and below 1", is_share);
}

DataConfig read_data(Reader r) {
  DataConfig data;
  std::string directory;
  r.read_choice("kind", data.kind, {"images", "text"});
  r.read("directory", directory);
  data.directory = directory;
  if (data.kind == "text") {
    read_text_data(r, data);
    r.finish();
    return data;
  }
  for (auto [key, value] : {std::pair{"train_images", &data.train_images},
                            {"train_labels", &data.train_labels},
                            {"test_images", &data.test_images},
                            {"test_labels", &data.test_labels}}) {
    r.require_key(key);
    r.read(key, *value);
  }
  r.read("mean", data.mean, "a number", is_any);
  r.read("deviation", data.deviation, "a positive number", is_positive);
  r.finish();
  return data;
}

const std::vector<std::string> layer_types{"flatten",
                                           "reshape",
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

/// The keys of each type of layer, for whoever reads or writes them: `key` is a KeyReader or a KeyWriter.
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
    key.choice("activation", l.activation,
               {"linear", "relu", "tanh", "sigmoid", "gelu", "silu", "elu", "selu", "softplus", "leaky_relu"});
    key.flag("use_bias", l.use_bias);
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
}

struct KeyReader {
  Reader& r;
  void size(std::string_view key, std::int64_t& value) const {
    r.require_key(key);
    r.read(key, value, 1, most);
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
  void flag(std::string_view key, bool& value) const { r.read(key, value); }
  void number(std::string_view key, double& value, std::string_view expected, bool (*check)(double),
              bool needed) const {
    if (needed) r.require_key(key);
    r.read(key, value, expected, check);
  }
};

struct KeyWriter {
  toml::table& t;
  void size(std::string_view key, std::int64_t value) const { t.insert(key, value); }
  void sizes(std::string_view key, const std::vector<std::int64_t>& values) const {
    toml::array array;
    for (std::int64_t value : values) array.push_back(value);
    t.insert(key, std::move(array));
  }
  void pair(std::string_view key, const std::vector<std::int64_t>& values, bool) const {
    if (!values.empty()) sizes(key, values);
  }
  void choice(std::string_view key, const std::string& value, const std::vector<std::string>&) const {
    t.insert(key, value);
  }
  void flag(std::string_view key, bool value) const { t.insert(key, value); }
  void number(std::string_view key, double value, std::string_view, bool (*)(double), bool) const {
    t.insert(key, value);
  }
};

LayerConfig read_layer(Reader r) {
  LayerConfig layer;
  r.require_key("type");
  r.read_choice("type", layer.type, layer_types);
  visit_keys(layer, KeyReader{r});
  r.finish();
  return layer;
}

OptimizerConfig read_optimizer(Reader r) {
  OptimizerConfig optimizer;
  r.read_choice("type", optimizer.type, {"sgd", "adam", "adamw"});
  optimizer.learning_rate = optimizer.type == "sgd" ? 0.01 : 0.001;
  optimizer.weight_decay = optimizer.type == "adamw" ? 0.004 : 0;
  r.read("learning_rate", optimizer.learning_rate, "a positive number", is_positive);
  if (optimizer.type == "sgd") {
    r.read("momentum", optimizer.momentum, "at least 0 and below 1", is_below_one);
    r.read("nesterov", optimizer.nesterov);
  } else {
    r.read("beta_1", optimizer.beta_1, "at least 0 and below 1", is_below_one);
    r.read("beta_2", optimizer.beta_2, "at least 0 and below 1", is_below_one);
    r.read("epsilon", optimizer.epsilon, "a positive number", is_positive);
  }
  r.read("weight_decay", optimizer.weight_decay, "0 or more", is_not_negative);
  r.read("clipnorm", optimizer.clipnorm, "0 (none) or more", is_not_negative);
  r.read("global_clipnorm", optimizer.global_clipnorm, "0 (none) or more", is_not_negative);
  r.finish();
  return optimizer;
}

void read_training(Reader r, TrainConfig& config) {
  r.read("epochs", config.epochs, 1, 1'000'000);
  r.read("batch_size", config.batch_size, 1, most);
  r.read("micro_batch", config.micro_batch, 0, most);
  r.read("validate_each_epoch", config.validate_each_epoch);
  r.finish();
}

/// The names on the way to a value: "layers[1].units" is layers, 1, units.
std::vector<std::string> parts_of(std::string_view key) {
  std::vector<std::string> parts(1);
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '.' || key[i] == '[') parts.emplace_back();
    else if (key[i] != ']') parts.back() += key[i];
  }
  return parts;
}

/// What is called `part` in the table or array `node`; null if there is nothing.
toml::node* below(toml::node& node, const std::string& part) {
  if (toml::table* table = node.as_table()) return table->get(part);
  toml::array* array = node.as_array();
  std::size_t index = 0;
  const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), index);
  const bool is_index = problem == std::errc() && end == part.data() + part.size();
  return array && is_index && index < array->size() ? array->get(index) : nullptr;
}

/// What `value` is in TOML; a string if it is none.
toml::table parse_value(const std::string& value) {
  try {
    toml::table parsed = toml::parse("value = " + value);
    if (parsed.size() == 1) return parsed;
  } catch (const toml::parse_error&) {
  } catch (const BrokenAssumption&) {}
  return toml::table{{"value", value}};
}

/// "optimizer.learning_rate=0.1": a table that is not there begins with it.
void set_value(toml::table& root, const std::string& setting, std::string_view source) {
  require_utf8(setting, source);
  const std::size_t equals = std::min(setting.find('='), setting.size());
  const std::string key = to_ascii(setting.substr(0, equals));
  const std::vector<std::string> parts = parts_of(key);
  toml::node* node = &root;
  for (std::size_t i = 0; i + 1 < parts.size() && node; ++i) {
    if (i == 0 && !root.contains(parts[0])) root.insert(parts[0], toml::table());
    node = below(*node, parts[i]);
  }
  toml::table* table = node ? node->as_table() : nullptr;
  require<ConfigError>(table && equals < setting.size() && !parts.back().empty(), source, ": `", setting,
                       "` cannot be set; expected KEY=VALUE with a key such as optimizer.learning_rate or "
                       "layers[0].units");
  const toml::table parsed = parse_value(to_ascii(setting.substr(equals + 1)));
  parsed.get("value")->visit([&](const auto& value) { table->insert_or_assign(parts.back(), value); });
}

}  // namespace

TrainConfig parse_config(std::string_view written, std::string_view source, std::span<const std::string> settings) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (written.starts_with(byte_order_mark)) written.remove_prefix(byte_order_mark.size());
  require_utf8(written, source);
  toml::table root;
  try {
    root = toml::parse(to_ascii(written), source);
  } catch (const toml::parse_error& error) {
    throw ConfigError(text(source, ", line ", error.source().begin.line, ": ", from_ascii(error.description())));
  } catch (const BrokenAssumption&) {
    throw ConfigError(text(source, ": this is not TOML; look for brackets and quotes out of place"));
  }
  for (const std::string& setting : settings) set_value(root, setting, source);
  TrainConfig config;
  Reader r(root, "", source);
  r.read("seed", config.seed, 0, std::numeric_limits<std::int64_t>::max());
  r.read("threads", config.threads, 0, 1024);
  r.require_key("data");
  config.data = read_data(r.table("data"));
  for (Reader& layer : r.tables("layers")) config.layers.push_back(read_layer(std::move(layer)));
  require<ConfigError>(!config.layers.empty(), source,
                       ": there are no layers; add [[layers]] with type = \"dense\" and units");
  config.optimizer = read_optimizer(r.table("optimizer"));
  read_training(r.table("train"), config);
  r.finish();
  return config;
}

TrainConfig read_config(const std::filesystem::path& file, std::span<const std::string> settings) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream contents;
  require<Unavailable>(!std::filesystem::is_directory(file) && in && (contents << in.rdbuf() || in.peek() == EOF),
                       "configuration ", file.string(), ": cannot be read; is it there, and a file?");
  TrainConfig config = parse_config(contents.str(), file.string(), settings);
  if (config.data.directory.empty()) config.data.directory = file.parent_path();
  return config;
}

namespace {

toml::table table_of(const DataConfig& d) {
  toml::table data{{"kind", d.kind}, {"directory", to_ascii(d.directory.string())}};
  if (d.kind == "text") {
    data.insert("text", to_ascii(d.text));
    data.insert("context", d.context);
    data.insert("stride", d.stride);
    data.insert("test_share", d.test_share);
    return data;
  }
  data.insert("train_images", to_ascii(d.train_images));
  data.insert("train_labels", to_ascii(d.train_labels));
  data.insert("test_images", to_ascii(d.test_images));
  data.insert("test_labels", to_ascii(d.test_labels));
  data.insert("mean", d.mean);
  data.insert("deviation", d.deviation);
  return data;
}

}  // namespace

std::string to_toml(const TrainConfig& config) {
  toml::array layers;
  for (LayerConfig layer : config.layers) {
    toml::table t{{"type", layer.type}};
    visit_keys(layer, KeyWriter{t});
    layers.push_back(std::move(t));
  }
  const OptimizerConfig& o = config.optimizer;
  toml::table optimizer{{"type", o.type},
                        {"learning_rate", o.learning_rate},
                        {"weight_decay", o.weight_decay},
                        {"clipnorm", o.clipnorm},
                        {"global_clipnorm", o.global_clipnorm}};
  if (o.type == "sgd") {
    optimizer.insert("momentum", o.momentum);
    optimizer.insert("nesterov", o.nesterov);
  } else {
    optimizer.insert("beta_1", o.beta_1);
    optimizer.insert("beta_2", o.beta_2);
    optimizer.insert("epsilon", o.epsilon);
  }
  const toml::table root{{"seed", config.seed},
                         {"threads", config.threads},
                         {"data", table_of(config.data)},
                         {"layers", std::move(layers)},
                         {"optimizer", std::move(optimizer)},
                         {"train", toml::table{{"epochs", config.epochs},
                                               {"batch_size", config.batch_size},
                                               {"micro_batch", config.micro_batch},
                                               {"validate_each_epoch", config.validate_each_epoch}}}};
  std::ostringstream out;
  out << root << '\n';
  return from_ascii(out.view());
}

}  // namespace gradus::command
