/// Walks and the shape of a loop nest.
#include "gradus/compiler/loops.h"
#include "gradus/base/rooms.h"
#include <algorithm>

namespace gradus {
namespace {

/// Appends an inner dimension, merged with the one before where one stride passes through both.
void append(std::vector<Stride>& strides, Stride s) {
  if (s.extent == 1) return;
  if (s.step == 0) s.backwards = false;
  if (!strides.empty()) {
    Stride& outer = strides.back();
    if (outer.backwards == s.backwards && outer.step == dimension::multiply(s.step, s.extent)) {
      outer = {dimension::multiply(outer.extent, s.extent), s.step, s.backwards};
      return;
    }
  }
  strides.push_back(s);
}

}  // namespace

bool Walk::is_uniform() const {
  return std::all_of(strides.begin(), strides.end(), [](const Stride& s) { return s.step == 0; });
}

bool Walk::is_dense() const {
  return offset == 0 && (strides.empty() || (strides.size() == 1 && strides[0].step == 1 && !strides[0].backwards));
}

Walk walk_of(const Graph& graph, int operand) {
  const Value& v = graph[operand];
  Walk walk{.source = source_of(graph, operand)};
  if (v.spec.shape.size() == 0) return walk;  // never walked
  if (!v.op.is_view()) {
    append(walk.strides, {v.spec.shape.size(), 1, false});
    return walk;
  }
  const Shape& shape = v.spec.shape;
  if (is_by_table(v)) {
    const std::int64_t row = row_elements(graph[v.in[0]].spec.shape);
    walk.table = storage_of(graph, v.in[1]);
    walk.strides = {{graph[v.in[1]].spec.shape.size(), row, false}, {row, 1, false}};
    return walk;
  }
  const View view = v.op->view(v.op.attributes(), graph[v.in[0]].spec.shape, shape);
  walk.offset = view.offset;
  for (int i = 0; i < shape.rank(); ++i)
    append(walk.strides, {shape[i], view.strides[i], ((view.backwards >> i) & 1) != 0});
  return walk;
}

bool are_rows_of(std::int64_t extent, std::int64_t columns) {
  return columns == 1 || extent == columns || dimension::divide(extent, columns).has_value();
}

std::optional<SplitWalk> split(const Walk& walk, std::int64_t columns) {
  if (columns == 1) return SplitWalk{walk.strides, {1, 0, false}};
  if (walk.strides.empty()) return SplitWalk{{}, {columns, 0, false}};
  Stride last = walk.strides.back();
  SplitWalk parts{{walk.strides.begin(), walk.strides.end() - 1}, {columns, last.step, last.backwards}};
  const auto rows = columns == last.extent ? 1 : dimension::divide(last.extent, columns);
  if (!rows) return {};
  if (*rows != 1) parts.rows.push_back({*rows, dimension::multiply(last.step, columns), last.backwards});
  return parts;
}

bool is_row_reduction(const Value& v) { return v.op.is_reduction() && v.op.axis() == -1; }
bool is_column_reduction(const Value& v) { return v.op.is_reduction() && v.op.axis() != -1; }

Reduced reduced_view(const Graph& graph, int reduction) {
  const Shape& shape = graph[graph[reduction].in[0]].spec.shape;
  const int axis = shape.rank() + graph[reduction].op.axis();
  Reduced view{.n = shape[axis]};
  for (int i = 0; i < axis; ++i) view.outer = dimension::multiply(view.outer, shape[i]);
  for (int i = axis + 1; i < shape.rank(); ++i) view.inner = dimension::multiply(view.inner, shape[i]);
  return view;
}

bool spreads_rows(const Walk& walk, std::int64_t rows, std::int64_t columns) {
  if (walk.offset != 0 || walk.table >= 0) return false;
  const auto parts = split(walk, columns);
  if (!parts || (columns != 1 && parts->column.step != 0)) return false;
  return rows == 1 || (parts->rows.size() == 1 && parts->rows[0] == Stride{rows, 1, false});
}

Loops::Loops(const Graph& graph, const Step& step) : graph_(graph), step_(step) {
  internal_check(step.kind == Step::Kind::loops && (step.space.rank() == 1 || step.space.rank() == 2),
                 "a step of loops runs over elements, or over rows and columns");
  flat_ = step.space.rank() == 1;
  columns_ = step.space.back();
  rows_ = flat_ ? 1 : step.space[0];
  elements_ = dimension::multiply(rows_, columns_);
  int last = 0;
  for (int member : step.members) {
    int phase = 0;
    for (int operand : graph[member].in)
      if (const int source = register_source(operand); source >= 0 && source != member)
        phase = std::max(phase, phase_[position(source)] + (is_row_reduction(graph[source]) ? 1 : 0));
    phase_.push_back(phase);
    last = std::max(last, phase);
    if (is_column_reduction(graph[member])) reduced_ = reduced_view(graph, member);
  }
  phases_ = last + 1;
}

std::size_t Loops::position(int member) const {
  return static_cast<std::size_t>(std::lower_bound(step_.members.begin(), step_.members.end(), member) -
                                  step_.members.begin());
}

bool Loops::is_inside(int value) const { return std::binary_search(step_.members.begin(), step_.members.end(), value); }
bool Loops::is_output(int member) const {
  return std::binary_search(step_.outputs.begin(), step_.outputs.end(), member);
}

bool Loops::is_row_value(int member) const {
  if (scalar() || is_row_reduction(graph_[member])) return true;
  return !flat_ && !is_column_reduction(graph_[member]) && graph_[member].spec.shape.size() != elements_;
}

int Loops::register_source(int operand) const {
  const int source = source_of(graph_, operand);
  return is_inside(source) ? source : -1;
}

/// Loops store at the end of an iteration, values per row at the end of a row; but a column is walked once a phase, and
/// a long row by several workers.
bool may_write_over(const Graph& graph, const Step& step, int output, int input) {
  const Value& written = graph[output];
  if (step.kind == Step::Kind::product) {  // other threads may still read the operands
    const auto is_input = [&](int operand) { return storage_of(graph, operand) == input; };
    return std::ranges::none_of(graph[step.product].in, is_input) && may_write_over(graph, step.loops(), output, input);
  }
  if (step.kind != Step::Kind::loops || written.op.is_reduction() || written.op.is_view()) return false;
  if (step.members.size() > 1) {  // one formula alone reads an element before it writes it, in whatever space
    const Loops loops(graph, step);
    if (loops.is_row_value(output) ? loops.may_be_blocked() : loops.phase(output) + 1 < loops.phases()) return false;
  }
  for (const Read& read : reads_of(graph, step))
    if (read.storage == input && (read.is_table || graph[read.operand].op.is_view() ||
                                  graph[read.operand].spec.shape.size() != written.spec.shape.size()))
      return false;
  return true;
}

}  // namespace gradus
