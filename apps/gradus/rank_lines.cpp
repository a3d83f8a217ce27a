#include "apps/gradus/rank_lines.h"
#include <utility>

namespace gradus::command {

std::string RankLines::take(std::string_view bytes, Clock::time_point now) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    add(bytes.substr(0, end), out);
    if (end == std::string_view::npos) break;
    if (prefix_.empty()) out += std::exchange(begun_, {}) + bytes[end];
    else if (bytes[end] == '\n') end_line(out);
    else end_state(now, out);
    bytes.remove_prefix(end + 1);
  }
  return out;
}

std::string RankLines::finish() {
  std::string out;
  if (!begun_.empty() || !held_.empty()) emit(begun_.empty() ? held_ : begun_, out);
  begun_.clear();
  held_.clear();
  return out;
}

void RankLines::add(std::string_view bytes, std::string& out) {
  if (!bytes.empty()) after_return_ = false;
  while (begun_.size() + bytes.size() > longest) {
    const std::size_t fits = longest - begun_.size();
    emit(begun_.append(bytes.substr(0, fits)), out);
    begun_.clear();
    bytes.remove_prefix(fits);
  }
  begun_ += bytes;
}

void RankLines::end_line(std::string& out) {
  const bool by_both = begun_.empty() && after_return_;  // "\r\n"
  if (!by_both) emit(begun_, out);
  else if (!held_.empty() || !is_rewritten_) emit(held_, out);
  begun_.clear();
  held_.clear();
  after_return_ = is_rewritten_ = false;
}

void RankLines::end_state(Clock::time_point now, std::string& out) {
  after_return_ = true;
  if (begun_.empty()) return;
  if (!emitted_ || now - *emitted_ >= shortest_interval) {
    emit(begun_, out);
    emitted_ = now;
    is_rewritten_ = true;
    held_.clear();
  } else {
    held_ = begun_;
  }
  begun_.clear();
}

void RankLines::emit(std::string_view line, std::string& out) const { ((out += prefix_) += line) += '\n'; }

}  // namespace gradus::command
