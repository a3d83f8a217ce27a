/// The cells of comma-separated text, record by record.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace gradus {

struct CsvCell {
  std::string_view text;  // without quotes
  std::int64_t line = 0;  // from 1
  bool quoted = false;
};

class CsvRecords {
 public:
  /// `text` outlives this; `name` opens errors.
  CsvRecords(std::string_view text, std::string name, char separator);
  /// The cells of the next record, which are valid until the one after is read; false at the end. Empty lines are no
  /// records. DataError, with line and byte, where a quote is not closed or something follows it.
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
  std::deque<std::string> unescaped_;  // cells that had quotes within
};

}  // namespace gradus
