/// What random graphs have in common: a pool of values, to which ops of some of them are added.
#pragma once
#include <random>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"

namespace gradus::testing_loops {

class RandomOps {
 protected:
  explicit RandomOps(unsigned seed) : random_(seed) {}

  int below(std::size_t n) { return below(static_cast<int>(n)); }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  /// Rather a late value.
  int pick() {
    const int n = static_cast<int>(pool_.size());
    return pool_[static_cast<std::size_t>(std::max(below(n), below(n)))];
  }
  const Spec& spec(int value) const { return graph_[value].spec; }

  int add_input(Spec of) {
    const int value = graph_.add({.spec = std::move(of)});
    graph_.inputs.push_back(value);
    return value;
  }

  /// The op if it takes these operands; otherwise nothing happens.
  int apply(std::string_view name, std::string attributes, std::vector<int> in) {
    std::vector<Spec> specs;
    for (int i : in) specs.push_back(spec(i));
    try {
      AnyOp op = parse_op(name, attributes);
      const Spec result = op.infer(specs);
      const int value = graph_.add({.op = std::move(op), .in = std::move(in), .spec = result});
      pool_.push_back(value);
      return value;
    } catch (const Error&) { return -1; }
  }

  /// Any value like `a`, itself perhaps.
  int partner_of(int a) {
    std::vector<int> partners;
    for (int b : pool_)
      if (spec(b) == spec(a)) partners.push_back(b);
    return partners[static_cast<std::size_t>(below(partners.size()))];
  }
  /// One of two values, where some condition of their shape is true; false if there is none.
  bool choose(int a, int b) {
    for (int condition : pool_)
      if (spec(condition) == Spec{boolean, spec(a).shape}) {
        apply("where", "", {condition, a, b});
        return true;
      }
    return false;
  }

  void add_outputs() {
    for (int i = 0; i < 1 + below(3); ++i) graph_.outputs.push_back(pick());
    graph_.outputs.push_back(pool_.back());
  }

  std::mt19937 random_;
  Graph graph_;
  std::vector<int> pool_;
};

}  // namespace gradus::testing_loops
