/// Tables of results: aligned text for people, CSV and JSON lines in full precision for programs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace gradus {

/// The shortest text that reads back as the same number.
std::string exact_text(double value);

/// A table of results.
struct ResultTable {
  /// A cell. Empty is an empty field, in JSON null; a number that is not finite is null in JSON, too.
  using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
  std::vector<std::string> columns;     // their names
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`

  /// Aligned text.
  std::string text() const;
  std::string csv() const;  // as RFC 4180, with lines that end in \n
  /// One JSON object per line.
  std::string json_lines() const;
  /// Writes a file; its name determines the format: .csv, .jsonl, .txt. The file appears whole or not at all.
  /// InvalidArgument for another name, Unavailable if it cannot be written.
  void save(const std::filesystem::path& file) const;
};
/// Prints aligned text.
std::ostream& operator<<(std::ostream& out, const ResultTable& table);

}  // namespace gradus
