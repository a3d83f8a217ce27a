/// The three formats of a table.
#include "gradus/train/result_table.h"
#include <algorithm>
#include <charconv>
#include <iomanip>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include "gradus/base/error.h"
#include "gradus/formats/atomic_file.h"

namespace gradus {
namespace {

template <class... F> struct Overloaded : F... {
  using F::operator()...;
};

std::string cell_text(const ResultTable::Cell& cell, bool exact) {
  return std::visit(Overloaded{[](std::monostate) { return std::string(); },
                               [](bool value) { return std::string(value ? "true" : "false"); },
                               [](std::int64_t value) { return std::to_string(value); },
                               [&](double value) { return exact ? exact_text(value) : gradus::text(value); },
                               [](const std::string& value) { return value; }},
                    cell);
}

/// In one line of a table for people.
std::string shown_cell(const ResultTable::Cell& cell) {
  std::string line = cell_text(cell, false);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return printable(line, true);
}

/// How many characters a UTF-8 text has.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string quoted(std::string field) {
  if (field.find_first_of(",\"\n\r") == std::string::npos) return field;
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

void add_fields(std::string& out, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) out += (i ? "," : "") + quoted(fields[i]);
  out += '\n';
}

}  // namespace

std::string exact_text(double value) {
  char digits[32];
  const auto [end, problem] = std::to_chars(digits, std::end(digits), value);
  return {digits, end};
}

/// Numbers are flush right, texts flush left; nothing stands behind the last column.
std::string ResultTable::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    widths.push_back(width_of(printable(columns[c], true)));
    for (const auto& row : rows) widths[c] = std::max(widths[c], width_of(shown_cell(row[c])));
  }
  const auto is_text = [&](std::size_t c) {
    return std::ranges::any_of(rows, [&](const auto& row) { return std::holds_alternative<std::string>(row[c]); });
  };
  std::string out;
  const auto add_line = [&](const auto& field) {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string value = field(c), blanks(widths[c] - width_of(value), ' ');
      line += (c ? "  " : "") + (is_text(c) ? value + blanks : blanks + value);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  add_line([&](std::size_t c) { return printable(columns[c], true); });
  for (const auto& row : rows) add_line([&](std::size_t c) { return shown_cell(row[c]); });
  return out;
}

std::string ResultTable::csv() const {
  std::string out;
  add_fields(out, columns);
  for (const auto& row : rows) {
    std::vector<std::string> fields;
    for (const ResultTable::Cell& cell : row) fields.push_back(cell_text(cell, true));
    add_fields(out, fields);
  }
  return out;
}

std::string ResultTable::json_lines() const {
  std::string out;
  for (const auto& row : rows) {
    nlohmann::ordered_json line = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < columns.size(); ++c)
      std::visit(Overloaded{[&](std::monostate) { line[columns[c]] = nullptr; },
                            [&](const auto& value) { line[columns[c]] = value; }},
                 row[c]);
    // Messages quote what users wrote, which may be no UTF-8.
    out += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }
  return out;
}

void ResultTable::save(const std::filesystem::path& file) const {
  const std::string form = file.extension().string();
  require(form == ".csv" || form == ".jsonl" || form == ".txt", "save: a table is written as .csv, .jsonl or .txt; ",
          file.string(), " ends in none of these");
  AtomicFile out(file);
  out.write(form == ".csv" ? csv() : form == ".jsonl" ? json_lines() : text());
  out.commit();
}

std::ostream& operator<<(std::ostream& out, const ResultTable& table) { return out << table.text(); }

}  // namespace gradus
