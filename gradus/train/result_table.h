/// Results as a table: aligned text for people, CSV and JSON lines in full precision for programs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace gradus {

/// The shortest text that is read back as the same number.
std::string exact_text(double value);

struct ResultTable {
  /// Nothing stands as an empty field, in JSON as null; so does in JSON a number that is not finite.
  using Cell = std::variant<std::monostate, bool, std::int64_t, double, std::string>;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`

  std::string text() const;
  std::string csv() const;  // as RFC 4180, with lines that end in \n
  std::string json_lines() const;
  /// Its form follows from its name: .csv, .jsonl, .txt. The file appears whole or not at all. InvalidArgument for
  /// another name, Unavailable if it cannot be written.
  void save(const std::filesystem::path& file) const;
};
std::ostream& operator<<(std::ostream& out, const ResultTable& table);

}  // namespace gradus
