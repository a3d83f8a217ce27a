/// The explanation of one variant: its segments as one graph and one list of kernels, in the order of the tree.
#include <algorithm>
#include <set>
#include "gradus/backend/backend.h"
#include "gradus/base/lines.h"
#include "gradus/base/numbered.h"
#include "gradus/function/variant.h"
#include "gradus/graph/rewriter.h"

namespace gradus {
namespace {

/// All segments of a variant in one graph, so that its text parses back: values handed on are read where they are made.
class Joiner {
 public:
  explicit Joiner(const Segment& root) { add(root, {}); }

  std::string text() const {
    const std::string all = to_text(graph_);
    std::string_view rest = all;
    TextStream out;
    for (int i = 0; !rest.empty(); ++i) {
      for (const auto& [first, title] : titles_)
        if (first == i) out << "# " << title << '\n';
      out << take_line(rest) << '\n';
    }
    return std::move(out).str();
  }

 private:
  using Outputs = std::vector<int>;

  /// `path`: the outputs of the segments before, in terms of the joined graph.
  void add(const Segment& segment, std::vector<Outputs> path) {
    const std::size_t title = titles_.size();
    titles_.emplace_back(graph_.size(), gradus::text("segment ", title));
    const Graph& own = segment.program->compiled().graph();
    GraphRewriter places(own, graph_);
    for (std::size_t k = 0; k < own.inputs.size(); ++k)
      if (const Source& source = segment.sources[k]; source.kind == Source::Kind::yield)
        places.set(own.inputs[k], path[at(source.segment)][at(source.index)]);
    for (int i = 0; i < own.size(); ++i) {
      if (places[i] >= 0) continue;
      const int place = places.keep(i);
      if (own[i].is_input()) graph_.inputs.push_back(place);
    }
    Outputs outputs = own.outputs;
    places.rename(outputs);
    if (segment.is_leaf()) {
      graph_.outputs.insert(graph_.outputs.end(), outputs.begin(), outputs.end());
      for (int d : own.dying) graph_.dying.push_back(places[d]);
      titles_[title].second += ": results";
      return;
    }
    const int predicate = outputs.front();
    graph_.outputs.push_back(predicate);
    path.push_back(std::move(outputs));
    titles_[title].second += gradus::text(": guard %", predicate);
    for (const bool taken : {false, true}) {
      const Segment* next = segment.ways[taken].segment.load(std::memory_order_acquire);
      titles_[title].second += gradus::text(taken ? "; true: " : "; false: ",
                                            next ? gradus::text("segment ", titles_.size()) : "not taken yet");
      if (next) add(*next, path);
    }
  }

  Graph graph_;
  std::vector<std::pair<int, std::string>> titles_;  // by the first value of the segment
};

std::size_t bytes_for(const Spec& spec, std::span<const std::int64_t> symbols) {
  return static_cast<std::size_t>(bytes_of({spec.dtype, spec.shape.evaluated(symbols)}));
}

/// The most that any path holds at once: values that segments hand on stay to the end of the call.
std::size_t peak_bytes(const Segment& segment, std::span<const std::int64_t> symbols) {
  const auto arena = static_cast<std::size_t>(segment.program->compiled().report(symbols).arena_bytes);
  std::size_t own = 0;
  for (const Segment::Result& result : segment.results)
    if (result.output >= 0) own += bytes_for(result.spec, symbols);
  if (segment.is_leaf()) return arena + own;
  for (const Ref<Node>& node : segment.yields) own += bytes_for(node->spec, symbols);
  std::size_t later = 0;
  for (const Segment::Way& way : segment.ways)
    if (const Segment* next = way.segment.load(std::memory_order_acquire))
      later = std::max(later, peak_bytes(*next, symbols));
  return own + std::max(arena, later);
}

/// The facts that passes knew about the devices of these kernels.
std::string target_of(const std::vector<Kernel>& kernels) {
  std::set<DeviceKind> kinds;
  for (const Kernel& kernel : kernels) kinds.insert(kernel.device.kind);
  std::string all;
  for (const DeviceKind kind : kinds) {
    const std::optional<TargetModel> target = backend_of(kind).target();
    all += all.empty() ? "" : "; ";
    all += target ? to_text(*target) : text(kind, ": a compiler of its own decides on kernels and memory");
  }
  return all;
}

}  // namespace

void describe(const Variant& variant, Explanation& e) {
  const std::vector<std::int64_t> symbols = match(variant.pattern, variant.example).value();
  std::vector<const VariableCell*> cells;
  std::vector<const Node*> captures;
  ExecutableReport program;
  for_each_segment(*variant.root, [&](const Segment& segment) {
    program.add(segment.program->compiled().report(symbols), program.stages());
    for (const UsedCell& used : segment.cells) {
      const auto cell = used.alive.lock();
      if (!cell || std::ranges::find(cells, cell.get()) != cells.end()) continue;
      cells.push_back(cell.get());
      e.variable_bytes += static_cast<std::size_t>(bytes_of(cell->spec));
    }
    for (const Tensor& capture : segment.captures) {
      if (std::ranges::find(captures, capture.node().get()) != captures.end()) continue;
      captures.push_back(capture.node().get());
      e.constant_bytes += capture.bytes();
    }
  });
  e.peak_bytes = peak_bytes(*variant.root, symbols);
  e.recomputed_bytes = static_cast<std::size_t>(program.recomputed_bytes);
  e.measured_seconds = program.measured_seconds;
  e.side_by_side_seconds = program.side_by_side_seconds;
  e.threads = program.threads;
  e.target = target_of(program.kernels);
  for (const std::string& note : program.notes) e.target += "; " + note;
  e.kernels = std::move(program.kernels);
  e.graph_text =
      variant.root->is_leaf() ? to_text(variant.root->program->compiled().graph()) : Joiner(*variant.root).text();
}

std::size_t footprint(const Variant& variant) {
  std::size_t bytes = variant.memory_bytes;
  for_each_segment(*variant.root, [&](const Segment& segment) { bytes += segment.program->footprint(); });
  return bytes;
}

}  // namespace gradus
