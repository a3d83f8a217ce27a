/// Any text is a graph or an InvalidArgument; a graph passes the verifier, and its text gives the same graph again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include "gradus/base/error.h"
#include "gradus/graph/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gradus::Graph graph;
  try {
    graph = gradus::parse_graph(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const gradus::InvalidArgument&) { return 0; }
  gradus::verify(graph);
  if (gradus::parse_graph(gradus::to_text(graph)) != graph) std::abort();
  return 0;
}
