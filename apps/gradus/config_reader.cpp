/// One method a type, and values that are set by name.
#include "apps/gradus/config_reader.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include "gradus/base/nearest.h"

namespace gradus::command {

std::string ConfigReader::place(const TomlNode& node) const {
  return node.line > 0 ? text(source_, ", line ", node.line, ": ") : text(source_, ": ");
}

template <class T> T ConfigReader::get(const TomlNode& node, std::string_view key, std::string_view expected) const {
  const T* value = std::get_if<T>(&node.value);
  require<ConfigError>(value, place(node), "`", full(key), "` is ", kind_of(node), "; expected ", expected);
  return *value;
}

const TomlNode* ConfigReader::find(std::string_view key) {
  asked_.emplace_back(key);
  return command::find(table_, key);
}

void ConfigReader::read(std::string_view key, std::string& value) {
  if (const TomlNode* node = find(key)) value = get<std::string>(*node, key, "a string");
}

void ConfigReader::read(std::string_view key, bool& value) {
  if (const TomlNode* node = find(key)) value = get<bool>(*node, key, "true or false");
}

void ConfigReader::read(std::string_view key, std::int64_t& value, std::int64_t least, std::int64_t most) {
  const TomlNode* node = find(key);
  if (!node) return;
  value = get<std::int64_t>(*node, key, "an integer");
  require<ConfigError>(value >= least && value <= most, place(*node), "`", full(key), "` is ", value, "; expected ",
                       least, " to ", most);
}

void ConfigReader::read(std::string_view key, std::vector<std::int64_t>& values, std::size_t count, std::int64_t least,
                        std::int64_t most) {
  const TomlNode* node = find(key);
  if (!node) return;
  const std::string expected =
      text(count > 0 ? text("an integer or ", count, " of them") : "integers", " from ", least, " to ", most);
  values.clear();
  const auto add = [&](const TomlNode& each) {
    const auto* value = std::get_if<std::int64_t>(&each.value);
    require<ConfigError>(value && *value >= least && *value <= most, place(each), "`", full(key), "`: expected ",
                         expected);
    values.push_back(*value);
  };
  if (const auto* array = std::get_if<TomlArray>(&node->value)) std::ranges::for_each(*array, add);
  else add(*node);
  if (values.size() == 1 && count > 0) values.resize(count, values[0]);
  require<ConfigError>(count > 0 ? values.size() == count : !values.empty(), place(*node), "`", full(key), "` has ",
                       values.size(), " numbers; expected ", expected);
}

void ConfigReader::read(std::string_view key, double& value, std::string_view expected, bool (*check)(double)) {
  const TomlNode* node = find(key);
  if (!node) return;
  if (const auto* integer = std::get_if<std::int64_t>(&node->value)) value = static_cast<double>(*integer);
  else value = get<double>(*node, key, "a number");
  require<ConfigError>(std::isfinite(value) && check(value), place(*node), "`", full(key), "` is ", value,
                       "; expected ", expected);
}

void ConfigReader::read_choice(std::string_view key, std::string& value, const std::vector<std::string>& choices) {
  read(key, value);
  if (const TomlNode* node = command::find(table_, key))
    require<ConfigError>(std::ranges::find(choices, value) != choices.end(), place(*node), "`", full(key), "` is \"",
                         value, "\"", did_you_mean(value, choices));
}

void ConfigReader::check_choices(std::string_view key, const std::vector<std::string>& values,
                                 const std::vector<std::string>& choices) {
  for (const std::string& value : values)
    if (std::ranges::find(choices, value) == choices.end())
      fail(key, text("has \"", value, "\"", did_you_mean(value, choices)));
}

void ConfigReader::read(std::string_view key, double& value) { read(key, value, "a finite number", is_any); }

void ConfigReader::read(std::string_view key, std::optional<double>& value) {
  double number = 0;
  read(key, number);
  if (has(key)) value = number;
}

void ConfigReader::read(std::string_view key, std::optional<bool>& value) {
  bool is_so = false;
  read(key, is_so);
  if (has(key)) value = is_so;
}

void ConfigReader::read(std::string_view key, char& value) {
  std::string letter(1, value);
  read(key, letter);
  if (letter.size() != 1) fail(key, text("is \"", letter, "\"; expected one character"));
  value = letter[0];
}

namespace {
const std::vector<std::string> monitor_modes{"automatic", "min", "max"};  // in the order of MonitorMode
}

void ConfigReader::read(std::string_view key, MonitorMode& value) {
  std::string name = monitor_modes[static_cast<std::size_t>(value)];
  read_choice(key, name, monitor_modes);
  value = static_cast<MonitorMode>(std::ranges::find(monitor_modes, name) - monitor_modes.begin());
}

TomlNode detail::toml_of(MonitorMode mode) { return {monitor_modes[static_cast<std::size_t>(mode)]}; }

void ConfigReader::read(std::string_view key, std::vector<std::int64_t>& values) {
  read(key, values, 0, 0, std::int64_t{1} << 40);
}

void ConfigReader::read(std::string_view key, std::vector<double>& values) {
  const TomlNode* node = find(key);
  if (!node) return;
  values.clear();
  for (const TomlNode& each : get<TomlArray>(*node, key, "an array of numbers")) {
    const auto* integer = std::get_if<std::int64_t>(&each.value);
    const double value = integer ? static_cast<double>(*integer) : get<double>(each, key, "numbers");
    require<ConfigError>(std::isfinite(value), place(each), "`", full(key), "` has ", value,
                         "; expected finite numbers");
    values.push_back(value);
  }
}

void ConfigReader::read(std::string_view key, std::vector<std::string>& values) {
  const TomlNode* node = find(key);
  if (!node) return;
  values.clear();
  for (const TomlNode& each : get<TomlArray>(*node, key, "an array of strings"))
    values.push_back(get<std::string>(each, key, "strings"));
}

void ConfigReader::require_key(std::string_view key) const {
  require<ConfigError>(has(key), source_, line_ > 0 ? text(", line ", line_) : "", ": `", full(key), "` is missing");
}

void ConfigReader::finish() const {
  for (const auto& [key, node] : table_)
    require<ConfigError>(std::ranges::find(asked_, key) != asked_.end(), place(node), "unknown key `", full(key), "`",
                         did_you_mean(key, asked_));
}

ConfigReader ConfigReader::table(std::string_view key) {
  static const TomlTable empty;
  const TomlNode* node = find(key);
  if (!node) return {empty, full(key), source_};
  const auto* found = std::get_if<TomlTable>(&node->value);
  require<ConfigError>(found, place(*node), "`", full(key), "` is ", kind_of(*node), "; expected a table, [", full(key),
                       "]");
  return {*found, full(key), source_, node->line};
}

std::vector<ConfigReader> ConfigReader::tables(std::string_view key) {
  std::vector<ConfigReader> found;
  const TomlNode* node = find(key);
  if (!node) return found;
  const auto* array = std::get_if<TomlArray>(&node->value);
  const auto is_table = [](const TomlNode& each) { return std::holds_alternative<TomlTable>(each.value); };
  require<ConfigError>(array && std::ranges::all_of(*array, is_table), place(*node), "`", full(key), "` is ",
                       kind_of(*node), "; expected tables, [[", key, "]]");
  for (const TomlNode& element : *array)
    found.emplace_back(std::get<TomlTable>(element.value), text(full(key), "[", found.size(), "]"), source_,
                       element.line);
  return found;
}

void ConfigReader::fail(std::string_view key, std::string_view why) const {
  const TomlNode* node = command::find(table_, key);
  throw ConfigError(text(place(node ? *node : TomlNode{.value = false, .line = line_}), "`", full(key), "` ", why));
}

namespace {

/// True if the word stands in the text, not as a part of a longer one.
bool names(std::string_view text, std::string_view word) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_letter(text[at - 1])) && (end == text.size() || !is_letter(text[end]))) return true;
  }
  return false;
}

}  // namespace

void ConfigReader::fail_for(const InvalidArgument& error) const {
  for (const auto& [key, node] : table_)
    if (names(error.what(), key)) throw ConfigError(text(place(node), "`", full(key), "`: ", error.what()));
  throw ConfigError(
      text(place(TomlNode{.value = false, .line = line_}), name_.empty() ? "" : text("[", name_, "]: "), error.what()));
}

bool is_positive(double x) { return x > 0; }
bool is_not_negative(double x) { return x >= 0; }
bool is_below_one(double x) { return x >= 0 && x < 1; }
bool is_share(double x) { return x > 0 && x < 1; }
bool is_any(double) { return true; }

namespace {

/// "layers[1]" -> "layers" and 1.
struct Segment {
  std::string key;
  std::optional<std::size_t> index;
};

Segment segment_of(std::string_view written, std::string_view setting) {
  const std::size_t bracket = written.find('[');
  Segment segment{std::string(written.substr(0, bracket)), {}};
  if (bracket != std::string_view::npos) {
    std::size_t index = 0;
    const char *begin = written.data() + bracket + 1, *end = written.data() + written.size();
    const auto [stop, problem] = std::from_chars(begin, end, index);
    require<ConfigError>(problem == std::errc() && stop + 1 == end && *stop == ']', "--set ", setting,
                         ": expected a number in the brackets of `", written, "`");
    segment.index = index;
  }
  require<ConfigError>(!segment.key.empty(), "--set ", setting, ": expected KEY=VALUE, such as train.epochs=3");
  return segment;
}

TomlNode& entry_of(TomlTable& table, const std::string& key) {
  const auto found = std::ranges::find(table, key, &TomlEntry::key);
  return found == table.end() ? table.emplace_back(key, TomlNode{TomlTable{}}).node : found->node;
}

TomlNode& step_into(TomlNode& node, const Segment& segment, std::string_view setting) {
  auto* table = std::get_if<TomlTable>(&node.value);
  require<ConfigError>(table, "--set ", setting, ": what is before `", segment.key, "` is ", kind_of(node),
                       ", not a table");
  TomlNode& found = entry_of(*table, segment.key);
  if (!segment.index) return found;
  auto* array = std::get_if<TomlArray>(&found.value);
  const std::size_t size = array ? array->size() : 0;
  require<ConfigError>(*segment.index < size, "--set ", setting, ": `", segment.key, "` has ", size, " elements");
  return (*array)[*segment.index];
}

/// Decimal digits, after a sign or none: those that TOML refuses are too large.
bool is_whole(std::string_view written) {
  if (written.starts_with('-') || written.starts_with('+')) written.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !written.empty() && written[0] != '0' && std::ranges::all_of(written, is_digit);
}

TomlNode value_of(const std::string& written, std::string_view setting) {
  TomlNode value;
  try {
    TomlTable table = parse_toml("value = " + written, text("--set ", setting));
    require<ConfigError>(table.size() == 1, "more than one value");
    value = std::move(table[0].node);
  } catch (const ConfigError&) {
    if (is_whole(written)) throw ConfigError(text("--set ", setting, ": the number does not fit into 64 bits"));
    value.value = written;
  }
  value.line = 0;
  return value;
}

}  // namespace

void set_value(TomlTable& root, std::string_view setting) {
  const std::size_t sign = setting.find('=');
  require<ConfigError>(sign != std::string_view::npos, "--set ", setting,
                       ": expected KEY=VALUE, such as train.epochs=3");
  TomlNode tree{std::move(root)};
  TomlNode* node = &tree;
  std::string_view path = setting.substr(0, sign);
  require<ConfigError>(std::ranges::count(path, '.') < max_toml_depth, "--set: the key of ", setting.size(),
                       " characters has ", max_toml_depth, " parts or more; expected less");
  for (bool more = true; more;) {
    const std::size_t dot = path.find('.');
    more = dot != std::string_view::npos;
    node = &step_into(*node, segment_of(path.substr(0, dot), setting), setting);
    if (more) path.remove_prefix(dot + 1);
  }
  *node = value_of(std::string(setting.substr(sign + 1)), setting);
  root = std::move(std::get<TomlTable>(tree.value));
}

}  // namespace gradus::command
