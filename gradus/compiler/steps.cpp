/// What steps read, and where: the rules that fusion, memory planning and code generation share.
#include "gradus/compiler/steps.h"
#include <algorithm>

namespace gradus {

int storage_of(const Graph& graph, int value) {
  while (graph[value].op.is_alias()) value = graph[value].in[0];
  return value;
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
  const bool loops = step.kind == Step::Kind::loops;
  const auto add = [&](int operand) {
    const int storage = loops ? source_of(graph, operand) : storage_of(graph, operand);
    if (loops && is_computed_where_read(graph, storage)) return;
    if (!std::binary_search(step.members.begin(), step.members.end(), storage)) reads.push_back({operand, storage});
  };
  for (int member : step.members) {
    const Value& v = graph[member];
    if (loops && v.op.is_view()) add(member);  // a view that has to stand in memory reads what it views
    else
      for (int operand : v.in) add(operand);
  }
  return reads;
}

bool may_write_over(const Graph& graph, const Step& step, int output, int input) {
  const auto inside = [&](int i) { return std::binary_search(step.members.begin(), step.members.end(), i); };
  if (step.kind != Step::Kind::loops || graph[output].op.is_reduction()) return false;
  bool reduces = false, spreads = false;  // both: the columns are walked more than once
  for (int member : step.members) {
    reduces |= graph[member].op.is_reduction();
    for (int operand : graph[member].in) spreads |= graph[operand].op.is_view() && inside(source_of(graph, operand));
  }
  if (reduces && spreads) return false;
  for (const Read& read : reads_of(graph, step))
    if (read.storage == input && (read.operand != input || graph[output].op.is_view())) return false;
  return true;
}

}  // namespace gradus
