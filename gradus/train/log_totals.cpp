/// Rows of names.
#include "gradus/train/log_totals.h"
#include <algorithm>
#include <limits>
#include <utility>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

constexpr auto rows_of_logs = static_cast<std::int64_t>(most_logs);

/// FNV-1a: equal in every run. Never 0, which marks an empty row.
std::int64_t mark_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return static_cast<std::int64_t>(hash | 1);
}

/// f64 [most_logs, 1]: 1 in this row.
Tensor only(std::size_t row) {
  std::vector<double> places(most_logs, 0);
  places[row] = 1;
  return reshape(constant(places, f64), {rows_of_logs, 1});
}

}  // namespace

LogTotals::LogTotals()
    : sums_(zeros({rows_of_logs, 2}, f64), "log_sums", {.trainable = false}),
      marks_(zeros({rows_of_logs}, i64), "log_names", {.trainable = false}) {}

void LogTotals::reset() { sums_.assign(zeros({rows_of_logs, 2}, f64)); }

void LogTotals::add(const Logs& logs, const Tensor& counts) {
  Tensor sums = sums_.value();
  for (const Logs::Entry& each : logs.entries()) {
    if (each.name == "loss") continue;
    const Loss of_all = each.value.over_shards();
    const Tensor terms = reshape(stack({cast(of_all.sum(), f64), cast(of_all.weight(), f64)}), {1, 2});
    sums = sums + where(counts, terms, zeros_like(terms)) * only(row_of(each.name));
  }
  sums_.assign(sums);
}

void LogTotals::read_names() {
  if (std::exchange(were_read_, true)) return;
  rows_ = marks_.value().to_vector<std::int64_t>();
  rows_.erase(std::ranges::find(rows_, 0), rows_.end());
  kept_ = rows_.size();
}

void LogTotals::keep_names() {
  if (kept_ == rows_.size()) return;
  std::vector<std::int64_t> marks = rows_;
  marks.resize(most_logs, 0);
  marks_.assign(constant(marks));
  kept_ = rows_.size();
}

std::size_t LogTotals::row_of(const std::string& name) {
  const auto known = std::ranges::find(used_, name, [](const auto& each) { return each.first; });
  if (known != used_.end()) return known->second;
  const std::int64_t mark = mark_of(name);
  const auto row = static_cast<std::size_t>(std::ranges::find(rows_, mark) - rows_.begin());
  if (row == rows_.size()) {
    require(rows_.size() < most_logs, "fit: the logs of the training step have more than ", most_logs,
            " names in all of its calls");
    rows_.push_back(mark);
  }
  used_.emplace_back(name, row);
  return row;
}

std::vector<std::pair<std::string, double>> LogTotals::numbers() const {
  const std::vector<double> sums = sums_.value().to_vector<double>();
  std::vector<std::pair<std::string, double>> all;
  for (const auto& [name, row] : used_) {
    const double sum = sums[2 * row], weight = sums[2 * row + 1];
    all.emplace_back(name, weight == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / weight);
  }
  return all;
}

std::vector<std::string> LogTotals::names() const {
  std::vector<std::string> all;
  for (const auto& [name, row] : used_) all.push_back(name);
  return all;
}

}  // namespace gradus
