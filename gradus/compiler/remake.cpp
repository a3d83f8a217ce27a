/// Values that are cheap to make again from what stands in memory anyway are not stored: each step that would read one
/// makes it for itself. What is walked through twice, as activations around the sums of a normalisation are, is then
/// read twice, but nothing is written in between.
#include "gradus/compiler/remake.h"
#include <algorithm>
#include "gradus/compiler/loops.h"

namespace gradus {
namespace {

/// Instructions for one element: within what a read of the element would cost.
constexpr std::size_t cheap = 20;
constexpr std::size_t most_members = 256;

class Remaker {
 public:
  Remaker(const Graph& graph, std::vector<Step> steps)
      : graph_(graph), steps_(std::move(steps)), kept_(at(graph.size())), readers_(at(graph.size())) {
    for (int output : graph.outputs) kept_[at(storage_of(graph, output))] = true;
    reads_.resize(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      look_at(s);
      for (int awaited : waits_of(graph, steps_[s])) kept_[at(awaited)] = true;
    }
  }

  std::vector<Step> run() {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (steps_[s].kind != Step::Kind::loops) continue;
      for (const int value : std::vector<int>(steps_[s].outputs)) consider(s, value);
    }
    std::erase_if(steps_, [](const Step& step) { return step.outputs.empty(); });
    return std::move(steps_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void look_at(std::size_t s) {
    for (const Read& read : reads_[s]) std::erase(readers_[at(read.storage)], s);
    reads_[s] = steps_[s].outputs.empty() ? std::vector<Read>() : reads_of(graph_, steps_[s]);
    for (const Read& read : reads_[s])
      if (auto& readers = readers_[at(read.storage)]; std::ranges::count(readers, s) == 0) readers.push_back(s);
  }

  /// What of a step makes a value of memory: formulas, and what they read.
  struct Recipe {
    std::vector<int> members;   // ascending
    std::vector<int> operands;  // read from memory, as they stand in the graph
    std::size_t instructions = 0;
  };

  void consider(std::size_t s, int value) {
    if (kept_[at(value)] || readers_[at(value)].empty()) return;
    const std::vector<std::size_t> readers = readers_[at(value)];
    if (!std::ranges::all_of(readers, [&](std::size_t r) { return reads_element_by_element(r, value); })) return;
    Recipe recipe;
    if (!add_to(recipe, steps_[s], value, value)) return;
    std::ranges::sort(recipe.members);
    std::int64_t gain = bytes_of_value(value);
    for (const std::size_t r : readers) {
      if (!may_make(steps_[r], recipe)) return;
      gain += bytes_of_value(value) - new_bytes(r, recipe);
    }
    if (gain <= 0) return;
    for (const std::size_t r : readers) {
      std::vector<int> members;
      std::ranges::set_union(steps_[r].members, recipe.members, std::back_inserter(members));
      steps_[r].members = std::move(members);
      look_at(r);
    }
    std::erase(steps_[s].outputs, value);
    keep_needed(steps_[s]);
    look_at(s);
  }

  bool reads_element_by_element(std::size_t reader, int value) const {
    const Step& step = steps_[reader];
    std::int64_t elements = 1;
    for (std::int64_t d : step.space) elements = dimension::multiply(elements, d);
    return step.kind == Step::Kind::loops && elements == graph_[value].spec.shape.size() &&
           std::ranges::none_of(reads_[reader], [&](const Read& read) {
             return read.storage == value && graph_[read.operand].op.is_view();
           });
  }

  /// Whether `i`, a member of `step`, follows from memory by formulas for the same elements as `value`.
  bool add_to(Recipe& recipe, const Step& step, int i, int value) const {
    if (std::ranges::count(recipe.members, i) > 0) return true;
    const Value& v = graph_[i];
    if (!v.op.is_elementwise() || v.op.may_fail() || v.spec.shape.size() != graph_[value].spec.shape.size())
      return false;
    std::vector<DType> types;
    for (int operand : v.in) types.push_back(graph_[operand].spec.dtype);
    recipe.instructions += v.op.formula(types).instructions.size() - v.in.size();
    if (recipe.instructions > cheap) return false;
    recipe.members.push_back(i);
    for (int operand : v.in) {
      if (!waits_of(graph_, operand).empty()) return false;
      const int source = source_of(graph_, operand);
      const bool made_here = std::ranges::binary_search(step.members, source);
      if (!made_here || std::ranges::binary_search(step.outputs, source)) recipe.operands.push_back(operand);
      else if (graph_[operand].op.is_view() || !add_to(recipe, step, source, value)) return false;
    }
    return true;
  }

  /// Whether the loops of `step` walk through what the recipe reads, each row in one stride.
  bool may_make(const Step& step, const Recipe& recipe) const {
    if (step.members.size() + recipe.members.size() > most_members) return false;
    return std::ranges::all_of(recipe.operands, [&](int operand) {
      if (graph_[source_of(graph_, operand)].is_constant) return true;
      const Walk walk = walk_of(graph_, operand);
      return walk.strides.empty() || are_rows_of(walk.strides.back().extent, step.space.back());
    });
  }

  /// Of what the recipe reads and step `reader` does not yet.
  std::int64_t new_bytes(std::size_t reader, const Recipe& recipe) const {
    std::vector<int> storages;
    for (int operand : recipe.operands) {
      const int storage = source_of(graph_, operand);
      if (is_computed_where_read(graph_, storage) || std::ranges::count(reads_[reader], storage, &Read::storage) > 0 ||
          std::ranges::count(storages, storage) > 0)
        continue;
      storages.push_back(storage);
    }
    std::int64_t bytes = 0;
    for (int storage : storages) bytes += bytes_of_value(storage);
    return bytes;
  }

  /// Of sizes that are not known a guess will do: all that matters is which value is the larger one.
  std::int64_t bytes_of_value(int value) const {
    const std::vector<std::int64_t> guess(at(graph_.symbols()), 64);
    return bytes_of({graph_[value].spec.dtype, graph_[value].spec.shape.evaluated(guess)});
  }

  /// Drops the members that no output of the step follows from.
  void keep_needed(Step& step) const {
    std::vector<int> needed, pending(step.outputs);
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      if (std::ranges::count(needed, i) > 0) continue;
      needed.push_back(i);
      for (int operand : graph_[i].in)
        if (const int source = source_of(graph_, operand); std::ranges::binary_search(step.members, source))
          pending.push_back(source);
    }
    std::ranges::sort(needed);
    step.members = std::move(needed);
  }

  const Graph& graph_;
  std::vector<Step> steps_;
  std::vector<bool> kept_;                         // per value: it has to stand in memory, or others wait for it
  std::vector<std::vector<std::size_t>> readers_;  // per value: steps
  std::vector<std::vector<Read>> reads_;           // per step
};

}  // namespace

std::vector<Step> remake(const Graph& graph, std::vector<Step> steps) { return Remaker(graph, std::move(steps)).run(); }

}  // namespace gradus
