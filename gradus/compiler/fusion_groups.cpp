/// Paths between groups: by landmarks where they are far apart, by a walk where they are near.
#include "gradus/compiler/fusion_groups.h"
#include <algorithm>
#include <bit>

namespace gradus {

FusionGroups::FusionGroups(const Graph& graph, const LoopSpaces& spaces)
    : graph_(graph),
      spaces_(spaces),
      group_of_(graph, -1),
      users_(graph),
      behind_(graph),
      ahead_(graph),
      latest_(graph, -1),
      level_(graph) {
  for (int i = 0; i < graph.size(); ++i)
    for (int operand : graph[i].in) users_[operand].push_back(i);
  find_landmarks();
}

void FusionGroups::visit(int i) {
  for (int operand : graph_[i].in) {
    latest_[i] = std::max(latest_[i], latest_[operand]);
    level_[i] = std::max(level_[i], level_[operand]);
  }
}

int FusionGroups::add(int i, Step::Kind kind, const LoopSpace& space) {
  latest_[i] = std::max(latest_[i], i);
  groups_.push_back({kind, {i}, space, behind_[i], ahead_[i]});
  return group_of_[i] = size() - 1;
}

bool FusionGroups::joins_siblings(int i) {
  latest_[i] = std::max(latest_[i], i);
  const auto [number, is_new] = controls_.find_or_add_result(graph_[i].op, graph_[i].in);
  if (is_new) {
    group_of_control_.push_back(static_cast<int>(groups_.size()));
    return false;
  }
  const int known = group_of_control_[number];
  FusionGroup& known_group = groups_[known];
  known_group.members.push_back(i);
  known_group.behind |= behind_[i];
  known_group.ahead |= ahead_[i];
  group_of_[i] = known;
  raise_latest(known);
  raise_level(known);
  return true;
}

/// Landmarks are evenly spaced steps of the longest chain of dependencies. Every value knows the landmarks that it
/// depends on and that depend on it, so that a path between far groups is seen at once; without them, the walk at every
/// merge of a forward and a backward value makes the time of a deep network's fusion quadratic.
void FusionGroups::find_landmarks() {
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
  for (int i = 0; i < graph_.size(); ++i) level_[i] = before[i] / steps_of_level;
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

/// True if one of the groups depends on the other by way of a landmark outside of both.
bool FusionGroups::has_landmark_between(int a, int b) const {
  const FusionGroup &first = groups_[a], &second = groups_[b];
  std::uint64_t between = (first.ahead & second.behind) | (second.ahead & first.behind);
  for (; between; between &= between - 1) {
    const int g = group_of_[landmarks_[static_cast<std::size_t>(std::countr_zero(between))]];
    if (g != a && g != b) return true;
  }
  return false;
}

/// A value that was just placed has no reader yet, and values that joined `a` before were checked then, in the space of
/// `a`.
bool FusionGroups::depends_only_through_registers(int a, int b, const LoopSpace& space) {
  if (has_landmark_between(a, b)) return false;
  const int first = std::min(groups_[a].members.front(), groups_[b].members.front());
  const int level = std::min(level_[groups_[a].members.front()], level_[groups_[b].members.front()]);
  ++generation_;
  visited_.resize(groups_.size() + graph_.values.size(), 0);
  std::vector<int>& pending = pending_;
  pending.clear();
  const bool is_new = groups_[b].members.size() == 1 && groups_[a].space == space;
  for (int g : {b, a}) {
    if (g == a && is_new) break;
    for (int member : groups_[g].members)
      for (int operand : graph_[member].in) {
        const int source = source_of(graph_, operand);
        const int other = group_of_[source];
        if (other != a && other != b) pending.push_back(operand);
        else if (!spaces_.passes_in_register(member, operand, space)) return false;
        else
          for (int awaited : waits_of(graph_, operand)) pending.push_back(awaited);
      }
  }
  while (!pending.empty()) {
    const int i = pending.back();
    pending.pop_back();
    // Operands come first and on no higher level, so it cannot depend on later or higher values.
    if (latest_[i] < first || level_[i] < level) continue;
    ++walked_;
    const int g = group_of_[i];
    if (g == a || g == b) return false;
    const int mark = g >= 0 ? g + graph_.size() : i;
    if (std::exchange(visited_[mark], generation_) == generation_) continue;
    if (g < 0) pending.insert(pending.end(), graph_[i].in.begin(), graph_[i].in.end());
    else  // a group runs as a whole
      for (int member : groups_[g].members)
        pending.insert(pending.end(), graph_[member].in.begin(), graph_[member].in.end());
  }
  return true;
}

int FusionGroups::merge(int from, int into, const LoopSpace& space) {
  if (groups_[from].members.size() > groups_[into].members.size()) std::swap(from, into);
  FusionGroup &source = groups_[from], &target = groups_[into];
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
  raise_level(into);
  return into;
}

/// Members of group `g` run together: a dependent of one of them runs after the latest of them all. The dependents'
/// bound is rounded up, so that it seldom rises.
void FusionGroups::raise_latest(int g) {
  int latest = -1;
  for (int i : groups_[g].members) latest = std::max(latest, latest_[i]);
  for (int i : groups_[g].members) latest_[i] = latest;
  const int grid = graph_.size() / 64 + 1, rounded = (latest / grid + 1) * grid;
  std::vector<int> pending = groups_[g].members;
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
      for (int member : groups_[other].members) {
        latest_[member] = rounded;
        pending.push_back(member);
      }
    }
  }
}

/// Raises the level, too, and those of all dependents of the group.
void FusionGroups::raise_level(int g) {
  int level = 0;
  for (int i : groups_[g].members) level = std::max(level, level_[i]);
  std::vector<int> pending;
  const auto raise = [&](int i) {
    if (level_[i] >= level) return;
    level_[i] = level;
    pending.push_back(i);
  };
  for (int i : groups_[g].members) raise(i);
  while (!pending.empty()) {
    const int i = pending.back();
    pending.pop_back();
    for (int reader : users_[i]) {
      const int other = group_of_[reader];
      if (other < 0) raise(reader);
      else if (level_[reader] < level)
        for (int member : groups_[other].members) raise(member);
    }
  }
}

}  // namespace gradus
