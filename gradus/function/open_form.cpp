/// Spelling a form, opening it, and which tier serves it. Decision 191 has the reasons.
#include "gradus/function/open_form.h"
#include <algorithm>
#include "gradus/backend/tiers.h"
#include "gradus/graph/extents.h"
#include "gradus/tensor/out_of_memory.h"

namespace gradus {
namespace {

constexpr std::size_t most_examples = 8;
/// A graph that shows that more numbers vary opens the form again.
constexpr int most_openings = 6;

/// Elements that are not there leave no trace of how they would be walked.
bool is_empty_somewhere(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return v.spec.shape.size() == 0; });
}

/// `graph` with `dimensions` in place of its numbers; nothing if its ops do not take them.
std::optional<Graph> with_numbers(const Graph& graph, std::span<const std::int64_t> dimensions) {
  Graph open = graph;
  std::vector<std::int64_t> own;
  const auto next = [&](std::size_t count) {
    const auto taken = dimensions.first(count);
    dimensions = dimensions.subspan(count);
    return taken;
  };
  try {
    for (Value& v : open.values) {
      if (!v.op) {
        v.spec.shape = Shape(next(static_cast<std::size_t>(v.spec.shape.rank())));
        continue;
      }
      own.clear();
      if (Extents::add(v.op, own)) v.op = Extents::replaced(v.op, next(own.size()));
      std::vector<Spec> specs;
      for (const int operand : v.in) specs.push_back(open[operand].spec);
      v.spec = v.op.infer(specs);
    }
  } catch (const Error&) { return {}; }
  return open;
}

}  // namespace

/// Extents are set to 0 to compare the rest of an op.
Spelling::Spelling(DeviceKind kind, const Graph& graph) {
  form.push_back(static_cast<std::uint64_t>(kind));
  form.push_back(graph.values.size());
  for (const Value& v : graph.values) {
    const std::size_t before = numbers.size();
    if (!v.op) {
      for (const std::int64_t d : v.spec.shape) numbers.push_back(d);
      form.push_back(static_cast<std::uint64_t>(v.spec.dtype));
    } else if (Extents::add(v.op, numbers)) {
      const std::vector<std::int64_t> zeros(numbers.size() - before);
      ops.push_back(Extents::replaced(v.op, zeros));
      form.push_back(reinterpret_cast<std::uintptr_t>(ops.back().record()));
    } else {
      ops.push_back(v.op);
      form.push_back(reinterpret_cast<std::uintptr_t>(v.op.record()));
    }
    form.push_back(static_cast<std::uint64_t>(numbers.size() - before) << 32 | v.in.size());
    for (const int operand : v.in) form.push_back(static_cast<std::uint64_t>(operand));
  }
  for (const auto* list : {&graph.inputs, &graph.outputs, &graph.dying}) {
    form.push_back(list->size());
    for (const int value : *list) form.push_back(static_cast<std::uint64_t>(value));
  }
}

std::optional<ProgramForSizes> OpenForm::find(const Graph& graph, const std::vector<std::int64_t>& numbers,
                                              bool comes_back) {
  const std::lock_guard lock(guard_);
  if (is_closed_ || is_empty_somewhere(graph)) return {};
  std::optional<std::vector<std::int64_t>> symbols;
  if (graph_.size() > 0) symbols = pattern_.match(numbers);
  if (!symbols) {
    if (!add_example(graph, numbers)) return {};
    if (!open(graph, numbers)) {
      is_closed_ = true;
      examples_ = {};
      return {};
    }
    symbols = pattern_.match(numbers);
  }
  if (!gives_outputs_of(graph, *symbols)) return {};
  ++sights_;
  try {
    return program(std::move(*symbols), comes_back);
  } catch (const OutOfMemory&) { throw; } catch (const std::exception&) {  // some kernels want to know sizes
    is_closed_ = true;
    return {};
  }
}

/// True if there are enough examples now.
bool OpenForm::add_example(const Graph& graph, const std::vector<std::int64_t>& numbers) {
  if (std::ranges::find(examples_, numbers) != examples_.end()) return false;
  if (examples_.size() == most_examples) examples_.erase(examples_.begin() + 1);
  examples_.push_back(numbers);
  return examples_.size() >= graphs_before_opening(graph);
}

bool OpenForm::open(const Graph& graph, const std::vector<std::int64_t>& numbers) {
  if (++openings_ > most_openings) return false;
  const auto pattern = SizePattern::fit(examples_);
  if (!pattern) return false;
  auto open = with_numbers(graph, pattern->dimensions());
  if (!open) return false;
  pattern_ = *pattern;
  graph_ = std::move(*open);
  interpreted_ = compiled_ = nullptr;
  sights_ = 0;
  const std::vector<std::int64_t> symbols = pattern_.match(numbers).value();
  patience_ = runs_of_open_form(graph_, symbols);
  return gives_outputs_of(graph, symbols);
}

bool OpenForm::gives_outputs_of(const Graph& graph, std::span<const std::int64_t> symbols) const {
  return std::ranges::all_of(graph.outputs, [&](int output) {
    const Spec &open = graph_[output].spec, &wanted = graph[output].spec;
    return open.dtype == wanted.dtype && open.shape.evaluated(symbols) == wanted.shape;
  });
}

ProgramForSizes OpenForm::program(std::vector<std::int64_t> symbols, bool comes_back) {
  if (compiled_) return {compiled_, std::move(symbols), true};
  if (comes_back || sights_ > patience_ || !is_interpreted_sooner(graph_, symbols)) {
    compiled_ = backend_.compile(graph_);
    interpreted_ = nullptr;
    return {compiled_, std::move(symbols), true, true};
  }
  if (!interpreted_) interpreted_ = backend_.compile(graph_, {.tier = Tier::interpreted});
  return {interpreted_, std::move(symbols)};
}

std::size_t OpenForm::footprint() const {
  const std::lock_guard lock(guard_);
  std::size_t bytes = sizeof *this + ops_.size() * sizeof(AnyOp) + graph_.values.size() * (sizeof(Value) + 16);
  for (const auto& example : examples_) bytes += example.size() * sizeof(std::int64_t);
  for (const auto& program : {interpreted_, compiled_})
    if (program) bytes += program->footprint();
  return bytes;
}

}  // namespace gradus
