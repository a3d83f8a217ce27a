/// Chooses products and the formulas that join them, and the parts of a step that stay apart. Decisions 127 and 161
/// have the reasons.
#include <algorithm>
#include <map>
#include <ranges>
#include "gradus/compiler/loops.h"
#include "gradus/compiler/passes.h"
#include "gradus/compiler/turns.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"

namespace gradus {
namespace {

class Joiner {
 public:
  Joiner(const Graph& graph, const std::vector<Step>& steps, const TargetModel& target)
      : graph_(graph),
        steps_(steps),
        target_(target),
        needs_(graph, steps),
        kept_(needs_.is_awaited),
        joined_(steps.size()) {
    for (int o : graph.outputs) kept_[storage_of(graph, o)] = true;
  }

  std::vector<Step> run() {
    std::vector<std::vector<Step>> instead(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) instead[s] = join(static_cast<int>(s));
    std::vector<Step> all;
    for (std::size_t s = 0; s < steps_.size(); ++s)
      if (!joined_[s]) std::ranges::move(instead[s], std::back_inserter(all));
    return all;
  }

 private:
  /// A product that `step` reads, and the first of the formulas that do.
  struct Candidate {
    int product, reader;
  };

  /// A part that is joined with no product would only be a detour through memory: it is cut without that one.
  std::vector<Step> join(int s) {
    const Step& step = steps_[at(s)];
    for (std::vector<Candidate> candidates = candidates_of(s); !candidates.empty();) {
      std::vector<Step> parts = divide(step, candidates);
      const std::vector<int> products = join_each(s, parts, candidates);
      if (products.size() == candidates.size()) {
        for (int product : products) joined_[needs_.maker[product]] = true;
        return parts;
      }
      std::erase_if(candidates, [&](const Candidate& c) { return std::ranges::count(products, c.product) == 0; });
    }
    return {step};
  }

  /// The products that they are joined with.
  std::vector<int> join_each(int s, std::vector<Step>& parts, const std::vector<Candidate>& candidates) const {
    std::vector<int> products;
    int before = -1;  // the depth of the part before
    for (Step& part : parts) {
      const int product = last_product_of(part, candidates);
      const int depth = product < 0 ? before + 1 : depth_with(s, product, before);
      before = depth;
      if (product >= 0 && !takes_more_memory(product, depth)) {
        products.push_back(product);
        part.kind = Step::Kind::product, part.product = product;
        part.members.insert(std::ranges::upper_bound(part.members, product), product);
      }
    }
    return products;
  }

  // ---------------------------------------------------------------- joinable formulas

  std::vector<Candidate> candidates_of(int s) const {
    const Step& step = steps_[at(s)];
    std::vector<Candidate> candidates;
    if (step.kind != Step::Kind::loops) return candidates;
    // If formulas share a value of rows, as a bias, any part of these may be computed, but no value of a row alone.
    const auto computes = [&](int member) {
      const Value& v = graph_[member];
      return v.op.is_elementwise() && v.spec.shape.size() == step.space.size();
    };
    if (!std::ranges::all_of(step.members, computes)) return candidates;
    for (int member : step.members)
      for (int operand : graph_[member].in) {
        const int product = source_of(graph_, operand);
        if (!std::ranges::count(candidates, product, &Candidate::product) && may_join(step, s, product))
          candidates.push_back({product, member});
      }
    return candidates;
  }

  bool may_join(const Step& step, int s, int product) const {
    const int maker = needs_.maker[product];
    const Value& v = graph_[product];
    const Matmul* matmul = v.op.as<Matmul>();
    if (maker < 0 || maker == s || steps_[at(maker)].kind != Step::Kind::library || !matmul) return false;
    if (kept_[product] || needs_.readers[product].size() != 1) return false;
    // Long chains have no pieces: the product would stand in memory beside its formulas.
    if (v.spec.dtype != bf16 && usual_elements({steps_of(product)}) > target_.deepest_product) return false;
    if (!matmul->transpose_a && usual_bytes(v.spec) < target_.least_joined_bytes) return false;
    if (v.spec.shape.size() != step.space.size() || usual_elements(v.spec.shape) < target_.least_joined_elements)
      return false;
    // In turns a product has to stand in memory.
    if (is_in_turns(graph_, product, {}, target_)) return false;
    return std::ranges::all_of(reads_of(graph_, step), [&](const Read& read) {
      return read.storage != product || !graph_[read.operand].op.is_view();
    });
  }

  std::int64_t steps_of(int product) const {
    const Shape& a = graph_[graph_[product].in[0]].spec.shape;
    return graph_[product].op.as<Matmul>()->transpose_a ? a[-2] : a[-1];
  }

  /// Where a part runs that is joined with its product: when the later one of both can.
  int depth_with(int s, int product, int before) const {
    int depth = std::max(needs_.depth[needs_.maker[product]], before + 1);
    const auto after = [&](int value) {
      for (int reader : needs_.readers[value])
        if (reader != s) depth = std::max(depth, needs_.depth[reader] + 1);
    };
    for (const Read& read : reads_of(graph_, steps_[at(s)])) {
      if (read.storage == product) continue;
      if (const int maker = needs_.maker[read.storage]; maker >= 0 && !graph_[read.storage].op.as<Matmul>())
        depth = std::max(depth, needs_.depth[maker] + 1);
      if (std::ranges::count(graph_.dying, read.storage) > 0) after(read.storage);
    }
    return depth;
  }

  /// The product's operands live until there, in place of the product.
  bool takes_more_memory(int product, int depth) const {
    std::int64_t longer = 0;
    for (int operand : graph_[product].in) {
      const int storage = storage_of(graph_, operand);
      if (graph_[storage].is_input()) continue;
      int last = 0;
      for (int reader : needs_.readers[storage]) last = std::max(last, needs_.depth[reader]);
      if (last < depth) longer += usual_bytes(graph_[storage].spec);
    }
    return longer > usual_bytes(graph_[product].spec);
  }

  // ---------------------------------------------------------------- one part for each product

  /// Sums of several products, as gradients of micro-batches are: formulas that can be computed once the next product
  /// is complete form a part, which hands one value to a later one. Otherwise the step stays whole.
  std::vector<Step> divide(const Step& step, const std::vector<Candidate>& candidates) const {
    const std::size_t none = candidates.size();
    std::map<int, std::size_t> part_of;  // each operand comes before its reader
    for (int member : step.members) {
      std::size_t part = none;
      for (int operand : graph_[member].in) {
        const int source = source_of(graph_, operand);
        const auto product = std::ranges::find(candidates, source, &Candidate::product);
        std::size_t of_operand = static_cast<std::size_t>(product - candidates.begin());
        if (const auto known = part_of.find(source); known != part_of.end()) of_operand = known->second;
        if (of_operand != none) part = part == none ? of_operand : std::max(part, of_operand);
      }
      part_of[member] = part;
    }
    for (int member : std::views::reverse(step.members)) {  // one that needs none goes to its first reader
      if (part_of[member] == none) part_of[member] = none - 1;
      const std::size_t part = part_of[member];
      for (int operand : graph_[member].in)
        if (const auto found = part_of.find(source_of(graph_, operand)); found != part_of.end())
          if (found->second == none || found->second > part) found->second = part;
    }
    std::vector<Step> parts(candidates.size(), Step{.space = step.space});
    for (const auto& [member, part] : part_of) parts[part].members.push_back(member);
    std::erase_if(parts, [](const Step& part) { return part.members.empty(); });
    if (!set_outputs(step, parts)) return {step};
    return parts;
  }

  /// False if a part hands on more than one value.
  bool set_outputs(const Step& step, std::vector<Step>& parts) const {
    std::map<int, std::size_t> part_of;
    for (std::size_t k = 0; k < parts.size(); ++k)
      for (int member : parts[k].members) part_of[member] = k;
    std::vector<std::vector<int>> handed(parts.size());
    for (int member : step.members)
      for (int operand : graph_[member].in) {
        const auto found = part_of.find(source_of(graph_, operand));
        if (found == part_of.end() || found->second == part_of[member]) continue;
        std::vector<int>& of = handed[found->second];
        if (!std::ranges::count(of, found->first)) of.push_back(found->first);
      }
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (handed[k].size() > 1) return false;
      parts[k].outputs = handed[k];
      for (int member : parts[k].members)
        if (std::ranges::count(step.outputs, member) && !std::ranges::count(handed[k], member))
          parts[k].outputs.push_back(member);
      std::ranges::sort(parts[k].outputs);
    }
    return true;
  }

  /// The last of the products that only this part reads; -1: there is none.
  int last_product_of(const Step& part, const std::vector<Candidate>& candidates) const {
    const std::vector<Read> reads = reads_of(graph_, part);
    int last = -1;
    for (const Candidate& candidate : candidates) {
      const bool reads_it = std::ranges::count(reads, candidate.product, &Read::storage) > 0;
      const bool is_first = std::ranges::binary_search(part.members, candidate.reader);
      if (reads_it && is_first && is_read_only_in(part, candidate.product)) last = std::max(last, candidate.product);
    }
    return last;
  }
  bool is_read_only_in(const Step& part, int product) const {
    const Step& step = steps_[at(needs_.readers[product][0])];
    return std::ranges::all_of(step.members, [&](int member) {
      return std::ranges::binary_search(part.members, member) ||
             std::ranges::none_of(graph_[member].in, [&](int i) { return source_of(graph_, i) == product; });
    });
  }

  const Graph& graph_;
  const std::vector<Step>& steps_;
  const TargetModel& target_;
  const Dependencies needs_;
  PerValue<bool> kept_;    // of storages: an output, or something waits for it
  Numbered<bool> joined_;  // steps that are part of others now
};

}  // namespace

std::vector<Step> join_epilogues(const Graph& graph, const std::vector<Step>& steps, const TargetModel& target) {
  return Joiner(graph, steps, target).run();
}

}  // namespace gradus
