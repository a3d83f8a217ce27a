/// Tables of comma-separated values (RFC 4180) as tensors: quotes, missing values, categories.
#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Options of load_csv and parse_csv.
struct CsvOptions {
  std::string label;     // the column to predict; may be empty if `columns` is given
  bool header = true;    // the first line has names; else columns are called "0", "1", ...
  char separator = ',';  // between cells
  /// Replaces missing cells of features; NaN is allowed. Missing are "", NA, N/A, NaN, null, none and ?, in any case.
  /// By default they are errors. A label may never be missing.
  std::optional<double> missing_value = {};
  /// Replaces missing words of category columns, if missing_value is set; none: missing_value, which may be a word's
  /// number.
  std::optional<double> missing_category = {};
  /// Columns of words: a word becomes its number in this list. An empty list is filled with the words of the file,
  /// sorted.
  std::map<std::string, std::vector<std::string>> categories = {};
  /// The features, in this order; other columns are ignored. Empty: all but the label, in the order of the file.
  std::vector<std::string> columns = {};
  static constexpr auto ranges() { return std::array{Allowed::any("missing_value missing_category")}; }
};

/// A table as tensors.
struct CsvTable {
  Tensor features;  // f32 [rows, columns without the label]
  /// [rows]: i32 for integers and categories, i64 where an integer needs it, else f32. Empty if the options name none.
  Tensor label;
  std::vector<std::string> columns;                            // names of the features
  std::map<std::string, std::vector<std::string>> categories;  // the lists as they were used
  std::vector<std::int64_t> lines;                             // the line in which each row begins, from 1
};

/// Reads a whole table; gzip is recognised. DataError with file, line and column if a cell does not fit, a label is an
/// integer beyond i64, or a quote is not closed; also if the label, a category or a feature that the options name is
/// not a column; the error lists the columns. Unavailable if the file cannot be read.
CsvTable load_csv(const std::filesystem::path& file, const CsvOptions& options);
/// load_csv for text in memory; `name` stands for the file in messages.
CsvTable parse_csv(std::string_view text, const std::string& name, const CsvOptions& options);

}  // namespace gradus
