/// Types that programs have no need to name are called so that a user's own Node or Graph stays his own after `using
/// namespace gradus`. The library's sources and its tests call them by what they are: here those of graphs, in their
/// own headers the others.
#pragma once
#ifdef GRADUS_SOURCES
namespace gradus {

struct GraphNode;
using Node = GraphNode;
class NodeInputs;
using Inputs = NodeInputs;
struct GraphValue;
using Value = GraphValue;
struct OpGraph;
using Graph = OpGraph;
class GraphRegion;
using Region = GraphRegion;
struct CapturedRegion;
using Captured = CapturedRegion;
struct ViewRule;
using View = ViewRule;
class TensorBuffer;
using Buffer = TensorBuffer;

}  // namespace gradus
#endif
