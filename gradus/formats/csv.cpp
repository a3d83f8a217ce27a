/// Cells become numbers column by column. Words of categories are numbered once all are known.
#include "gradus/formats/csv.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>
#include "gradus/base/error.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/nearest.h"
#include "gradus/base/rooms.h"
#include "gradus/formats/byte_stream.h"
#include "gradus/formats/csv_records.h"
#include "gradus/formats/gzip.h"

namespace gradus {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_missing(std::string_view cell) {
  constexpr std::string_view words[] = {"", "na", "n/a", "nan", "null", "none", "?"};
  if (cell.size() > 4) return false;
  std::string lower(cell);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::find(words, lower) != std::end(words);
}

std::string shown(std::string_view cell) {
  constexpr std::size_t most = 40;
  std::string out = "\"";
  for (const char c : cell.substr(0, most)) out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return out + (cell.size() > most ? "...\"" : "\"");
}

constexpr float missing_word = -1;

/// The numbers of one column, f32 exactly as written; integers are kept as such as long as there are no others.
struct Column {
  std::string name;
  bool is_label = false, is_read = true;
  bool has_words = false;
  std::vector<std::string> words;  // by number
  bool words_are_given = false;
  std::unordered_map<std::string, std::int32_t> numbers;
  bool integers = true;
  std::vector<float> values;
  std::vector<std::int64_t> whole;         // of a label
  std::optional<std::int64_t> beyond_i64;  // the line of the first integer that is
};

class TableReader {
 public:
  TableReader(std::string_view content, const std::string& name, const CsvOptions& options)
      : records_(content, "from_csv: " + name, options.separator), name_(name), options_(options) {}

  CsvTable read() {
    require(options_.separator != '"' && options_.separator != '\n' && options_.separator != '\r',
            "from_csv: the separator may be neither a quote nor the end of a line");
    const double missing = options_.missing_value.value_or(0);
    require(!std::isfinite(missing) || std::isfinite(static_cast<float>(missing)), "from_csv: missing_value is ",
            missing, ", which f32 does not hold");
    std::vector<CsvCell> cells;
    bool more = records_.next(cells);
    require<DataError>(more || !options_.header, "from_csv: ", name_, ": the file is empty; expected a header");
    require<DataError>(std::ranges::none_of(cells, is_no_text), "from_csv: ", name_,
                       ":1: this is no text, or text in UTF-16; expected UTF-8");
    make_columns(cells);
    if (options_.header) more = records_.next(cells);
    for (; more; more = records_.next(cells)) add(cells);
    for (Column& column : columns_)
      if (column.has_words) number_words(column);
    return table();
  }

 private:
  static bool is_no_text(const CsvCell& cell) { return cell.text.find('\0') != cell.text.npos; }
  /// A column with a similar name, or all columns, by which a user recognizes a wrong file.
  static std::string listed(const std::string& wanted, const std::vector<std::string>& names) {
    std::string end = did_you_mean(wanted, names);
    if (!end.ends_with('?')) return end;
    end += " The columns are";
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 20); ++i)
      end += (i ? ", `" : " `") + names[i] + "`";
    return end + (names.size() > 20 ? " ..." : "");
  }

  void make_columns(const std::vector<CsvCell>& cells) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < cells.size(); ++i)
      names.push_back(options_.header ? std::string(trimmed(cells[i].text)) : std::to_string(i));
    require(!options_.label.empty() || !options_.columns.empty(),
            "from_csv: .label must name the column that is to be predicted", did_you_mean("", names));
    const auto check_column = [&](const std::string& wanted, const char* what) {
      const auto times = std::ranges::count(names, wanted);
      require<DataError>(times > 0, "from_csv: ", name_, " has no column `", wanted, "`, which `", what, "` names",
                         listed(wanted, names));
      require<DataError>(times == 1, "from_csv: ", name_, ":1: ", times, " columns are called `", wanted, "`");
    };
    if (!options_.label.empty()) check_column(options_.label, "label");
    for (const std::string& column : options_.columns) {
      check_column(column, "columns");
      require(column != options_.label, "from_csv: .columns names the label, `", column, "`");
      require(std::ranges::count(options_.columns, column) == 1, "from_csv: .columns names `", column, "` twice");
    }
    for (const auto& [column, words] : options_.categories) check_column(column, "categories");
    for (std::string& name : names) add_column(std::move(name));
  }
  void add_column(std::string name) {
    Column column{.name = std::move(name)};
    column.is_label = !options_.label.empty() && column.name == options_.label;
    const bool named = std::ranges::find(options_.columns, column.name) != options_.columns.end();
    column.is_read = column.is_label || options_.columns.empty() || named;
    if (const auto known = options_.categories.find(column.name); known != options_.categories.end()) {
      column.has_words = true;
      column.words = known->second;
      column.words_are_given = !column.words.empty();
      for (std::size_t i = 0; i < column.words.size(); ++i)
        require(column.numbers.emplace(column.words[i], static_cast<std::int32_t>(i)).second, "from_csv: category `",
                column.words[i], "` of column `", column.name, "` is listed twice");
    }
    columns_.push_back(std::move(column));
  }

  void add(const std::vector<CsvCell>& cells) {
    require<DataError>(cells.size() == columns_.size(), "from_csv: ", name_, ":", cells[0].line, ": expected ",
                       columns_.size(), " columns, found ", cells.size());
    lines_.push_back(cells[0].line);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Column& column = columns_[i];
      if (!column.is_read) continue;
      if (column.has_words) add_word(column, cells[i]);
      else add_number(column, cells[i]);
    }
  }
  template <class... Parts> [[noreturn]] void fail(const Column& column, const CsvCell& cell, Parts... parts) const {
    throw DataError(text("from_csv: ", name_, ":", cell.line, ": column `", column.name, "`: ", parts...));
  }
  /// True if it was one.
  bool add_missing(Column& column, const CsvCell& cell) const {
    if (cell.quoted || !is_missing(trimmed(cell.text))) return false;
    if (column.is_label) fail(column, cell, "the label is missing: ", shown(cell.text));
    if (!options_.missing_value)
      fail(column, cell, "expected a ", column.has_words ? "category" : "number", ", found ", shown(cell.text),
           "; .missing_value says what stands for a missing one");
    column.values.push_back(column.has_words ? missing_word : static_cast<float>(*options_.missing_value));
    return true;
  }
  void add_word(Column& column, const CsvCell& cell) const {
    const std::string word(cell.quoted ? cell.text : trimmed(cell.text));
    auto known = column.numbers.find(word);
    if (known == column.numbers.end()) {
      if (add_missing(column, cell)) return;
      if (column.words_are_given)
        fail(column, cell, "found ", shown(word), ", expected one of its ", column.words.size(), " categories",
             did_you_mean(word, column.words));
      known = column.numbers.emplace(word, static_cast<std::int32_t>(column.words.size())).first;
      column.words.push_back(word);
    }
    column.values.push_back(static_cast<float>(known->second));
    if (column.is_label) column.whole.push_back(known->second);
  }
  void add_number(Column& column, const CsvCell& cell) const {
    if (add_missing(column, cell)) return;
    const std::string_view number = trimmed(cell.text);
    const char *begin = number.data(), *end = begin + number.size();
    if (number.size() > 1 && *begin == '+' && begin[1] != '-') ++begin;
    float value = 0;
    auto parsed = std::from_chars(begin, end, value);
    if (parsed.ec == std::errc::result_out_of_range) value = far_value(column, cell, begin, end, parsed.ptr);
    if (number.empty() || parsed.ec == std::errc::invalid_argument || parsed.ptr != end || std::isnan(value))
      fail(column, cell, "expected a number, found ", shown(cell.text),
           "; if the column is of words, name it in `categories`");
    column.values.push_back(value);
    if (column.is_label) note_integer(column, cell, begin, end);
  }
  /// Numbers too small are zero, as everywhere.
  float far_value(const Column& column, const CsvCell& cell, const char* begin, const char* end,
                  const char* read) const {
    double wide = 0;
    const auto parsed = std::from_chars(begin, end, wide);
    const bool small = parsed.ec == std::errc() && std::fabs(wide) < 1;
    if (read != end || !small)
      fail(column, cell, "expected a number of at most 3.4e38, which f32 holds, found ", shown(cell.text));
    return static_cast<float>(wide);
  }
  static void note_integer(Column& column, const CsvCell& cell, const char* begin, const char* end) {
    std::int64_t whole = 0;
    const auto parsed = std::from_chars(begin, end, whole);
    column.integers &= parsed.ec != std::errc::invalid_argument && parsed.ptr == end;
    if (parsed.ec == std::errc::result_out_of_range && !column.beyond_i64) column.beyond_i64 = cell.line;
    column.whole.push_back(whole);
  }

  /// Words that the file brought are numbered in their order, so that the rows' order does not matter.
  void number_words(Column& column) const {
    std::vector<std::string> sorted = column.words;
    if (!column.words_are_given) std::ranges::sort(sorted);
    std::vector<std::int32_t> moved(sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      moved[static_cast<std::size_t>(column.numbers.at(sorted[i]))] = static_cast<std::int32_t>(i);
    for (std::int64_t& number : column.whole) number = moved[static_cast<std::size_t>(number)];
    for (float& value : column.values)
      value = value == missing_word
                  ? static_cast<float>(options_.missing_category.value_or(options_.missing_value.value_or(0)))
                  : static_cast<float>(moved[static_cast<std::size_t>(value)]);
    column.words = std::move(sorted);
  }

  CsvTable table() {
    CsvTable table{.lines = std::move(lines_)};
    std::vector<const Column*> features;
    const Column* label = nullptr;
    for (const Column& column : columns_) {
      if (!column.is_read) continue;
      if (column.has_words) table.categories[column.name] = column.words;
      if (column.is_label) label = &column;
      else features.push_back(&column);
    }
    if (!options_.columns.empty())
      std::ranges::sort(features, {}, [&](const Column* column) {
        return std::ranges::find(options_.columns, column->name) - options_.columns.begin();
      });
    for (const Column* column : features) table.columns.push_back(column->name);
    const auto rows = label ? std::ssize(label->values) : std::ssize(features.front()->values);
    const std::int64_t width = std::ssize(features);
    Ref<Buffer> numbers = Buffer::allocate(rows * width * size_of(f32), "csv table");
    for (std::int64_t c = 0; c < width; ++c)
      for (std::int64_t r = 0; r < rows; ++r)
        numbers->data<float>()[r * width + c] =
            features[static_cast<std::size_t>(c)]->values[static_cast<std::size_t>(r)];
    table.features = Tensor::of_buffer({f32, {rows, width}}, std::move(numbers));
    if (label) table.label = label_of(*label, rows);
    return table;
  }
  Tensor label_of(const Column& label, std::int64_t rows) const {
    if (!label.integers) return label_as(label.values, f32, rows);
    require<DataError>(!label.beyond_i64, "from_csv: ", name_, ":", label.beyond_i64.value_or(0), ": column `",
                       label.name,
                       "`: the label is an integer that i64 does not hold; write it with a point if it is "
                       "a number to predict");
    const bool narrow = std::ranges::all_of(label.whole, [](std::int64_t n) { return std::in_range<std::int32_t>(n); });
    return narrow ? label_as(std::vector<std::int32_t>(label.whole.begin(), label.whole.end()), i32, rows)
                  : label_as(label.whole, i64, rows);
  }
  template <class T> static Tensor label_as(const std::vector<T>& values, DType dtype, std::int64_t rows) {
    Ref<Buffer> numbers = Buffer::allocate(rows * size_of(dtype), "csv table");
    if (rows > 0) std::memcpy(numbers->data(), values.data(), static_cast<std::size_t>(rows) * sizeof(T));
    return Tensor::of_buffer({dtype, {rows}}, std::move(numbers));
  }

  CsvRecords records_;
  const std::string& name_;
  const CsvOptions& options_;
  std::vector<Column> columns_;
  std::vector<std::int64_t> lines_;
};

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& name, const CsvOptions& options) {
  const HostFloats floats;
  return TableReader(text, name, options).read();
}

CsvTable load_csv(const std::filesystem::path& file, const CsvOptions& options) {
  const HostFloats floats;
  const std::vector<std::byte> bytes = read_to_end(*gunzip_if_compressed(open_file(file)));
  return parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file.string(), options);
}

}  // namespace gradus
