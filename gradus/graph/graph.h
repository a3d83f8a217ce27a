/// Graph: a flat program in single-assignment form. What the compiler passes read and write, what keys compiled
/// programs, and what the text form prints and parses.
#pragma once
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

struct Value {
  AnyOp op;             // null: an input or a constant
  std::vector<int> in;  // values before this one
  Spec spec;
  bool is_constant = false;  // every element has the bits `constant`
  std::uint64_t constant = 0;
  std::uint32_t scope = 0;  // not part of equality: structure alone keys programs

  bool is_input() const { return !op && !is_constant; }
  bool operator==(const Value& other) const {
    return op == other.op && in == other.in && spec == other.spec && is_constant == other.is_constant &&
           constant == other.constant;
  }
};

struct Graph {
  std::vector<Value> values;
  std::vector<int> inputs;   // values that are inputs, in the order in which they are bound
  std::vector<int> outputs;  // values to yield; may repeat, may be inputs or constants
  std::vector<int> dying;    // inputs that nobody needs afterwards: an output may take their memory
  bool operator==(const Graph&) const = default;

  const Value& operator[](int i) const { return values[static_cast<std::size_t>(i)]; }
  Value& operator[](int i) { return values[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(values.size()); }
  int add(Value v) {
    values.push_back(std::move(v));
    return size() - 1;
  }
  /// One more than the highest symbol in any spec.
  int symbols() const;
};

std::uint64_t hash_of(const Value& v, std::uint64_t seed = 0);
std::uint64_t hash_of(const Graph& graph);

/// %2 = matmul{transpose_a=false; transpose_b=true} %0 %1 : f32[64,10]
std::string to_text(const Graph& graph);
/// InvalidArgument with the line if `text` is no graph; never anything else.
Graph parse_graph(std::string_view text);

/// Throws InternalError unless operands come first, every op infers the spec that is written, and inputs and outputs
/// are what they have to be. parse_graph has checked what it returns.
void verify(const Graph& graph);

/// A graph and the nodes that it was made of.
struct Flattened {
  Graph graph;
  std::vector<Ref<Node>> inputs;  // the nodes behind graph.inputs
};

/// The flat program that computes `roots` (its outputs). `is_input(node)` says where to stop; leaves always are inputs.
Flattened flatten(std::span<const Ref<Node>> roots, const std::function<bool(const Node&)>& is_input = {});

}  // namespace gradus
