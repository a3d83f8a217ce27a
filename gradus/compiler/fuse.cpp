/// Fusion. Values are visited in order; each joins the groups of its producers when all of them can run in one loop
/// nest, rows x (phases over columns), and no outside value would have to run in their midst. Views, constants and
/// index formulas are read in place by their readers and belong to no group unless a reader needs them in memory.
#include <algorithm>
#include "gradus/compiler/fusion_groups.h"
#include "gradus/compiler/passes.h"

namespace gradus {
namespace {

class Fuser {
 public:
  Fuser(const Graph& graph, const PerValue<int>& copies, const TargetModel& target)
      : graph_(graph),
        copies_(copies),
        target_(target),
        spaces_(graph),
        groups_(graph, spaces_),
        materialized_(graph),
        read_later_(graph) {}

  std::vector<Step> run(bool merging) {
    find_materialized();
    for (int i = 0; i < graph_.size(); ++i) place(i, merging);
    return in_execution_order();
  }
  std::int64_t walked() const { return groups_.walked(); }

 private:
  /// A value that is read in place is stored only if a reader needs it in memory.
  void find_materialized() {
    for (int o : graph_.outputs) materialized_[storage_of(graph_, o)] = true;
    for (const Value& v : graph_.values)
      for (int operand : v.in)
        if (const int needed = needed_in_memory(v, operand); needed >= 0) materialized_[needed] = true;
  }

  /// The value that has to stand in memory because `v` reads `operand`; -1: none.
  int needed_in_memory(const Value& v, int operand) const {
    if (v.op.is_alias()) return -1;  // the alias's readers decide
    if (kind_of(v) != Step::Kind::loops || (is_by_table(v) && operand == v.in[1])) return storage_of(graph_, operand);
    const int source = v.op.is_view() ? storage_of(graph_, operand) : source_of(graph_, operand);
    return is_computed_where_read(graph_, source) ? -1 : source;
  }

  void place(int i, bool merging) {
    const Value& v = graph_[i];
    groups_.visit(i);
    if (v.is_input() || v.op.is_alias() || (is_read_in_place(v) && !materialized_[i])) return;
    const auto kind = kind_of(v);
    if (kind == Step::Kind::control && groups_.joins_siblings(i)) return;
    int mine = groups_.add(i, kind, kind == Step::Kind::loops ? spaces_.of(i) : LoopSpace{});
    if (!merging || !is_computed_in_loops(v) || groups_[mine].space.elements == 0) return;
    for (int operand : v.in) {
      const int other = groups_.of(source_of(graph_, operand));
      if (other < 0 || other == mine || groups_[other].kind != Step::Kind::loops || comes_early(other, i)) continue;
      if (const auto space = spaces_.joint(groups_[other].space, groups_[mine].space, operand);
          space && may_merge(other, mine, *space))
        mine = groups_.merge(other, mine, *space);
    }
  }

  /// True if value i is a copy for late readers, and `g` holds nothing that was copied with it.
  bool comes_early(int g, int i) const {
    if (copies_.empty() || copies_[i] == 0) return false;
    return std::ranges::none_of(groups_[g].members, [&](int member) { return copies_[member] == copies_[i]; });
  }

  bool may_merge(int a, int b, const LoopSpace& space) {
    const FusionGroup &first = groups_[a], &second = groups_[b];
    return first.members.size() + second.members.size() <= target_.most_fused &&
           spaces_.holds(space, {first.members, second.members}) && groups_.depends_only_through_registers(a, b, space);
  }

  // ---------------------------------------------------------------- steps

  Shape space_of_step(const FusionGroup& group) const {
    return group.kind == Step::Kind::loops ? spaces_.shape(group.space, group.members)
                                           : graph_[group.members[0]].spec.shape;
  }

  std::vector<Step> in_execution_order() {
    Numbered<Step> steps(at(groups_.size()));
    for (int g = 0; g < groups_.size(); ++g)
      if (const FusionGroup& group = groups_[g]; !group.members.empty())
        steps[g] = {group.kind, space_of_step(group), group.members, {}};
    collect_outputs(steps);
    std::vector<Step> order;
    Numbered<bool> done(steps.size());
    for (int o : graph_.outputs) visit(storage_of(graph_, o), steps, done, order);
    std::stable_partition(order.begin(), order.end(), [&](const Step& step) { return !only_makes_outputs(step); });
    return order;
  }

  void collect_outputs(Numbered<Step>& steps) {
    PerValue<bool> stored(graph_);
    for (int o : graph_.outputs) stored[storage_of(graph_, o)] = true;
    reads_.assign(steps.size(), {});
    for (std::size_t g = 0; g < steps.size(); ++g) {
      reads_[g] = reads_of(graph_, steps[g]);
      for (const Read& read : reads_[g]) stored[read.storage] = read_later_[read.storage] = true;
    }
    for (Step& step : steps)
      for (int i : step.members)
        if (stored[i]) step.outputs.push_back(i);
  }

  /// Such a step runs as late as possible: by then the inputs that its outputs may overwrite are read no more.
  bool only_makes_outputs(const Step& step) const {
    return std::none_of(step.outputs.begin(), step.outputs.end(), [&](int i) { return read_later_[i]; });
  }

  /// Depth first from the outputs keeps producers close to their readers. An explicit stack: graphs may be deep.
  void visit(int root, const Numbered<Step>& steps, Numbered<bool>& done, std::vector<Step>& order) {
    std::vector<std::pair<int, bool>> pending{{groups_.of(root), false}};
    while (!pending.empty()) {
      const auto [g, ready] = pending.back();
      pending.pop_back();
      if (g < 0) continue;
      if (ready) {
        if (!steps[g].outputs.empty()) order.push_back(steps[g]);  // else only a barrier named it
        continue;
      }
      if (done[g]) continue;
      done[g] = true;
      pending.push_back({g, true});
      const std::vector<Read>& reads = reads_[g];
      const auto before = [&](int value) {
        if (const int other = groups_.of(value); other >= 0 && !done[other]) pending.push_back({other, false});
      };
      for (auto read = reads.rbegin(); read != reads.rend(); ++read) before(read->storage);
      for (int awaited : waits_of(graph_, steps[g])) before(awaited);
    }
  }

  const Graph& graph_;
  const PerValue<int>& copies_;
  const TargetModel& target_;
  const LoopSpaces spaces_;
  FusionGroups groups_;
  PerValue<bool> materialized_, read_later_;
  Numbered<std::vector<Read>> reads_;  // per step
};

}  // namespace

std::vector<Step> fuse(const Graph& graph, bool merge, const PerValue<int>& copies, const TargetModel& target) {
  return Fuser(graph, copies, target).run(merge);
}

std::int64_t values_walked_by_fuse(const Graph& graph) {
  const PerValue<int> no_copies;
  const TargetModel target;
  Fuser fuser(graph, no_copies, target);
  fuser.run(true);
  return fuser.walked();
}

}  // namespace gradus
