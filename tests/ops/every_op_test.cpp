/// A graph text that names every op which can stand in a graph, made from the rows. The consumer tests parse it against
/// the library as installed, so that an op which a linker drops is noticed: EVERY_OP_TEXT names the file to write.
#include <gtest/gtest.h>
#include <cstdlib>
#include <fstream>
#include <set>
#include "gradus/graph/context.h"
#include "gradus/graph/graph.h"
#include "tests/ops/rows.h"

namespace gradus::rows::every_op_test {
namespace {

Graph graph_of(const Row& row) {
  const std::vector<Shape>& shapes = row.shapes.front();
  Tensors inputs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Operand& operand = row.operands[i];
    const Array lowest{shapes[i], std::vector<double>(static_cast<std::size_t>(shapes[i].size()), operand.low)};
    inputs.push_back(to_tensor(lowest, operand.dtype.value_or(row.dtypes.front())));
  }
  const RecordingScope keep;  // copies are made at once
  return flatten(std::vector<Ref<Node>>{row.apply(inputs).node()}).graph;
}

void append(Graph& graph, const Graph& more) {
  const int first = graph.size();
  for (Value value : more.values) {
    for (int& operand : value.in) operand += first;
    graph.add(std::move(value));
  }
  for (int i : more.inputs) graph.inputs.push_back(first + i);
  for (int i : more.outputs) graph.outputs.push_back(first + i);
}

TEST(EveryOp, StandsInOneTextThatParses) {
  Graph graph;
  for (const Row& row : all_rows()) {
    SCOPED_TRACE(row.name);
    append(graph, graph_of(row));
  }
  const std::string text = to_text(graph);
  EXPECT_EQ(parse_graph(text), graph);

  std::set<std::string_view> named;
  for (const Value& value : graph.values)
    if (value.op) named.insert(value.op->name);
  for (const auto& [name, type] : registered_ops())
    EXPECT_TRUE(type->composite || named.contains(name)) << name << " stands in the graph of no row";

  const char* file = std::getenv("EVERY_OP_TEXT");
  EXPECT_TRUE(!file || std::ofstream(file) << text) << file;
}

}  // namespace
}  // namespace gradus::rows::every_op_test
