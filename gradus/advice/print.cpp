/// Advice as a table.
#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <ostream>
#include "gradus/advice/advice.h"
#include "gradus/advice/words.h"

namespace gradus {
namespace {

using advice_words::bytes;
using advice_words::time;

constexpr std::size_t reason_width = 100;

/// Lines of words, up to a width in characters.
std::vector<std::string> wrapped(const std::string& reason) {
  std::vector<std::string> lines(1);
  for (std::size_t begin = 0; begin < reason.size();) {
    const std::size_t end = std::min(reason.find(' ', begin), reason.size());
    const std::string word = reason.substr(begin, end - begin);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > reason_width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    begin = end + 1;
  }
  return lines;
}

std::string row_of(std::string_view name, const std::array<std::string, 4>& figures, std::string_view learned,
                   std::string_view verdict) {
  std::string row = text(std::left, std::setw(14), name, std::right);
  for (const std::string& figure : figures) row += text(std::setw(12), figure);
  return row + text("   ", std::left, std::setw(7), learned, "   ", verdict, '\n');
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 4> names{"worth it", "not worth it", "undecided", "does not work"};
  return names[static_cast<std::size_t>(verdict)];
}

std::ostream& operator<<(std::ostream& out, const Advice& advice) {
  TextStream table;
  if (!advice.where_time_goes.empty()) {
    for (const std::string& line : wrapped(advice.where_time_goes)) table << line << '\n';
    table << '\n';
  }
  table << row_of("lever", {"s before", "after", "bytes", "after"}, "learned", "verdict");
  for (const Lever& lever : advice.levers) {
    table << row_of(
        lever.name,
        {time(lever.seconds_before), time(lever.seconds_after), bytes(lever.bytes_before), bytes(lever.bytes_after)},
        lever.changes_learning ? "changes" : "kept", name_of(lever.verdict));
    for (const std::string& line : wrapped(lever.reason)) table << "    " << line << '\n';
  }
  table << row_of(
      "all together",
      {time(advice.seconds_before), time(advice.seconds_after), bytes(advice.bytes_before), bytes(advice.bytes_after)},
      "",
      advice.changes.empty() ? "there is nothing to change"
      : advice.pairs >= 8
          ? text(std::fixed, std::setprecision(3), advice.ratio_low, " to ", advice.ratio_high, " of the time")
          : "not measured together");
  for (const std::string& change : advice.changes) table << "    " << change << '\n';
  table << "trials took " << time(advice.seconds) << '\n';
  return out << table.str();
}

}  // namespace gradus
