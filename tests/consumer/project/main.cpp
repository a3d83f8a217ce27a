/// What a program outside the tree sees: the headers as installed, and a library in which nothing that registers
/// itself has been dropped: it parses a graph text (its argument) that names every op.
#include <gradus/graph/graph.h>
#include <fstream>
#include <iostream>
#include <iterator>

int main(int argc, char** argv) try {
  gradus::check(argc == 2, "usage: consumer GRAPH_TEXT");
  std::ifstream file(argv[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const gradus::Graph graph = gradus::parse_graph(text);
  gradus::check(!graph.outputs.empty() && gradus::to_text(graph) == text, "the text is that of its graph");
  std::cout << graph.size() << " values parsed\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
