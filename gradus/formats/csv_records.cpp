#include "gradus/formats/csv_records.h"
#include <utility>
#include "gradus/base/error.h"

namespace gradus {

CsvRecords::CsvRecords(std::string_view text, std::string name, char separator)
    : text_(text), name_(std::move(name)), separator_(separator) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
}

void CsvRecords::fail(std::int64_t line, std::size_t byte, std::string_view what) const {
  throw DataError(text(name_, ":", line, ": byte ", byte, ": ", what));
}

bool CsvRecords::at_line_end() const {
  return text_[at_] == '\n' || (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
}

void CsvRecords::skip_line_end() {
  at_ += text_[at_] == '\r' ? 2u : 1u;
  ++line_;
}

bool CsvRecords::next(std::vector<CsvCell>& cells) {
  cells.clear();
  unescaped_.clear();
  while (at_ < text_.size() && at_line_end()) skip_line_end();
  if (at_ == text_.size()) return false;
  while (true) {
    cells.push_back(cell());
    if (at_ == text_.size()) return true;
    if (at_line_end()) {
      skip_line_end();
      return true;
    }
    ++at_;  // the separator
    if (at_ == text_.size()) {
      cells.push_back({{}, line_});
      return true;
    }
  }
}

CsvCell CsvRecords::cell() {
  if (at_ < text_.size() && text_[at_] == '"') return quoted_cell();
  const std::size_t begin = at_;
  while (at_ < text_.size() && text_[at_] != separator_ && !at_line_end()) ++at_;
  return {text_.substr(begin, at_ - begin), line_};
}

CsvCell CsvRecords::quoted_cell() {
  const std::int64_t first_line = line_;
  const std::size_t opening = at_++;
  std::string* unescaped = nullptr;
  std::size_t begin = at_;
  while (true) {
    const std::size_t quote = text_.find('"', at_);
    if (quote == std::string_view::npos) fail(first_line, opening, "this quote is not closed");
    for (std::size_t i = at_; i < quote; ++i) line_ += text_[i] == '\n';
    at_ = quote + 1;
    const bool doubled = at_ < text_.size() && text_[at_] == '"';
    if (!doubled && !unescaped) {
      if (at_ < text_.size() && text_[at_] != separator_ && !at_line_end())
        fail(line_, at_, "a cell goes on behind its closing quote; a quote within a cell is written twice");
      return {text_.substr(begin, quote - begin), first_line, true};
    }
    if (!unescaped) unescaped = &unescaped_.emplace_back();
    unescaped->append(text_, begin, quote - begin);
    if (!doubled) {
      if (at_ < text_.size() && text_[at_] != separator_ && !at_line_end())
        fail(line_, at_, "a cell goes on behind its closing quote; a quote within a cell is written twice");
      return {*unescaped, first_line, true};
    }
    *unescaped += '"';
    begin = ++at_;
  }
}

}  // namespace gradus
