/// Reading tables of a configuration, and writing them: a ConfigReader knows which keys were asked for: any other one
/// is a mistake. The fields of a struct of options are keys by their names, whatever their types are.
#pragma once
#include <algorithm>
#include <concepts>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "apps/gradus/toml.h"
#include "gradus/base/reflect.h"
#include "gradus/optim/schedule.h"
#include "gradus/train/callback.h"

namespace gradus::command {

class ConfigReader {
 public:
  /// The table, its name, and the text in which it stands must outlive the reader.
  ConfigReader(const TomlTable& table, std::string name, std::string_view source, std::int64_t line = 0)
      : table_(table), name_(std::move(name)), source_(source), line_(line) {}

  // A missing key leaves the value as it is.
  void read(std::string_view key, std::string& value);
  void read(std::string_view key, bool& value);
  void read(std::string_view key, std::int64_t& value, std::int64_t least, std::int64_t most);
  /// An integer, which stands for `count` equal ones, or an array of `count`; of any positive number if that is 0.
  void read(std::string_view key, std::vector<std::int64_t>& values, std::size_t count, std::int64_t least,
            std::int64_t most);
  /// A finite number; `check` tests its range.
  void read(std::string_view key, double& value, std::string_view expected, bool (*check)(double));
  void read_choice(std::string_view key, std::string& value, const std::vector<std::string>& choices);
  /// ConfigError unless each of the values of `key` is among the choices.
  void check_choices(std::string_view key, const std::vector<std::string>& values,
                     const std::vector<std::string>& choices);

  // By the type alone, for fields.
  void read(std::string_view key, double& value);
  void read(std::string_view key, std::optional<double>& value);
  void read(std::string_view key, Steps& value) {
    double steps = value;
    read(key, steps);
    value = steps;
  }
  void read(std::string_view key, std::optional<bool>& value);
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  void read(std::string_view key, I& value) {
    std::int64_t wide = static_cast<std::int64_t>(value);
    constexpr std::int64_t most = std::int64_t{1} << 40;
    constexpr I largest = std::numeric_limits<I>::max();
    read(key, wide, 0, std::cmp_less(largest, most) ? static_cast<std::int64_t>(largest) : most);
    value = static_cast<I>(wide);
  }
  void read(std::string_view key, char& value);
  void read(std::string_view key, MonitorMode& value);
  void read(std::string_view key, std::vector<std::int64_t>& values);
  void read(std::string_view key, std::vector<double>& values);
  void read(std::string_view key, std::vector<std::string>& values);

  /// All fields that can be keys, but for `besides`.
  template <class Options> void read_fields(Options& options, std::vector<std::string_view> besides = {}) {
    reflect::for_each_field(options, [&](std::string_view name, auto& field) {
      if constexpr (requires { read(name, field); })
        if (std::ranges::find(besides, name) == besides.end()) read(name, field);
    });
  }

  const TomlNode* find(std::string_view key);
  bool has(std::string_view key) const { return command::find(table_, key) != nullptr; }
  void require_key(std::string_view key) const;
  /// Every key of the table has been asked for.
  void finish() const;
  /// A missing table is empty.
  ConfigReader table(std::string_view key);
  std::vector<ConfigReader> tables(std::string_view key);
  /// Throws at the key, or where the table begins.
  [[noreturn]] void fail(std::string_view key, std::string_view why) const;
  /// Does work with values that were read; an error of the library becomes a ConfigError at the key that it names.
  template <class Work> void checked(Work work) const {
    try {
      work();
    } catch (const InvalidArgument& error) { fail_for(error); }
  }

 private:
  std::string full(std::string_view key) const { return name_.empty() ? std::string(key) : text(name_, ".", key); }
  template <class T> T get(const TomlNode& node, std::string_view key, std::string_view expected) const;
  std::string place(const TomlNode& node) const;
  [[noreturn]] void fail_for(const InvalidArgument& error) const;
  const TomlTable& table_;
  std::string name_;
  std::string_view source_;
  std::int64_t line_;
  std::vector<std::string> asked_;
};

namespace detail {
template <class T>
concept TomlScalar = std::same_as<T, std::string> || std::same_as<T, bool> || std::same_as<T, double>;
TomlNode toml_of(MonitorMode mode);
TomlNode toml_of(const TomlScalar auto& value) { return {value}; }
TomlNode toml_of(const char* value) = delete;
template <std::integral I>
  requires(!std::same_as<I, bool> && !std::same_as<I, char>)
TomlNode toml_of(I value) {
  return {static_cast<std::int64_t>(value)};
}
inline TomlNode toml_of(const Steps& value) { return toml_of(static_cast<double>(value)); }
inline TomlNode toml_of(char value) { return {std::string(1, value)}; }
template <class T> TomlNode toml_of(const std::vector<T>& values) {
  TomlArray array;
  for (const T& value : values) array.push_back(toml_of(value));
  return {std::move(array)};
}
}  // namespace detail

/// Writes a key, in the type that a ConfigReader reads; nothing is left out.
template <class T> void add(TomlTable& table, std::string_view key, const T& value) {
  table.emplace_back(std::string(key), detail::toml_of(value));
}
inline void add(TomlTable& table, std::string_view key, const std::optional<double>& value) {
  if (value) add(table, key, *value);
}
inline void add(TomlTable& table, std::string_view key, const std::optional<bool>& value) {
  if (value) add(table, key, *value);
}
inline void add(TomlTable& table, std::string_view key, TomlTable value) {
  table.emplace_back(std::string(key), TomlNode{std::move(value)});
}
/// The fields that ConfigReader::read_fields reads.
template <class Options>
void add_fields(TomlTable& table, const Options& options, std::vector<std::string_view> besides = {}) {
  reflect::for_each_field(options, [&](std::string_view name, const auto& field) {
    if constexpr (requires(ConfigReader r, std::remove_cvref_t<decltype(field)>& value) { r.read(name, value); })
      if (std::ranges::find(besides, name) == besides.end()) add(table, name, field);
  });
}

bool is_positive(double x);
bool is_not_negative(double x);
bool is_below_one(double x);
bool is_share(double x);
bool is_any(double x);

/// Changes a value of a configuration before it is read: "optimizer.learning_rate=0.1", "layers[1].units=64". What is
/// no TOML is taken as a string. ConfigError for anything else.
void set_value(TomlTable& root, std::string_view setting);

}  // namespace gradus::command
