/// Changing a configuration as it is written: other values of some keys, with comments, and the rest as it was.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradus::command {

/// Another value of a key.
struct ConfigChange {
  std::string table;         // "train"; empty: the root
  std::string key, value;    // value: as TOML
  std::string comment = {};  // behind it; empty: none
};

/// The text of a configuration with these changes. Where its form allows no change of single lines, such as tables in
/// braces, it is written again, without its comments. `settings`: as for parse_config.
std::string changed_config(const std::string& written, std::string_view source, std::span<const std::string> settings,
                           const std::vector<ConfigChange>& changes);

}  // namespace gradus::command
