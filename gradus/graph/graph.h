/// Graph: a flat program in single-assignment form. The compiler's passes read and write it, compiled programs are
/// keyed by it, and it has a text form that is printed and parsed.
#pragma once
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A value of a graph: an input, a constant, or the result of an op.
struct Value {
  detail::AnyOp op;            // null: an input or a constant
  std::vector<int> in;         // operands: values before this one
  Spec spec;                   // dtype, shape, device
  bool is_constant = false;    // every element has the bits `constant`
  std::uint64_t constant = 0;  // bits of each element of a constant
  std::uint32_t scope = 0;     // for names in reports; not part of equality, since structure alone keys programs

  /// True for an input.
  bool is_input() const { return !op && !is_constant; }
  /// Compares all but the scope.
  bool operator==(const Value& other) const {
    return op == other.op && in == other.in && spec == other.spec && is_constant == other.is_constant &&
           constant == other.constant;
  }
};

/// A program: values in an order in which operands come first.
struct Graph {
  std::vector<Value> values;  // all of them
  std::vector<int> inputs;    // values that are inputs, in the order in which they are bound
  std::vector<int> outputs;   // values to yield; may repeat, may be inputs or constants
  std::vector<int> dying;     // inputs that are not needed afterwards: an output may take their memory
  bool operator==(const Graph&) const = default;

  /// Value i.
  const Value& operator[](int i) const { return values[static_cast<std::size_t>(i)]; }
  Value& operator[](int i) { return values[static_cast<std::size_t>(i)]; }
  /// The number of values.
  int size() const { return static_cast<int>(values.size()); }
  /// Appends a value and returns its number.
  int add(Value v) {
    values.push_back(std::move(v));
    return size() - 1;
  }
  /// One more than the highest symbol in any spec.
  int symbols() const;
};

/// A hash of the fields that operator== compares.
std::uint64_t hash_of(const Value& v, std::uint64_t seed = 0);
std::uint64_t hash_of(const Graph& graph);

/// The text form, a line for each value, such as
///
///   %2 = matmul{transpose_a=false; transpose_b=true} %0 %1 : f32[64,10]
std::string to_text(const Graph& graph);
/// The graph of a text form. InvalidArgument with the line if `text` is no graph; it throws nothing else.
Graph parse_graph(std::string_view text);

/// Throws InternalError unless operands come first, every op infers the spec that is written, and inputs and outputs
/// are what they have to be. parse_graph has checked what it returns.
void verify(const Graph& graph);

namespace detail::inline rooms {

/// A graph and the nodes that it was made of.
struct Flattened {
  Graph graph;
  std::vector<Ref<Node>> inputs;  // the nodes behind graph.inputs
};

/// The flat program that computes `roots`, its outputs. `is_input(node)` says where to stop; leaves are always inputs.
Flattened flatten(std::span<const Ref<Node>> roots, const std::function<bool(const Node&)>& is_input = {});

}  // namespace detail::inline rooms

}  // namespace gradus
