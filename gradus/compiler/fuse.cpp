/// Fusion. Values are visited in order; each joins the groups of its producers when all of them can run in one loop
/// nest, rows x (phases over columns), and no outside value would have to run in their midst. Views, constants and
/// index formulas are read in place by whoever uses them and belong to no group unless somebody needs them in memory.
#include <algorithm>
#include <array>
#include <bit>
#include "gradus/compiler/loops.h"
#include "gradus/compiler/passes.h"
#include "gradus/graph/applications.h"

namespace gradus {
namespace {

bool is_computed_in_loops(const Value& v) { return v.op.is_elementwise() || v.op.is_reduction(); }
bool is_read_in_place(const Value& v) { return v.op.is_view() || v.op.is_index() || v.is_constant; }

/// The space of a loop nest while it grows: so many elements, in rows of `columns` if something needs rows.
struct Space {
  std::int64_t elements = 1;
  std::int64_t columns = 0;  // 0: any
  std::int64_t rows = 0;
  std::optional<Reduced> reduced;  // by the column reductions, of which there is one view at most
  bool operator==(const Space&) const = default;
};

struct Group {
  Step::Kind kind = Step::Kind::loops;
  std::vector<int> members;
  Space space;
  std::uint64_t behind = 0, ahead = 0;  // landmarks that members depend on, and that depend on members
};

constexpr std::size_t most_landmarks = 64;  // the bits of a word

class Fuser {
 public:
  Fuser(const Graph& graph, const PerValue<int>& copies, const TargetModel& target)
      : graph_(graph),
        copies_(copies),
        target_(target),
        group_of_(graph, -1),
        users_(graph),
        behind_(graph),
        ahead_(graph),
        latest_(graph, -1),
        elements_(graph),
        reaches_(graph),
        materialized_(graph),
        read_later_(graph) {
    for (int i = 0; i < graph.size(); ++i) {
      elements_[i] = graph[i].spec.shape.size();
      for (int operand : graph[i].in) users_[operand].push_back(i);
    }
  }

  std::vector<Step> run(bool merging) {
    find_materialized();
    find_landmarks();
    for (int i = 0; i < graph_.size(); ++i) place(i, merging);
    return in_execution_order();
  }

 private:
  Group& group(int g) { return groups_[g]; }

  /// What is read in place is stored only if somebody needs it in memory.
  void find_materialized() {
    for (int o : graph_.outputs) materialized_[storage_of(graph_, o)] = true;
    for (const Value& v : graph_.values)
      for (int operand : v.in)
        if (const int needed = needed_in_memory(v, operand); needed >= 0) materialized_[needed] = true;
  }

  /// The value that has to stand in memory because `v` reads `operand`; -1: none.
  int needed_in_memory(const Value& v, int operand) const {
    if (v.op.is_alias()) return -1;  // whoever reads the alias decides
    if (kind_of(v) != Step::Kind::loops || (is_by_table(v) && operand == v.in[1])) return storage_of(graph_, operand);
    const int source = v.op.is_view() ? storage_of(graph_, operand) : source_of(graph_, operand);
    return is_computed_where_read(graph_, source) ? -1 : source;
  }

  Space space_of(int i) const {
    const Value& v = graph_[i];
    Space space{.elements = elements_[i]};
    if (!v.op.is_reduction()) return space;
    const Shape& shape = graph_[v.in[0]].spec.shape;
    space.elements = elements_[v.in[0]];
    if (is_row_reduction(v)) {
      space.columns = shape.back();
      space.rows = elements_[i];
    } else {
      space.reduced = reduced_view(graph_, i);
    }
    return space;
  }

  void place(int i, bool merging) {
    const Value& v = graph_[i];
    for (int operand : v.in) latest_[i] = std::max(latest_[i], latest_[operand]);
    if (v.is_input() || v.op.is_alias() || (is_read_in_place(v) && !materialized_[i])) return;
    latest_[i] = std::max(latest_[i], i);
    const auto kind = kind_of(v);
    if (kind == Step::Kind::control && joins_siblings(i)) return;
    groups_.push_back({kind, {i}, kind == Step::Kind::loops ? space_of(i) : Space{}, behind_[i], ahead_[i]});
    int mine = group_of_[i] = static_cast<int>(groups_.size()) - 1;
    if (!merging || !is_computed_in_loops(v) || group(mine).space.elements == 0) return;
    for (int operand : v.in) {
      const int source = source_of(graph_, operand);
      const int other = group_of_[source];
      if (other < 0 || other == mine || group(other).kind != Step::Kind::loops || comes_early(other, i)) continue;
      if (const auto space = joint_space(other, mine, operand); space && may_merge(other, mine, *space))
        mine = merge(other, mine, *space);
    }
  }

  /// Whether value i is a copy for late readers, and `g` holds nothing that was copied with it.
  bool comes_early(int g, int i) const {
    if (copies_.empty() || copies_[i] == 0) return false;
    return std::ranges::none_of(groups_[g].members, [&](int member) { return copies_[member] == copies_[i]; });
  }

  /// Results of one branch or loop are one group.
  bool joins_siblings(int i) {
    const auto [number, is_new] = controls_.find_or_add_result(graph_[i].op, graph_[i].in);
    if (is_new) {
      group_of_control_.push_back(static_cast<int>(groups_.size()));
      return false;
    }
    const int known = group_of_control_[number];
    Group& known_group = groups_[known];
    known_group.members.push_back(i);
    known_group.behind |= behind_[i];
    known_group.ahead |= ahead_[i];
    group_of_[i] = known;
    raise_latest(known);
    return true;
  }

  // ---------------------------------------------------------------- one loop nest for two groups

  /// The space in which producer group `a` and consumer group `b`, which reads `operand`, could run together.
  std::optional<Space> joint_space(int a, int b, int operand) {
    const Space &first = group(a).space, &second = group(b).space;
    if (first.elements == 0) return {};
    if (first.elements == second.elements) return same_elements(first, second);
    if (const auto space = rows_of(first, second, operand)) return space;
    return rows_of(second, first, -1);
  }

  std::optional<Space> same_elements(const Space& first, const Space& second) const {
    if (first.columns && second.columns && first.columns != second.columns) return {};
    if (first.reduced && second.reduced && *first.reduced != *second.reduced) return {};
    Space space = first.columns ? first : second;
    space.reduced = first.reduced ? first.reduced : second.reduced;
    return space;
  }

  /// `small`, which has a value per row of `large`, joined with it. `operand` is what large reads of small, or -1.
  std::optional<Space> rows_of(const Space& small, const Space& large, int operand) const {
    if (small.columns || small.reduced) return {};
    Space space = large;
    if (!space.columns && operand >= 0) {
      const Walk walk = walk_of(graph_, operand);
      if (walk.strides.size() != 2) return {};  // one scalar for all elements would tie them to one row
      space.columns = walk.strides[1].extent;
      space.rows = small.elements;
      if (!spreads_rows(walk, space.rows, space.columns)) return {};
    }
    if (!space.columns || space.rows != small.elements) return {};
    return space;
  }

  bool may_merge(int a, int b, const Space& space) {
    if (group(a).members.size() + group(b).members.size() > target_.most_fused) return false;
    if (space.columns && !rows_walk(space, {a, b})) return false;
    if (!space.columns && !choose_columns(space, {a, b})) return false;
    if (space.reduced && space.columns > row_block) return false;
    return depends_only_through_registers(a, b, space);
  }

  bool is_row_value(int member, const Space& space) const {
    const Value& v = graph_[member];
    return is_row_reduction(v) || (!is_column_reduction(v) && elements_[member] != space.elements);
  }

  /// How far the innermost strides of what `member` walks through element by element reach: found once, since groups
  /// ask again and again.
  const std::vector<std::int64_t>& reaches_of(int member) const {
    std::optional<std::vector<std::int64_t>>& known = reaches_[member];
    if (known) return *known;
    std::vector<std::int64_t>& reaches = known.emplace();
    const Value& v = graph_[member];
    const auto add = [&](int operand) {
      const Walk walk = walk_of(graph_, operand);
      if (!walk.strides.empty() && std::ranges::count(reaches, walk.strides.back().extent) == 0)
        reaches.push_back(walk.strides.back().extent);
    };
    if (!is_computed_in_loops(v)) {
      if (!is_computed_where_read(graph_, source_of(graph_, member)) || v.op.is_view()) add(member);
    } else {
      for (int operand : v.in)
        if (!graph_[source_of(graph_, operand)].is_constant) add(operand);
    }
    return reaches;
  }
  /// Calls visit(reach) for the members of these groups that are computed for each element.
  template <class Visit> void for_each_reach(const Space& space, std::initializer_list<int> groups, Visit visit) const {
    for (int g : groups)
      for (int member : groups_[g].members)
        if (graph_[member].op.is_reduction() || !is_row_value(member, space))
          for (const std::int64_t reach : reaches_of(member)) visit(reach);
  }

  /// Whether every walk passes through a row in one stride.
  bool rows_walk(const Space& space, std::initializer_list<int> groups) const {
    if (space.reduced && !dimension::divide(space.reduced->inner, space.columns)) return false;
    bool fits = true;
    std::int64_t seen = space.columns;  // most are alike
    for_each_reach(space, groups, [&](std::int64_t reach) {
      if (reach == seen) return;
      seen = reach;
      fits = fits && are_rows_of(reach, space.columns);
    });
    return fits;
  }

  /// The longest rows that all walks pass through in one stride.
  std::optional<std::int64_t> choose_columns(Space space, std::initializer_list<int> groups) const {
    const auto fits = [&](std::int64_t columns) {
      space.columns = columns;
      return columns != 0 && rows_walk(space, groups);
    };
    std::vector<std::int64_t> tried{space.reduced ? space.reduced->inner : space.elements};
    if (fits(tried[0])) return tried[0];
    std::vector<std::int64_t> candidates;
    for_each_reach(space, groups, [&](std::int64_t reach) { candidates.push_back(reach); });
    for (const std::int64_t columns : candidates) {
      if (std::ranges::count(tried, columns) > 0) continue;
      if (fits(columns)) return columns;
      tried.push_back(columns);
    }
    return {};
  }

  /// Whether `operand` of `member`, whose source is in the same group, can come from a register.
  bool passes_in_register(int member, int operand, const Space& space) const {
    if (is_column_reduction(graph_[source_of(graph_, operand)])) return false;
    if (graph_[member].op.is_view()) return false;  // it stands in memory, and so does what it walks through
    if (!graph_[operand].op.is_view()) return true;
    return space.columns && !is_row_value(member, space) && elements_[source_of(graph_, operand)] == space.rows &&
           spreads_rows(walk_of(graph_, operand), space.rows, space.columns);
  }

  /// Landmarks are evenly spaced steps of the longest chain of dependencies. What depends on one and what it depends on
  /// is known of every value, so that a path between far groups is seen at once; without, asking for it at every merge
  /// of a forward and a backward value makes the time of a deep network's fusion quadratic.
  void find_landmarks() {
    PerValue<int> before(graph_), after(graph_);  // the longest chain there
    const auto takes_time = [&](int i) {
      const Value& v = graph_[i];
      return !v.is_input() && !v.op.is_alias() && !is_read_in_place(v);
    };
    for (int i = 0; i < graph_.size(); ++i)
      for (int operand : graph_[i].in) before[i] = std::max(before[i], before[operand] + (takes_time(operand) ? 1 : 0));
    int longest = 0;
    for (int i = graph_.size() - 1; i >= 0; --i) {
      for (int user : users_[i]) after[i] = std::max(after[i], after[user] + (takes_time(user) ? 1 : 0));
      longest = std::max(longest, before[i] + after[i]);
    }
    const int spacing = longest / static_cast<int>(most_landmarks) + 1;
    std::vector<bool> taken(most_landmarks);
    for (int i = 0; i < graph_.size(); ++i) {
      for (int operand : graph_[i].in) behind_[i] |= behind_[operand];
      const auto place = static_cast<std::size_t>(before[i] / spacing);
      if (!takes_time(i) || before[i] + after[i] < longest || before[i] % spacing != 0 || taken[place]) continue;
      taken[place] = true;
      landmarks_[place] = i;
      behind_[i] |= ahead_[i] = std::uint64_t{1} << place;
    }
    for (int i = graph_.size() - 1; i >= 0; --i)
      for (int user : users_[i]) ahead_[i] |= ahead_[user];
  }

  /// Whether one of the groups depends on the other by way of a landmark outside of both.
  bool has_landmark_between(int a, int b) const {
    const Group &first = groups_[a], &second = groups_[b];
    std::uint64_t between = (first.ahead & second.behind) | (second.ahead & first.behind);
    for (; between; between &= between - 1) {
      const int g = group_of_[landmarks_[static_cast<std::size_t>(std::countr_zero(between))]];
      if (g != a && g != b) return true;
    }
    return false;
  }

  /// No path leads from one member to another through memory. A value that was just placed has no reader yet, and what
  /// joined `a` before was looked at then, in the space of `a`.
  bool depends_only_through_registers(int a, int b, const Space& space) {
    if (has_landmark_between(a, b)) return false;
    const int first = std::min(group(a).members.front(), group(b).members.front());
    ++generation_;
    visited_.resize(groups_.size() + graph_.values.size(), 0);
    std::vector<int>& pending = pending_;
    pending.clear();
    const bool is_new = group(b).members.size() == 1 && group(a).space == space;
    for (int g : {b, a}) {
      if (g == a && is_new) break;
      for (int member : group(g).members)
        for (int operand : graph_[member].in) {
          const int source = source_of(graph_, operand);
          const int other = group_of_[source];
          if (other != a && other != b) pending.push_back(operand);
          else if (!passes_in_register(member, operand, space)) return false;
          else
            for (int awaited : waits_of(graph_, operand)) pending.push_back(awaited);
        }
    }
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      if (!reaches_back(i, first)) continue;
      const int g = group_of_[i];
      if (g == a || g == b) return false;
      const int mark = g >= 0 ? g + graph_.size() : i;
      if (std::exchange(visited_[mark], generation_) == generation_) continue;
      if (g < 0) pending.insert(pending.end(), graph_[i].in.begin(), graph_[i].in.end());
      else  // a group runs as a whole
        for (int member : group(g).members)
          pending.insert(pending.end(), graph_[member].in.begin(), graph_[member].in.end());
    }
    return true;
  }

  /// Operands come first, so what runs with nothing later than `first`, nor depends on what does, cannot depend on it.
  bool reaches_back(int i, int first) const { return latest_[i] >= first; }

  /// Gives the group that both are from now on: the larger one.
  int merge(int from, int into, const Space& space) {
    if (group(from).members.size() > group(into).members.size()) std::swap(from, into);
    Group &source = group(from), &target = group(into);
    for (int i : source.members) group_of_[i] = into;
    const std::ptrdiff_t before = std::ssize(target.members);
    target.members.insert(target.members.end(), source.members.begin(), source.members.end());
    const auto middle = target.members.begin() + before;
    if (*middle < *std::prev(middle)) std::inplace_merge(target.members.begin(), middle, target.members.end());
    target.space = space;
    target.behind |= source.behind;
    target.ahead |= source.ahead;
    source.members.clear();
    raise_latest(into);
    return into;
  }

  /// Members of group `g` run together: what depends on one of them runs after the latest of them all. For those others
  /// it is rounded up, so that it seldom rises.
  void raise_latest(int g) {
    int latest = -1;
    for (int i : group(g).members) latest = std::max(latest, latest_[i]);
    for (int i : group(g).members) latest_[i] = latest;
    const int grid = graph_.size() / 64 + 1, rounded = (latest / grid + 1) * grid;
    std::vector<int> pending = group(g).members;
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      for (int reader : users_[i]) {
        const int other = group_of_[reader];
        if (other == g || latest_[reader] >= latest) continue;
        if (other < 0) {  // read in place, or not placed yet
          if (latest_[reader] < 0) continue;
          latest_[reader] = rounded;
          pending.push_back(reader);
          continue;
        }
        for (int member : group(other).members) {
          latest_[member] = rounded;
          pending.push_back(member);
        }
      }
    }
  }

  // ---------------------------------------------------------------- steps

  Shape space_of_step(int g) const {
    Space space = groups_[g].space;
    if (groups_[g].kind != Step::Kind::loops) return graph_[groups_[g].members[0]].spec.shape;
    if (space.elements == 0) return empty_space(space, graph_[groups_[g].members[0]]);
    if (!space.columns) {
      const auto columns = choose_columns(space, {g});
      space.columns = columns ? *columns : last_resort(g);
      if (space.columns == space.elements && !space.reduced) return {space.elements};
      space.rows = *dimension::divide(space.elements, space.columns);
    }
    return {space.rows, space.columns};
  }

  static Shape empty_space(const Space& space, const Value& only) {
    if (space.reduced) return {dimension::multiply(space.reduced->outer, space.reduced->n), space.reduced->inner};
    return is_row_reduction(only) ? Shape{space.rows, space.columns} : Shape{0};
  }

  /// A lone view whose rows are not walked in one stride, as may be when dimensions are symbolic.
  std::int64_t last_resort(int g) const {
    const Group& alone = groups_[g];
    for (std::int64_t columns = graph_[alone.members[0]].spec.shape.back();; columns = 1)
      if (columns != 0 &&
          rows_walk({.elements = alone.space.elements, .columns = columns, .reduced = alone.space.reduced}, {g}))
        return columns;
  }

  std::vector<Step> in_execution_order() {
    Numbered<Step> steps(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!groups_[g].members.empty())
        steps[g] = {groups_[g].kind, space_of_step(static_cast<int>(g)), groups_[g].members, {}};
    collect_outputs(steps);
    std::vector<Step> order;
    Numbered<bool> done(groups_.size());
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

  /// Such a step runs as late as possible: by then nobody reads the inputs that its outputs may overwrite.
  bool only_makes_outputs(const Step& step) const {
    return std::none_of(step.outputs.begin(), step.outputs.end(), [&](int i) { return read_later_[i]; });
  }

  /// Depth first from the outputs keeps producers close to their readers. An explicit stack: graphs may be deep.
  void visit(int root, const Numbered<Step>& steps, Numbered<bool>& done, std::vector<Step>& order) {
    std::vector<std::pair<int, bool>> pending{{group_of_[root], false}};
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
        if (const int other = group_of_[value]; other >= 0 && !done[other]) pending.push_back({other, false});
      };
      for (auto read = reads.rbegin(); read != reads.rend(); ++read) before(read->storage);
      for (int awaited : waits_of(graph_, steps[g])) before(awaited);
    }
  }

  const Graph& graph_;
  const PerValue<int>& copies_;
  const TargetModel& target_;
  Applications<int> controls_;
  Numbered<int> group_of_control_;
  Numbered<Group> groups_;
  PerValue<int> group_of_;
  PerValue<std::vector<int>> users_;
  std::array<int, most_landmarks> landmarks_{};
  PerValue<std::uint64_t> behind_, ahead_;  // the landmarks that it depends on, and that depend on it
  PerValue<int> latest_;  // no later value is among what it depends on, nor runs together with any of that
  PerValue<std::int64_t> elements_;
  mutable PerValue<std::optional<std::vector<std::int64_t>>> reaches_;  // once asked for
  PerValue<bool> materialized_, read_later_;
  Numbered<std::vector<Read>> reads_;  // per step
  std::vector<int> pending_;           // kept from walk to walk
  Numbered<std::uint32_t> visited_;    // of values, then of groups
  std::uint32_t generation_ = 0;
};

}  // namespace

std::vector<Step> fuse(const Graph& graph, bool merge, const PerValue<int>& copies, const TargetModel& target) {
  return Fuser(graph, copies, target).run(merge);
}

}  // namespace gradus
