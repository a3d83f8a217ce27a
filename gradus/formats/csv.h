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

struct CsvOptions {
  std::string label;   // the column that is to be predicted; may be empty where `columns` are said
  bool header = true;  // else columns are called "0", "1", ...
  char separator = ',';
  /// What a missing cell of a feature becomes; NaN is allowed. Missing are "", NA, N/A, NaN, null, none and ?, in any
  /// case. Nothing: they are errors. A label may never be missing.
  std::optional<double> missing_value = {};
  /// Columns of words: a word becomes its number in this list. An empty list is filled with the words that the file
  /// has, sorted.
  std::map<std::string, std::vector<std::string>> categories = {};
  /// The features, in this order: other columns are passed over. Empty: all but the label, as they stand.
  std::vector<std::string> columns = {};
  static constexpr auto ranges() { return std::array{Allowed::any("missing_value")}; }
};

struct CsvTable {
  Tensor features;  // f32 [rows, columns without the label]
  /// [rows]: i32 of integers and categories, i64 where an integer needs it, else f32; empty where the options name
  /// none.
  Tensor label;
  std::vector<std::string> columns;                            // of the features
  std::map<std::string, std::vector<std::string>> categories;  // the lists as they were used
  std::vector<std::int64_t> lines;                             // of each row the one that it begins in, from 1
};

/// The whole table; gzip is read as it is. DataError with file, line and column where a cell does not fit, a label is
/// an integer beyond i64, or a quote is not closed; InvalidArgument of a label or category that is no column;
/// Unavailable if the file cannot be read.
CsvTable load_csv(const std::filesystem::path& file, const CsvOptions& options);
/// The same of text in memory; `name` stands for the file in messages.
CsvTable parse_csv(std::string_view text, const std::string& name, const CsvOptions& options);

}  // namespace gradus
