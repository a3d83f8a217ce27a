/// Spaces follow from shapes and from walks through operands.
#include "gradus/compiler/loop_spaces.h"
#include <algorithm>

namespace gradus {
namespace {

std::optional<LoopSpace> same_elements(const LoopSpace& first, const LoopSpace& second) {
  if (first.columns && second.columns && first.columns != second.columns) return {};
  if (first.reduced && second.reduced && *first.reduced != *second.reduced) return {};
  LoopSpace space = first.columns ? first : second;
  space.reduced = first.reduced ? first.reduced : second.reduced;
  return space;
}

Shape empty_space(const LoopSpace& space, const Value& only) {
  if (space.reduced) return {dimension::multiply(space.reduced->outer, space.reduced->n), space.reduced->inner};
  return is_row_reduction(only) ? Shape{space.rows, space.columns} : Shape{0};
}

}  // namespace

LoopSpaces::LoopSpaces(const Graph& graph) : graph_(graph), elements_(graph), reaches_(graph) {
  for (int i = 0; i < graph.size(); ++i) elements_[i] = graph[i].spec.shape.size();
}

LoopSpace LoopSpaces::of(int i) const {
  const Value& v = graph_[i];
  LoopSpace space{.elements = elements_[i]};
  if (!v.op.is_reduction()) return space;
  const Shape& shape = graph_[v.in[0]].spec.shape;
  space.elements = elements_[v.in[0]];
  if (is_row_reduction(v)) {
    space.columns = shape.back();
    space.rows = elements_[i];
  } else {
    space.reduced = reduced_view(graph_, i);
  }
  return space;
}

std::optional<LoopSpace> LoopSpaces::joint(const LoopSpace& first, const LoopSpace& second, int operand) const {
  if (first.elements == 0) return {};
  if (first.elements == second.elements) return same_elements(first, second);
  if (const auto space = rows_of(first, second, operand)) return space;
  return rows_of(second, first, -1);
}

/// `small`, which has a value per row of `large`, joined with it. `operand`: large's read of small, or -1.
std::optional<LoopSpace> LoopSpaces::rows_of(const LoopSpace& small, const LoopSpace& large, int operand) const {
  if (small.columns || small.reduced) return {};
  LoopSpace space = large;
  if (!space.columns && operand >= 0) {
    const Walk walk = walk_of(graph_, operand);
    if (walk.strides.size() != 2) return {};  // one scalar for all elements would tie them to one row
    space.columns = walk.strides[1].extent;
    space.rows = small.elements;
    if (!spreads_rows(walk, space.rows, space.columns)) return {};
  }
  if (!space.columns || space.rows != small.elements) return {};
  return space;
}

bool LoopSpaces::holds(const LoopSpace& space, Members members) const {
  if (space.columns ? !rows_walk(space, members) : !choose_columns(space, members)) return false;
  return !space.reduced || space.columns <= row_block;
}

bool LoopSpaces::is_row_value(int member, const LoopSpace& space) const {
  const Value& v = graph_[member];
  return is_row_reduction(v) || (!is_column_reduction(v) && elements_[member] != space.elements);
}

/// The reach of the innermost strides of the operands that `member` walks through element by element: found once, since
/// groups ask again and again.
const std::vector<std::int64_t>& LoopSpaces::reaches_of(int member) const {
  std::optional<std::vector<std::int64_t>>& known = reaches_[member];
  if (known) return *known;
  std::vector<std::int64_t>& reaches = known.emplace();
  const Value& v = graph_[member];
  const auto add = [&](int operand) {
    const Walk walk = walk_of(graph_, operand);
    if (!walk.strides.empty() && std::ranges::count(reaches, walk.strides.back().extent) == 0)
      reaches.push_back(walk.strides.back().extent);
  };
  if (!is_computed_in_loops(v)) {
    if (!is_computed_where_read(graph_, source_of(graph_, member)) || v.op.is_view()) add(member);
  } else {
    for (int operand : v.in)
      if (!graph_[source_of(graph_, operand)].is_constant) add(operand);
  }
  return reaches;
}

/// Calls visit(reach) for the members that are computed for each element.
template <class Visit> void LoopSpaces::for_each_reach(const LoopSpace& space, Members members, Visit visit) const {
  for (std::span<const int> group : members)
    for (int member : group)
      if (graph_[member].op.is_reduction() || !is_row_value(member, space))
        for (const std::int64_t reach : reaches_of(member)) visit(reach);
}

/// True if every walk passes through a row in one stride.
bool LoopSpaces::rows_walk(const LoopSpace& space, Members members) const {
  if (space.reduced && !dimension::divide(space.reduced->inner, space.columns)) return false;
  bool fits = true;
  std::int64_t seen = space.columns;  // most are alike
  for_each_reach(space, members, [&](std::int64_t reach) {
    if (reach == seen) return;
    seen = reach;
    fits = fits && are_rows_of(reach, space.columns);
  });
  return fits;
}

/// The longest rows that all walks pass through in one stride.
std::optional<std::int64_t> LoopSpaces::choose_columns(LoopSpace space, Members members) const {
  const auto fits = [&](std::int64_t columns) {
    space.columns = columns;
    return columns != 0 && rows_walk(space, members);
  };
  std::vector<std::int64_t> tried{space.reduced ? space.reduced->inner : space.elements};
  if (fits(tried[0])) return tried[0];
  std::vector<std::int64_t> candidates;
  for_each_reach(space, members, [&](std::int64_t reach) { candidates.push_back(reach); });
  for (const std::int64_t columns : candidates) {
    if (std::ranges::count(tried, columns) > 0) continue;
    if (fits(columns)) return columns;
    tried.push_back(columns);
  }
  return {};
}

bool LoopSpaces::passes_in_register(int member, int operand, const LoopSpace& space) const {
  if (is_column_reduction(graph_[source_of(graph_, operand)])) return false;
  if (graph_[member].op.is_view()) return false;  // it stands in memory, and so does its source
  if (!graph_[operand].op.is_view()) return true;
  return space.columns && !is_row_value(member, space) && elements_[source_of(graph_, operand)] == space.rows &&
         spreads_rows(walk_of(graph_, operand), space.rows, space.columns);
}

Shape LoopSpaces::shape(LoopSpace space, const std::vector<int>& members) const {
  if (space.elements == 0) return empty_space(space, graph_[members[0]]);
  if (!space.columns) {
    const auto columns = choose_columns(space, {members});
    space.columns = columns ? *columns : last_resort(space, members);
    if (space.columns == space.elements && !space.reduced) return {space.elements};
    space.rows = *dimension::divide(space.elements, space.columns);
  }
  return {space.rows, space.columns};
}

/// A lone view whose rows are not walked in one stride, as may be when dimensions are symbolic.
std::int64_t LoopSpaces::last_resort(const LoopSpace& space, const std::vector<int>& members) const {
  for (std::int64_t columns = graph_[members[0]].spec.shape.back();; columns = 1)
    if (columns != 0 &&
        rows_walk({.elements = space.elements, .columns = columns, .reduced = space.reduced}, {members}))
      return columns;
}

}  // namespace gradus
