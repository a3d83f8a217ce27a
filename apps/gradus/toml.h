/// TOML as a tree of values that know their lines: the headers of the parser's own types stay in toml.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "gradus/base/error.h"

namespace gradus::command {

/// A configuration that cannot be: the message names file, line and key.
class ConfigError : public Error {
  using Error::Error;
};

/// Keys, arrays and tables within one another; a configuration has some five.
inline constexpr int max_toml_depth = 64;

struct TomlNode;
struct TomlEntry;
using TomlArray = std::vector<TomlNode>;
/// In the order of the text, keys as UTF-8.
using TomlTable = std::vector<TomlEntry>;
/// A value that no configuration has: a date or a time.
struct TomlMoment {};

struct TomlNode {
  std::variant<std::string, std::int64_t, double, bool, TomlArray, TomlTable, TomlMoment> value;
  std::int64_t line = 0;  // from 1; 0: it was not in a file
};
struct TomlEntry {
  std::string key;
  TomlNode node;
};

/// "an integer", "a table": for messages.
std::string_view kind_of(const TomlNode& node);
/// The value of a key; null if there is none.
const TomlNode* find(const TomlTable& table, std::string_view key);

/// ConfigError, with the line, for text that is no TOML in UTF-8. `source` names the text in messages.
TomlTable parse_toml(std::string_view written, std::string_view source);
/// Text that parse_toml reads back to the same tree.
std::string to_toml(const TomlTable& table);

}  // namespace gradus::command
