/// Lines are changed, and the result is read again: it has to be the configuration that was meant.
#include "apps/gradus/config_changes.h"
#include <algorithm>
#include <optional>
#include "apps/gradus/config.h"

namespace gradus::command {
namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& written) {
  Lines lines(1);
  for (const char c : written)
    if (c == '\n') lines.emplace_back();
    else lines.back() += c;
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(begin);
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

/// "train" of "[train]  # comment", "layers" of "[[layers]]".
std::optional<std::string> header_of(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('[')) return {};
  line.remove_prefix(line.starts_with("[[") ? 2 : 1);
  return std::string(trimmed(line.substr(0, std::min(line.find(']'), line.size()))));
}

bool sets(std::string_view line, std::string_view key) {
  line = trimmed(line);
  return line.starts_with(key) && trimmed(line.substr(key.size())).starts_with('=');
}

std::string line_of(const ConfigChange& change) {
  std::string line = change.key + " = " + change.value;
  if (change.comment.empty()) return line;
  line += "  # ";
  for (const char c : change.comment) line += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  return line;
}

void apply(Lines& lines, const ConfigChange& change) {
  std::string table;
  std::optional<std::size_t> begin = change.table.empty() ? std::optional<std::size_t>(0) : std::nullopt;
  std::size_t end = lines.size();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (const auto header = header_of(lines[i])) {
      if (begin && table == change.table) end = std::min(end, i);
      table = *header;
      if (table == change.table && !begin) begin = i + 1;
    } else if (begin && table == change.table && sets(lines[i], change.key)) {
      lines[i] = line_of(change);
      return;
    }
  }
  if (!begin) {
    lines.insert(lines.end(), {"", "[" + change.table + "]", line_of(change)});
    return;
  }
  while (end > *begin && trimmed(lines[end - 1]).empty()) --end;
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(end), line_of(change));
}

std::string with_changes(const std::string& written, const std::vector<ConfigChange>& changes) {
  Lines lines = lines_of(written);
  for (const ConfigChange& change : changes) apply(lines, change);
  std::string all;
  for (const std::string& line : lines) all += line + '\n';
  return all;
}

}  // namespace

std::string changed_config(const std::string& written, std::string_view source, std::span<const std::string> settings,
                           const std::vector<ConfigChange>& changes) {
  std::vector<std::string> all(settings.begin(), settings.end());
  for (const ConfigChange& change : changes)
    all.push_back((change.table.empty() ? "" : change.table + ".") + change.key + "=" + change.value);
  const std::string meant = to_toml(parse_config(written, source, all));
  try {
    const std::string changed = with_changes(written, changes);
    if (to_toml(parse_config(changed, source)) == meant) return changed;
  } catch (const ConfigError&) {}  // such as a table in another form
  return with_changes(to_toml(parse_config(written, source, settings)), changes);
}

}  // namespace gradus::command
