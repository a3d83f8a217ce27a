/// Parsing is toml++'s, writing our own.
#include "apps/gradus/toml.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include "apps/gradus/decimals.h"
#include "gradus/base/floating_point_state.h"

namespace gradus::command {
namespace {

/// Assumptions of toml++'s parser, which some malformed files break (3.3: "[/").
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

// toml++ 3.3 has undefined behaviour on some letters beyond ASCII, in comments too. So it sees ASCII alone: every other
// byte, and ~ itself, stands as ~ and two hexadecimal digits.

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

/// How deep a text nests, found without nesting: of brackets, braces and the parts of dotted keys all at once, since
/// parsing, copying and destroying tables recurses for each. It reads strings and comments as TOML does.
class DepthCheck {
 public:
  DepthCheck(std::string_view written, std::string_view source) : rest_(written), source_(source) {}

  void run() {
    while (!rest_.empty()) {
      const char c = rest_[0];
      if (c == '"' || c == '\'') skip_string(c);
      else if (c == '#') rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      else step(c);
    }
  }

 private:
  void step(char c) {
    rest_.remove_prefix(1);
    if (c == '\n') {
      ++line_;
      begins_line_ = true;
      dots_ = 0;
    } else if (c == '[' || c == '{') {
      if (begins_line_ && open_.empty()) header_ = 0;  // [table]: names begin at the root
      is_header_ = begins_line_ && (open_.empty() || is_header_);
      open_.push_back(std::exchange(dots_, 0) + 1);
      inner_ += open_.back();
    } else if ((c == ']' || c == '}') && !open_.empty()) {
      inner_ -= open_.back();
      open_.pop_back();
      if (is_header_) header_ = std::max(header_, dots_ + 1);
      dots_ = 0;
    } else if (c == ',') {
      dots_ = 0;
    } else if (c == '.') {
      ++dots_;
    }
    if (c != ' ' && c != '\t' && c != '\n' && c != '[') begins_line_ = false;
    require<ConfigError>(header_ + inner_ + dots_ < max_toml_depth, source_, ", line ", line_,
                         ": keys, arrays and tables are nested ", max_toml_depth, " deep; expected less");
  }

  /// Behind the end of a string; where it has none, to the end of its line or of the text.
  void skip_string(char quote) {
    begins_line_ = false;
    const std::string three(3, quote);
    const bool is_long = rest_.starts_with(three);
    rest_.remove_prefix(is_long ? 3 : 1);
    while (!rest_.empty()) {
      if (!is_long && rest_[0] == '\n') return;
      line_ += rest_[0] == '\n';
      if (rest_[0] == '\\' && quote == '"') {
        rest_.remove_prefix(1);
        if (rest_.empty()) return;
        line_ += rest_[0] == '\n';
      } else if (is_long ? rest_.starts_with(three) : rest_[0] == quote) {
        rest_.remove_prefix(is_long ? 3 : 1);
        for (int more = 0; is_long && more < 2 && rest_.starts_with(quote); ++more) rest_.remove_prefix(1);
        return;
      }
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_, source_;
  std::vector<int> open_;                             // for each bracket the depth that its contents add
  int line_ = 1, header_ = 0, inner_ = 0, dots_ = 0;  // dots: of the key that is being read
  bool begins_line_ = true, is_header_ = false;
};

/// An escape may spell text that reads like one of our codes.
std::string string_of(std::string_view ascii, std::string_view source) {
  std::string string = from_ascii(ascii);
  require_utf8(string, source);
  return string;
}

TomlNode copied(const toml::node& node, std::string_view source);

TomlTable copied_table(const toml::table& table, std::string_view source) {
  TomlTable out;
  for (const auto& [key, node] : table) out.emplace_back(string_of(key.str(), source), copied(node, source));
  // Equal lines, as in {a = 1, b = 2}, in the order of their names.
  std::ranges::stable_sort(out, {}, [](const auto& entry) { return entry.node.line; });
  return out;
}

TomlNode copied(const toml::node& node, std::string_view source) {
  TomlNode out{.value = TomlMoment{}, .line = node.source().begin.line};
  if (const auto* string = node.as_string()) out.value = string_of(string->get(), source);
  else if (const auto* integer = node.as_integer()) out.value = integer->get();
  else if (const auto* number = node.as_floating_point()) out.value = number->get();
  else if (const auto* boolean = node.as_boolean()) out.value = boolean->get();
  else if (const auto* table = node.as_table()) out.value = copied_table(*table, source);
  else if (const auto* array = node.as_array()) {
    TomlArray elements;
    for (const toml::node& element : *array) elements.push_back(copied(element, source));
    out.value = std::move(elements);
  }
  return out;
}

std::string in_quotes(std::string_view string) {
  std::string out = "\"";
  for (const char c : string) {
    if (c == '"' || c == '\\') out += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += {digits[static_cast<unsigned char>(c) / 16], digits[static_cast<unsigned char>(c) % 16]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// The shortest text that is read back as the same number, and as no integer.
std::string exactly(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const std::string out = shortest(value);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

std::string key_of(std::string_view key) {
  const auto is_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !key.empty() && std::ranges::all_of(key, is_bare) ? std::string(key) : in_quotes(key);
}

std::string written(const TomlNode& node);

std::string joined(const TomlArray& array) {
  std::string out = "[";
  for (const TomlNode& element : array) out += (out.size() > 1 ? ", " : "") + written(element);
  return out + ']';
}

std::string in_braces(const TomlTable& table) {
  std::string out = "{";
  for (const auto& [key, node] : table) out += (out.size() > 1 ? ", " : "") + key_of(key) + " = " + written(node);
  return out + '}';
}

/// On one line.
std::string written(const TomlNode& node) {
  if (const auto* string = std::get_if<std::string>(&node.value)) return in_quotes(*string);
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&node.value)) return exactly(*number);
  if (const auto* boolean = std::get_if<bool>(&node.value)) return *boolean ? "true" : "false";
  if (const auto* array = std::get_if<TomlArray>(&node.value)) return joined(*array);
  if (const auto* table = std::get_if<TomlTable>(&node.value)) return in_braces(*table);
  throw InternalError("toml: a date or time was to be written");
}

bool is_table(const TomlNode& node) { return std::holds_alternative<TomlTable>(node.value); }
bool is_array_of_tables(const TomlNode& node) {
  const auto* array = std::get_if<TomlArray>(&node.value);
  return array && !array->empty() && std::ranges::all_of(*array, is_table);
}

/// Values first: lines after a header belong to it.
void write_table(const TomlTable& table, const std::string& name, std::string& out) {
  for (const auto& [key, node] : table)
    if (!is_table(node) && !is_array_of_tables(node)) out += key_of(key) + " = " + written(node) + '\n';
  for (const auto& [key, node] : table) {
    const std::string full = name.empty() ? key_of(key) : name + '.' + key_of(key);
    if (is_table(node)) {
      out += "\n[" + full + "]\n";
      write_table(std::get<TomlTable>(node.value), full, out);
    } else if (is_array_of_tables(node)) {
      for (const TomlNode& element : std::get<TomlArray>(node.value)) {
        out += "\n[[" + full + "]]\n";
        write_table(std::get<TomlTable>(element.value), full, out);
      }
    }
  }
}

}  // namespace

std::string_view kind_of(const TomlNode& node) {
  constexpr std::string_view kinds[] = {"a string", "an integer", "a number",      "true or false",
                                        "an array", "a table",    "a date or time"};
  return kinds[node.value.index()];
}

const TomlNode* find(const TomlTable& table, std::string_view key) {
  const auto found = std::ranges::find(table, key, &TomlEntry::key);
  return found == table.end() ? nullptr : &found->node;
}

TomlTable parse_toml(std::string_view written, std::string_view source) {
  const HostFloats floats;  // numbers are read as the caller rounds
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (written.starts_with(byte_order_mark)) written.remove_prefix(byte_order_mark.size());
  require_utf8(written, source);
  DepthCheck(written, source).run();
  try {
    return copied_table(toml::parse(to_ascii(written), source), source);
  } catch (const toml::parse_error& error) {
    throw ConfigError(text(source, ", line ", error.source().begin.line, ": ", from_ascii(error.description())));
  } catch (const BrokenAssumption&) {
    throw ConfigError(text(source, ": this is not TOML; look for brackets and quotes out of place"));
  }
}

std::string to_toml(const TomlTable& table) {
  std::string out;
  write_table(table, "", out);
  return out;
}

}  // namespace gradus::command
