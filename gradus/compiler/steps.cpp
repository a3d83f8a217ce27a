/// The reads of steps, and their places: the rules that fusion, memory planning and code generation share.
#include "gradus/compiler/steps.h"
#include <algorithm>

namespace gradus {

Step::Kind kind_of(const Value& v) {
  return v.op.is_control() ? Step::Kind::control : v.op.is_library_call() ? Step::Kind::library : Step::Kind::loops;
}

Step Step::loops() const {
  if (kind == Kind::loops) return *this;
  if (kind != Kind::product) return {};
  Step loops{.space = space, .members = members, .outputs = outputs, .in_pieces = true};
  std::erase(loops.members, product);
  return loops;
}

int storage_of(const Graph& graph, int value) {
  while (graph[value].op.is_alias()) value = graph[value].in[0];
  return value;
}

std::int64_t row_elements(const Shape& source) {
  std::int64_t elements = 1;
  for (int i = 1; i < source.rank(); ++i) elements = dimension::multiply(elements, source[i]);
  return elements;
}

int source_of(const Graph& graph, int operand) {
  const Value& v = graph[operand];
  return storage_of(graph, v.op.is_view() ? v.in[0] : operand);
}

bool is_computed_where_read(const Graph& graph, int storage) {
  return graph[storage].is_constant || graph[storage].op.is_index();
}

std::vector<Read> reads_of(const Graph& graph, const Step& step) {
  std::vector<Read> reads;
  const auto add_stored = [&](Read read) {
    if (!std::binary_search(step.members.begin(), step.members.end(), read.storage)) reads.push_back(read);
  };
  const auto add = [&](int operand, bool loops) {
    if (loops && is_by_table(graph[operand])) {
      const int table = graph[operand].in[1];
      add_stored({table, storage_of(graph, table), true});
    }
    const int storage = loops ? source_of(graph, operand) : storage_of(graph, operand);
    if (loops && is_computed_where_read(graph, storage)) return;
    add_stored({operand, storage});
  };
  for (int member : step.members) {
    const Value& v = graph[member];
    const bool loops = step.is_in_loops(member);
    if (loops && v.op.is_view()) add(member, loops);  // a view that has to stand in memory reads its source
    else
      for (int operand : v.in) add(operand, loops);
  }
  return reads;
}

std::int64_t usual_elements(const Shape& shape) {
  constexpr std::int64_t usual_size = 256;
  Shape usual = shape;
  for (int i = 0; i < shape.rank(); ++i)
    if (dimension::is_symbolic(shape[i])) {
      const std::vector<std::int64_t> symbols(static_cast<std::size_t>(dimension::symbols_in(shape[i])), usual_size);
      usual.set(i, std::max<std::int64_t>(0, dimension::evaluate(shape[i], symbols)));
    }
  return usual.size();
}

std::int64_t usual_bytes(const Spec& spec) { return usual_elements(spec.shape) * size_of(spec.dtype); }

std::vector<int> waits_of(const Graph& graph, int operand) {
  std::vector<int> waits;
  for (int i = operand; graph[i].op.is_alias() || graph[i].op.is_view(); i = graph[i].in[0]) {
    if (is_by_table(graph[i])) std::ranges::copy(waits_of(graph, graph[i].in[1]), std::back_inserter(waits));
    if (graph[i].op.is_alias() && graph[i].in.size() == 2)
      if (const int awaited = source_of(graph, graph[i].in[1]); !is_computed_where_read(graph, awaited))
        waits.push_back(awaited);
  }
  return waits;
}

std::vector<int> waits_of(const Graph& graph, const Step& step) {
  std::vector<int> waits;
  for (int member : step.members)
    for (int operand : graph[member].in)
      for (int awaited : waits_of(graph, operand)) waits.push_back(awaited);
  return waits;
}

Dependencies::Dependencies(const Graph& graph, const std::vector<Step>& steps)
    : maker(graph, -1), readers(graph), is_awaited(graph), depth(steps.size()) {
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const int number = static_cast<int>(s);
    const auto after = [&](int value) {
      if (const int first = maker[value]; first >= 0) depth[s] = std::max(depth[s], depth[first] + 1);
    };
    for (const Read& read : reads_of(graph, steps[s])) {
      after(read.storage);
      std::vector<int>& of = readers[read.storage];
      if (of.empty() || of.back() != number) of.push_back(number);
    }
    for (int awaited : waits_of(graph, steps[s])) after(awaited), is_awaited[awaited] = true;
    for (int member : steps[s].members) maker[member] = number;
  }
}

}  // namespace gradus
