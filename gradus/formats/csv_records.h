/// The cells of comma-separated text, record by record.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace gradus {

/// A cell of a record.
struct CsvCell {
  std::string_view text;  // content without quotes
  std::int64_t line = 0;  // line in which it stands, from 1
  bool quoted = false;
};

/// Reads comma-separated text record by record.
class CsvRecords {
 public:
  /// `text` must outlive this; `name` opens errors.
  CsvRecords(std::string_view text, std::string name, char separator);
  /// Reads the cells of the next record; false at the end. They are valid until the next call. Empty lines are no
  /// records. DataError, with line and byte, if a quote is not closed or something follows it.
  bool next(std::vector<CsvCell>& cells);

 private:
  CsvCell cell();
  CsvCell quoted_cell();
  [[noreturn]] void fail(std::int64_t line, std::size_t byte, std::string_view what) const;
  bool at_line_end() const;
  void skip_line_end();

  const std::string_view text_;
  const std::string name_;
  const char separator_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::deque<std::string> unescaped_;  // cells that contained quotes
};

}  // namespace gradus
