/// TraceMemory: the nodes of a trace, which outlive one run of it. A node is kept under its op, its inputs, and its
/// number among such applications in the run. So tracing the same C++ again meets the same nodes, and two tensors of
/// one run are never one. It is used by one thread at a time.
#pragma once
#include <deque>
#include <memory>
#include <unordered_map>
#include "gradus/base/rooms.h"
#include "gradus/function/variable_cell.h"

namespace gradus {

/// The value that an input of a traced program is bound to.
struct Source {
  enum class Kind { argument, cell, call_key, capture, yield } kind = Kind::capture;
  int index = 0;    // which one of its kind; of a yield: the output of
  int segment = 0;  // this segment
};

class TraceMemory {
 public:
  TraceMemory(std::span<const Spec> arguments, std::uint32_t id);
  TraceMemory(const TraceMemory&) = delete;

  std::uint32_t id() const { return id_; }
  /// Counting starts over.
  void start_run();
  /// Where the node of the next such application in this run belongs.
  Ref<Node>& place_of(const AnyOp& op, In inputs);
  /// Stands for a constant that the program makes: the same tensor in each run.
  Tensor literal(const Tensor& made);

  struct Parameter {
    int index;
    Tensor tensor;
  };
  /// The parameter for the value of a Variable.
  Parameter parameter_of(const VariableCell& cell);
  const Tensors& arguments() const { return arguments_; }
  /// The parameter that is bound to the number of the call; made when first asked for.
  const Tensor& call_key();

  /// The source of a node that is an input of this trace: a capture if it is none of the above.
  Source source_of(const Node& node) const;
  /// How often each node is an operand of nodes kept here.
  std::unordered_map<const Node*, std::uint32_t> uses() const;
  /// Predicates that depend on nothing but constants, and their values.
  std::unordered_map<const Node*, bool>& constants() { return constants_; }
  /// How many different applications of ops are kept.
  std::size_t size() const { return places_.size(); }
  /// An estimate.
  std::size_t bytes() const;

 private:
  struct Key {
    AnyOp op;
    std::vector<const Node*> inputs;  // kept alive by the node
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Places {
    std::vector<Ref<Node>> nodes;  // in the order of the run
    std::size_t met = 0;           // in run
    std::uint64_t run = 0;
  };
  struct Literal {
    Tensor tensor;
    std::uint64_t run;  // in which it was last met
  };
  Tensor add_source(const Spec& spec, Source source);

  const std::uint32_t id_;
  std::uint64_t run_ = 0;
  std::unordered_map<Key, Places, Hash> places_;
  std::unordered_multimap<std::uint64_t, Literal> literals_;  // by hash of spec and bytes
  Tensors arguments_;
  std::unordered_map<std::uint64_t, Parameter> cells_;  // by the id of the cell
  Tensor call_key_;
  std::unordered_map<const Node*, Source> sources_;
  std::unordered_map<const Node*, bool> constants_;
};

}  // namespace gradus
