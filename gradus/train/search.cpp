/// The searches that train each trial once, and the reading of results.
#include "gradus/train/search.h"
#include <algorithm>
#include <numeric>
#include "gradus/base/error.h"
#include "gradus/train/trials.h"

namespace gradus {
namespace {

int epochs_of(const SearchRow& row) { return row.progress.empty() ? 0 : row.progress.back().first; }
bool was_judged(const SearchRow& row) {
  return row.score && (row.state == TrialState::done || row.state == TrialState::dropped);
}

SearchResult search(Trials& trials, std::vector<SearchSpace::Values> values, const ScoreFunction& score) {
  const auto all = trials.add(std::move(values));
  trials.run(all, true, [&](std::size_t i) { return score(trials.row(i).trial); });
  return trials.finish();
}

/// Scores by hyperparameter number p.
PlotPanel panel_of(const SearchResult& result, std::size_t p) {
  PlotPanel panel{.x_label = result.space.name(p), .y_label = "score", .log_x = result.space.is_logarithmic(p)};
  PlotSeries dots{.dots = true};
  for (const SearchRow& row : result.rows) {
    if (!was_judged(row)) continue;
    const SearchValue& value = row.trial.values[p].second;
    const double* number = std::get_if<double>(&value);
    const auto* integer = std::get_if<std::int64_t>(&value);
    double x = number ? *number : integer ? static_cast<double>(*integer) : 0;
    if (!number && !integer) {
      const auto found = std::ranges::find(panel.categories, to_text(value));
      x = static_cast<double>(found - panel.categories.begin());
      if (found == panel.categories.end()) panel.categories.push_back(to_text(value));
    }
    dots.x.push_back(x);
    dots.y.push_back(*row.score);
  }
  panel.series = {std::move(dots)};
  return panel;
}

PlotPanel panel_of_progress(const SearchResult& result) {
  PlotPanel panel{.title = "trials", .x_label = "epochs", .y_label = "score"};
  for (const SearchRow& row : result.rows) {
    PlotSeries line;
    for (const auto& [epochs, score] : row.progress) {
      line.x.push_back(epochs);
      line.y.push_back(score);
    }
    PlotSeries dots = line;
    dots.dots = true;
    if (line.x.size() > 1) panel.series.push_back(std::move(line));
    else panel.series.push_back(std::move(dots));
  }
  return panel;
}

}  // namespace

std::string_view to_text(TrialState state) {
  constexpr std::string_view names[] = {"done", "dropped", "diverged", "failed", "not run"};
  return names[static_cast<std::size_t>(state)];
}

std::vector<std::size_t> SearchResult::ranking() const {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) {
    const SearchRow &a = rows[i], &b = rows[j];
    if (was_judged(a) != was_judged(b)) return was_judged(a);
    if (!was_judged(a)) return false;
    if (epochs_of(a) != epochs_of(b)) return epochs_of(a) > epochs_of(b);
    return maximize ? *a.score > *b.score : *a.score < *b.score;
  });
  return order;
}

const SearchRow& SearchResult::best() const {
  const auto order = ranking();
  if (!order.empty() && was_judged(rows[order.front()])) return rows[order.front()];
  const auto wrong = std::ranges::find_if(rows, [](const SearchRow& row) { return !row.reason.empty(); });
  throw Error(text("search: no trial has a score", wrong == rows.end() ? "; none was run" : "",
                   wrong == rows.end() ? "" : text("; trial ", wrong->trial.index, ": ", wrong->reason)));
}

ResultTable SearchResult::table() const {
  ResultTable table{{"trial"}};
  for (std::size_t p = 0; p < space.size(); ++p) table.columns.push_back(space.name(p));
  const bool halves = std::ranges::any_of(rows, [](const SearchRow& row) { return !row.progress.empty(); });
  if (halves) table.columns.push_back("epochs");
  for (const char* column : {"score", "state", "seconds", "reason"}) table.columns.push_back(column);
  using Cell = ResultTable::Cell;
  for (const std::size_t i : ranking()) {
    const SearchRow& row = rows[i];
    std::vector<Cell> cells{row.trial.index};
    for (const auto& [name, value] : row.trial.values)
      cells.push_back(std::visit([](const auto& v) { return Cell(v); }, value));
    if (halves) cells.push_back(std::int64_t{epochs_of(row)});
    cells.push_back(row.score ? Cell(*row.score) : Cell());
    cells.push_back(std::string(to_text(row.state)));
    cells.push_back(row.seconds);
    cells.push_back(row.reason);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::vector<PlotPanel> SearchResult::picture() const {
  std::vector<PlotPanel> panels;
  for (std::size_t p = 0; p < space.size(); ++p) panels.push_back(panel_of(*this, p));
  if (std::ranges::any_of(rows, [](const SearchRow& row) { return !row.progress.empty(); }))
    panels.push_back(panel_of_progress(*this));
  return panels;
}

SearchResult grid_search(const SearchSpace& space, const ScoreFunction& score, SearchOptions options) {
  Trials trials("grid_search", space, std::move(options));
  return search(trials, space.grid(), score);
}

SearchResult random_search(const SearchSpace& space, std::int64_t trials, const ScoreFunction& score,
                           SearchOptions options) {
  require(trials > 0 && trials <= most_trials, "random_search: expected 1 to ", most_trials, " trials, got ", trials);
  const std::uint64_t seed = options.seed;
  Trials running("random_search", space, std::move(options));
  return search(running, space.drawn(trials, seed), score);
}

}  // namespace gradus
