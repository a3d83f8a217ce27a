/// Dividing a traced path among segments.
#include "gradus/function/segment.h"
#include <algorithm>
#include <optional>
#include <unordered_set>
#include "gradus/compiler/recompute.h"
#include "gradus/graph/applications.h"
#include "gradus/graph/scope.h"

namespace gradus {
namespace {

constexpr std::int64_t large_capture_bytes = std::int64_t{1} << 20;

/// Reading it again costs nothing, so it is never handed from one segment to another.
bool is_free(const Node& node) { return node.op.is_view() || node.op.is_alias() || node.op.is_index(); }

/// Divides a trace into segments: the nodes that each computes, and the values that it hands on.
class Division {
 public:
  Division(std::uint32_t trace, std::span<const PathStep> known, HandOn hand_on_what)
      : trace_(trace), computes_again_(hand_on_what == HandOn::nothing) {
    for (const PathStep& step : known) {
      const int segment = static_cast<int>(yields_.size());
      hand_on(*step.segment->predicate.node(), segment, 0);
      yields_.emplace_back();
      for (const Ref<Node>& node : step.segment->yields) hand_on(*node, segment, next_output(segment, node));
    }
  }

  /// The next segment computes `roots`.
  void add(const std::vector<Ref<Node>>& roots) {
    const int segment = static_cast<int>(yields_.size());
    yields_.emplace_back();
    std::unordered_set<const Node*> seen;
    std::vector<Node*> stack;
    for (const Ref<Node>& root : roots) stack.push_back(root.get());
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (!seen.insert(node).second || !is_computed_in(*node, segment)) continue;
      for (const Ref<Node>& operand : node->inputs) stack.push_back(operand.get());
    }
  }
  void add_guard(const Tensor& predicate) {
    add({predicate.node()});
    hand_on(*predicate.node(), static_cast<int>(yields_.size()) - 1, 0);
  }

  const std::vector<Ref<Node>>& yields(std::size_t segment) const { return yields_[segment]; }
  /// Where a segment finds a value that an earlier one hands on; a capture if there is none.
  Source source_of(const Node& node, int segment) const {
    const auto found = handed_on_.find(&node);
    return found == handed_on_.end() || found->second.segment >= segment ? Source{} : found->second;
  }

 private:
  bool is_computed_in(Node& node, int segment) {
    if (node.trace != trace_ || node.is_leaf() || handed_on_.contains(&node)) return false;
    const auto [home, fresh] = home_.try_emplace(&node, home_of_siblings(node, segment));
    // A value handed on is one: values that differ from shard to shard are computed again.
    if (computes_again_ || is_free(node) || node.varies || home->second == segment) return true;
    const Ref<Node> again(&node);
    hand_on(node, home->second, next_output(home->second, again));
    return false;
  }
  /// Results of one op are computed together: by the first segment that needs one of them.
  int home_of_siblings(const Node& node, int segment) {
    if (!node.op.has_siblings()) return segment;
    std::vector<const Node*> operands;
    for (const Ref<Node>& operand : node.inputs) operands.push_back(operand.get());
    const auto [number, is_new] = applications_.find_or_add(node.op, operands);
    if (is_new) home_of_application_.push_back(segment);
    return home_of_application_[static_cast<std::size_t>(number)];
  }
  int next_output(int segment, const Ref<Node>& node) {
    auto& yields = yields_[static_cast<std::size_t>(segment)];
    yields.push_back(node);
    return static_cast<int>(yields.size());
  }
  void hand_on(const Node& node, int segment, int output) {
    handed_on_.try_emplace(&node, Source{Source::Kind::yield, output, segment});
  }

  const std::uint32_t trace_;
  const bool computes_again_;
  std::vector<std::vector<Ref<Node>>> yields_;
  std::unordered_map<const Node*, int> home_;  // the segment that computes it first; of new segments
  Applications<const Node*> applications_;
  std::vector<int> home_of_application_;  // as home_
  std::unordered_map<const Node*, Source> handed_on_;
};

/// The part of the trace that one segment refers to.
class SegmentBinder {
 public:
  SegmentBinder(const Trace& trace, const Division& division, int place, Segment& segment)
      : trace_(trace), division_(division), place_(place), segment_(segment) {}

  Graph bind(const std::vector<Ref<Node>>& roots) {
    Flattened flat =
        flatten(roots, [&](const Node& node) { return node.trace != trace_.memory().id() || is_handed_on(node); });
    for (const Ref<Node>& node : flat.inputs) segment_.sources.push_back(source_of(node));
    for (std::size_t k = 0; k < flat.inputs.size(); ++k)
      if (is_assigned(segment_.sources[k])) flat.graph.dying.push_back(flat.graph.inputs[k]);
    for (std::size_t k = 0; k < flat.inputs.size(); ++k) note_large(flat, k);
    return std::move(flat.graph);
  }

  std::size_t use(const Trace::Cell& cell) {
    for (std::size_t i = 0; i < segment_.cells.size(); ++i)
      if (segment_.cells[i].cell == cell.cell.get()) return i;
    segment_.cells.push_back({cell.cell.get(), cell.index, cell.cell, cell.was_abandoned, cell.cell->name,
                              cell.cell->mask_id.load(std::memory_order_relaxed)});
    return segment_.cells.size() - 1;
  }

 private:
  void note_large(const Flattened& flat, std::size_t k) {
    const Node& node = *flat.inputs[k];
    if (segment_.sources[k].kind != Source::Kind::capture || bytes_of(node.spec) <= large_capture_bytes) return;
    const auto reader = std::ranges::find_if(
        flat.graph.values, [&](const Value& v) { return std::ranges::find(v.in, flat.graph.inputs[k]) != v.in.end(); });
    const std::string where = reader == flat.graph.values.end() ? "its result"
                              : (reader->scope & ~gradient_scope) == 0
                                  ? std::string(reader->op->name)
                                  : text(reader->op->name, " in ", scope_path(reader->scope));
    segment_.large_captures.emplace_back(node.sequence,
                                         text(node.spec, " of ", bytes_of(node.spec), " bytes, read by ", where));
  }
  bool is_handed_on(const Node& node) const { return division_.source_of(node, place_).kind == Source::Kind::yield; }

  bool is_assigned(const Source& source) const {
    return source.kind == Source::Kind::cell && std::ranges::any_of(segment_.assignments, [&](const auto& a) {
             return a.cell == static_cast<std::size_t>(source.index);
           });
  }

  /// A cell is named by its place among those of the segment.
  Source source_of(const Ref<Node>& node) {
    Source source = trace_.memory().source_of(*node);
    if (source.kind == Source::Kind::capture) source = division_.source_of(*node, place_);
    if (source.kind == Source::Kind::cell) {
      const auto cell = std::ranges::find(trace_.cells(), source.index, [](const auto& c) { return c->index; });
      source.index = static_cast<int>(use(**cell));
    }
    if (source.kind == Source::Kind::capture) {
      source.index = static_cast<int>(segment_.captures.size());
      segment_.captures.emplace_back(node);
    }
    return source;
  }

  const Trace& trace_;
  const Division& division_;
  const int place_;
  Segment& segment_;
};

/// Results and assigned cells: the values that a leaf computes.
std::vector<Ref<Node>> add_effects(const Trace& trace, Called called, SegmentBinder& binder, Segment& leaf) {
  std::vector<Ref<Node>> roots;
  for (const Tensor& result : called.tensors) {
    leaf.results.push_back({});
    if (!result.defined()) continue;
    leaf.results.back() = {static_cast<int>(roots.size()), result.spec()};
    roots.push_back(result.node());
  }
  for (const auto& cell : trace.cells()) {
    if (!cell->assigned || cell->now.node() == cell->parameter.node()) continue;
    leaf.assignments.push_back({.cell = binder.use(*cell), .output = roots.size()});
    roots.push_back(cell->now.node());
  }
  std::ranges::sort(leaf.assignments, {}, [&](const auto& a) { return leaf.cells[a.cell].cell->id; });
  leaf.structure = std::move(called.structure);
  return roots;
}

std::vector<Trace::Bound> bounds_between(const Trace& trace, std::size_t begin, std::size_t end) {
  const auto at = [&](std::size_t i) { return trace.bounds().begin() + static_cast<std::ptrdiff_t>(i); };
  return {at(begin), at(end)};
}

}  // namespace

const UsedCell* Segment::find_changed() const {
  const auto changed = std::ranges::find_if(cells, &UsedCell::has_changed);
  return changed == cells.end() ? nullptr : &*changed;
}

std::vector<int> Segment::replaces(std::size_t graph_outputs) const {
  std::vector<int> all(graph_outputs, -1);
  for (const Assignment& a : assignments) {
    const auto read = std::ranges::find_if(sources, [&](const Source& source) {
      return source.kind == Source::Kind::cell && static_cast<std::size_t>(source.index) == a.cell;
    });
    all[a.output] = read == sources.end() ? -2 : static_cast<int>(read - sources.begin());
  }
  return all;
}

void Segment::tell_of_reading() const {
  for (const Source& source : sources)
    if (source.kind == Source::Kind::cell)
      ReadListener::tell_within(*cells[static_cast<std::size_t>(source.index)].cell);
}

void for_each_segment(const Segment& root, const std::function<void(const Segment&)>& visit) {
  std::vector<const Segment*> stack{&root};
  while (!stack.empty()) {
    const Segment* segment = stack.back();
    stack.pop_back();
    visit(*segment);
    for (const bool taken : {true, false})
      if (const Segment* next = segment->ways[taken].segment.load(std::memory_order_acquire)) stack.push_back(next);
  }
}

void note_fitting(Segment& root, const std::vector<bool>& ways, const std::vector<std::int64_t>& symbols) {
  Segment* segment = &root;
  segment->fitting.insert(symbols);
  for (const bool way : ways) {
    if (segment->is_leaf()) return;
    segment = segment->ways[way].segment.load(std::memory_order_acquire);
    if (!segment) return;
    segment->fitting.insert(symbols);
  }
}

Draft::Draft(const Trace& trace, Called called, std::span<const PathStep> known, HandOn hand_on) {
  auto leaf = std::make_unique<Segment>();  // its roots are needed before the segments before it can be divided
  Division division(trace.memory().id(), known, hand_on);
  SegmentBinder leaf_binder(trace, division, static_cast<int>(trace.guards().size()), *leaf);
  const std::vector<Ref<Node>> roots = add_effects(trace, std::move(called), leaf_binder, *leaf);
  for (std::size_t k = known.size(); k < trace.guards().size(); ++k) division.add_guard(trace.guards()[k].predicate);
  division.add(roots);
  std::size_t bounds = known.empty() ? 0 : trace.guards()[known.size() - 1].bounds;
  for (std::size_t k = known.size(); k < trace.guards().size(); ++k) {
    const Trace::Guard& guard = trace.guards()[k];
    Part& part = parts_.emplace_back(std::make_unique<Segment>(), Graph{}, guard.taken);
    part.segment->predicate = guard.predicate;
    part.segment->yields = division.yields(k);
    part.segment->bounds = bounds_between(trace, std::exchange(bounds, guard.bounds), guard.bounds);
    std::vector<Ref<Node>> outputs{guard.predicate.node()};
    outputs.insert(outputs.end(), part.segment->yields.begin(), part.segment->yields.end());
    part.graph = SegmentBinder(trace, division, static_cast<int>(k), *part.segment).bind(outputs);
  }
  leaf->bounds = bounds_between(trace, bounds, trace.bounds().size());
  Graph graph = leaf_binder.bind(roots);
  parts_.push_back({std::move(leaf), std::move(graph)});
  for (const auto& cell : trace.cells())
    cells_.push_back({cell->cell, cell->was_abandoned, trace.has_made(*cell->cell)});
}

/// Layers list their Variables without handles: the cells of a layer that is gone are held by the draft alone.
void Draft::check_cells() const {
  for (const Used& used : cells_) {
    const bool lost = used.cell.use_count() == 1 || (!used.was_abandoned && used.cell->abandoned.load());
    require(!lost, "variable ", used.cell->name, used.made_within ? " was made and" : " was",
            " destroyed while the function was traced, so nothing would be kept from call to call: what holds it, such "
            "as a model, a layer or an optimizer, was ",
            used.made_within ? "made or copied" : "replaced",
            " within; make it outside of the function, capture it by reference, as in [&], and pass it on by "
            "reference, as in const Sequential&");
  }
}

/// Copies that live on are refused: the trace would compute with the values of its own moment.
void Draft::check_copies() const {
  for (const Used& used : cells_)
    require(!used.made_within || !used.cell->is_copy, "variable ", used.cell->name,
            " was copied while the function was traced, and the copy lives on: it would keep the value of that moment "
            "in every call; copy the model that holds it outside of the function");
}

std::pair<std::unique_ptr<Segment>, Graph> Draft::take_leaf(const std::string& title, std::string_view what) && {
  check_cells();
  check_copies();
  require(parts_.size() == 1, title, ": ", what, ": a C++ branch reads the value of a Tensor, which is known at each ",
          "run alone: compute both ways and choose with where, or make it a cond or a while_loop");
  Part& part = parts_.front();
  for (const Tensor& capture : part.segment->captures) capture.observed();
  return {std::move(part.segment), std::move(part.graph)};
}

/// If several budgets are too small, the path needs the largest.
std::unique_ptr<Segment> Draft::compile(const CompileOptions& options) && {
  check_cells();
  check_copies();
  std::optional<BudgetTooSmall> too_small;
  std::unique_ptr<Segment> next;
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    Segment& segment = *part->segment;
    for (const Tensor& capture : segment.captures) capture.observed();
    try {
      CompileOptions own = options;
      own.replaces = segment.replaces(part->graph.outputs.size());
      segment.program = std::make_unique<TieredProgram>(std::move(part->graph), std::move(own));
    } catch (const BudgetTooSmall& error) {
      if (!too_small || error.smallest() > too_small->smallest()) too_small = error;
    }
    if (next) {
      Segment::Way& way = segment.ways[part->taken];
      way.segment.store(next.get(), std::memory_order_release);
      way.owned = std::move(next);
    }
    next = std::move(part->segment);
  }
  if (too_small) throw *too_small;
  return next;
}

}  // namespace gradus
