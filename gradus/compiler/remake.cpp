/// Chooses values to store again, and builds the graph in which late readers read them. Decision 124 has the reasons.
#include "gradus/compiler/remake.h"
#include <algorithm>
#include <map>
#include <unordered_map>
#include "gradus/base/hash.h"
#include "gradus/base/rooms.h"
#include "gradus/compiler/late_copies.h"
#include "gradus/compiler/passes.h"

namespace gradus {
namespace {

/// This small a share of the remade bytes may stay in memory longer.
constexpr std::int64_t small_share = 64;
/// The most steps, along the longest chain, between the late reader and the kernel that stores for it.
constexpr int most_distance = 3;
constexpr int most_formulas = 16, most_remakes = 3;

/// The first value that is computed alike from the same values.
PerValue<int> find_equals(const Graph& graph) {
  PerValue<int> first(graph);
  std::unordered_multimap<std::uint64_t, int> seen;
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    first[i] = i;
    if (v.is_input() || v.is_constant) continue;
    std::uint64_t hash = v.op.hash();
    for (int operand : v.in) hash = mix(hash, static_cast<std::uint64_t>(first[operand]));
    const auto alike = [&](int other) {
      return graph[other].op == v.op && graph[other].spec == v.spec &&
             std::ranges::equal(
                 graph[other].in, v.in, {}, [&](int o) { return first[o]; }, [&](int o) { return first[o]; });
    };
    for (auto [it, last] = seen.equal_range(hash); it != last && first[i] == i; ++it)
      if (alike(it->second)) first[i] = it->second;
    if (first[i] == i) seen.emplace(hash, i);
  }
  return first;
}

/// A value, the step that stores it again, and its readers.
struct Remade {
  int value = -1, host = -1;
  std::vector<int> readers;   // steps
  std::vector<int> formulas;  // that the host has to compute besides, the value among them
  int before = -1;            // where in the graph they stand: at the first reader
};

class Chooser {
 public:
  Chooser(const Graph& graph, const std::vector<Step>& steps, const PerValue<int>& copies, const TargetModel& target)
      : graph_(graph),
        target_(target),
        steps_(steps),
        equals_(find_equals(graph)),
        needs_(graph, steps),
        stored_(graph),
        yielded_(graph) {
    for (int o : graph.outputs) yielded_[storage_of(graph, o)] = true;
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (int member : steps[s].members)
        if (copies[member] > 0) hosts_[equals_[member]].push_back(static_cast<int>(s));
    written_until_.assign(steps.size() + 1, 0);
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (int output : steps[s].outputs) {
        stored_[output] = true;
        written_until_[needs_.depth[s]] += bytes(output);
      }
    for (std::size_t d = 1; d < written_until_.size(); ++d) written_until_[d] += written_until_[d - 1];
  }

  std::vector<Remade> run() const {
    std::vector<Remade> all;
    if (hosts_.empty()) return all;
    for (int i = 0; i < graph_.size(); ++i)
      if (std::optional<Remade> one = look_for(i)) all.push_back(std::move(*one));
    return all;
  }
  /// The member of step `host` that is the same as `value`; -1: none.
  int member_like(int value, int host) const {
    const auto found = hosts_.find(equals_[value]);
    if (found == hosts_.end() || std::ranges::count(found->second, host) == 0) return -1;
    const std::vector<int>& members = steps_[at(host)].members;
    const auto member = std::ranges::find(members, equals_[value], [&](int m) { return equals_[m]; });
    return member == members.end() ? -1 : *member;
  }

 private:
  std::int64_t bytes(int value) const { return usual_bytes(graph_[value].spec); }

  /// The bytes written between two depths.
  std::int64_t written_between(int first, int last) const {
    return last > first ? written_until_[last - 1] - written_until_[first] : 0;
  }

  std::optional<Remade> look_for(int value) const {
    if (!stored_[value] || yielded_[value] || !graph_[value].op.is_elementwise()) return {};
    if (bytes(value) < target_.least_moved_bytes) return {};
    Remade remade{.value = value};
    remade.readers = late_readers(value);
    if (remade.readers.empty()) return {};
    for (int reader : remade.readers)
      for (int member : steps_[at(reader)].members)
        if (remade.before < 0 || member < remade.before) remade.before = member;
    const int wanted = needs_.depth[remade.readers.front()];
    for (const int host : hosts_near(value)) {
      const int distance = std::abs(needs_.depth[host] - wanted);
      const int best = remade.host < 0 ? most_distance + 1 : std::abs(needs_.depth[remade.host] - wanted);
      if (distance >= best) continue;
      if (std::optional<std::vector<int>> formulas = formulas_in(value, host, remade.before)) {
        remade.host = host;
        remade.formulas = std::move(*formulas);
      }
    }
    if (remade.host < 0) return {};
    return remade;
  }

  /// The readers that come after the longest time, if that is long enough and all of them are products or the like.
  std::vector<int> late_readers(int value) const {
    std::vector<int> readers = needs_.readers[value];
    std::ranges::stable_sort(readers, {}, [&](int s) { return needs_.depth[s]; });
    std::int64_t longest = target_.most_cached_bytes - 1;
    std::size_t first_late = readers.size();
    for (std::size_t k = 0; k < readers.size(); ++k) {
      const int before = k == 0 ? needs_.maker[value] : readers[k - 1];
      const std::int64_t written = written_between(needs_.depth[before], needs_.depth[readers[k]]);
      if (written > longest) longest = written, first_late = k;
    }
    readers.erase(readers.begin(), readers.begin() + static_cast<std::ptrdiff_t>(first_late));
    for (int reader : readers) {
      if (steps_[at(reader)].kind != Step::Kind::library) return {};
      for (int member : steps_[at(reader)].members)
        for (int operand : graph_[member].in)
          if (storage_of(graph_, operand) == value && waits_for_others(operand)) return {};
    }
    return readers;
  }
  bool waits_for_others(int operand) const {
    for (int i = operand; graph_[i].op.is_alias(); i = graph_[i].in[0])
      if (!is_plain_alias(graph_[i])) return true;
    return false;
  }

  /// Kernels that compute something again that `value` is made of.
  std::vector<int> hosts_near(int value) const {
    std::vector<int> pending{value}, seen, hosts;
    while (!pending.empty() && std::ssize(seen) < most_formulas) {
      const int i = pending.back();
      pending.pop_back();
      if (std::ranges::count(seen, i) > 0) continue;
      seen.push_back(i);
      if (const auto found = hosts_.find(equals_[i]); found != hosts_.end())
        for (int host : found->second)
          if (host != needs_.maker[value] && std::ranges::count(hosts, host) == 0) hosts.push_back(host);
      for (int operand : graph_[i].in)
        if (const int source = source_of(graph_, operand); is_of_same_kernel(source, value)) pending.push_back(source);
    }
    return hosts;
  }
  bool is_of_same_kernel(int i, int value) const {
    return graph_[i].op.is_elementwise() && needs_.maker[i] == needs_.maker[value];
  }

  /// The formulas that `host` has to compute for `value`; nothing if it lacks an operand.
  std::optional<std::vector<int>> formulas_in(int value, int host, int before) const {
    std::vector<int> pending{value}, formulas;
    bool is_tied = false;
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      if (std::ranges::count(formulas, i) > 0) continue;
      if (const int member = member_like(i, host); member >= 0) {
        if (member >= before) return {};
        is_tied = true;
        continue;
      }
      if (i != value && is_at_hand(i, value, host)) continue;
      if (!is_of_same_kernel(i, value) || std::ssize(formulas) == most_formulas) return {};
      formulas.push_back(i);
      for (int operand : graph_[i].in) pending.push_back(source_of(graph_, operand));
    }
    if (!is_tied) return {};
    std::ranges::sort(formulas);
    return formulas;
  }
  bool is_at_hand(int i, int value, int host) const {
    if (is_computed_where_read(graph_, i)) return true;
    if (!graph_[i].is_input() && !stored_[i]) return false;
    return bytes(i) * small_share <= bytes(value) || std::ranges::count(needs_.readers[i], host) > 0;
  }

  const Graph& graph_;
  const TargetModel& target_;
  const std::vector<Step>& steps_;
  const PerValue<int> equals_;
  const Dependencies needs_;
  PerValue<bool> stored_, yielded_;
  std::unordered_map<int, std::vector<int>> hosts_;  // by the values that they compute again
  Numbered<std::int64_t> written_until_;             // bytes, by depth
};

/// The graph with the formulas in front of the first late reader of each.
class RemakeInserter {
 public:
  RemakeInserter(const Graph& graph, const std::vector<Step>& steps, const PerValue<int>& copies,
                 const Chooser& chooser, const std::vector<Remade>& all)
      : graph_(graph), steps_(steps), copies_(copies), chooser_(chooser), moved_(graph) {
    for (const Remade& remade : all) {
      by_place_[remade.before].push_back(&remade);
      for (int reader : remade.readers)
        for (int member : steps[at(reader)].members) late_[member].push_back(&remade);
    }
  }

  CopiedGraph run() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (const auto here = by_place_.find(i); here != by_place_.end())
        for (const Remade* remade : here->second) insert(*remade);
      Value v = graph_[i];
      for (int& operand : v.in) operand = read_by(i, operand);
      moved_.places.set(i, moved_.add(std::move(v), copies_[i], no_origin));
    }
    moved_.places.finish();
    return without_unneeded(moved_.to);
  }

 private:
  static constexpr int no_origin = 0;  // never asked for

  int group_of(int host) const {
    int group = 0;
    for (int member : steps_[at(host)].members) group = std::max(group, copies_[member]);
    return group;
  }
  void insert(const Remade& remade) {
    for (int i : remade.formulas) {
      Value v = graph_[i];
      for (int& operand : v.in) operand = again(operand, remade.host);
      if (!made_.contains({remade.host, i}))
        made_[{remade.host, i}] = moved_.add(std::move(v), group_of(remade.host), no_origin);
    }
  }
  /// The value that the host, or a reader of a remade value, reads as i.
  int again(int i, int host) {
    if (const auto known = made_.find({host, i}); known != made_.end()) return known->second;
    if (const int member = chooser_.member_like(i, host); member >= 0) return moved_.places[member];
    if (!graph_[i].op.is_alias() && !graph_[i].op.is_view()) return moved_.places[i];
    Value v = graph_[i];
    bool differs = false;
    for (int& operand : v.in) {
      const int original = moved_.places[operand];
      operand = again(operand, host);
      differs = differs || operand != original;
    }
    if (!differs) return moved_.places[i];
    return made_[{host, i}] = moved_.add(std::move(v), group_of(host), no_origin);
  }
  int read_by(int reader, int operand) {
    if (const auto found = late_.find(reader); found != late_.end())
      for (const Remade* remade : found->second)
        if (storage_of(graph_, operand) == remade->value) return again(operand, remade->host);
    return moved_.places[operand];
  }

  const Graph& graph_;
  const std::vector<Step>& steps_;
  const PerValue<int>& copies_;
  const Chooser& chooser_;
  Moved moved_;
  std::map<int, std::vector<const Remade*>> by_place_, late_;  // by value
  std::map<std::pair<int, int>, int> made_;                    // by host and value: in the new graph
};

/// Groups whose copies stand in memory without having become part of a kernel that has other work.
std::vector<int> groups_left_alone(const CopiedGraph& given, std::span<const Step> steps) {
  std::vector<int> groups;
  for (const Step& step : steps) {
    const bool is_alone = std::ranges::all_of(step.members, [&](int i) { return given.copies[i] > 0; });
    if (is_alone) groups.push_back(given.copies[step.members.front()]);
  }
  return groups;
}

}  // namespace

std::vector<Step> remake(Graph& graph, std::vector<Step> steps, PerValue<int> copies, const TargetModel& target) {
  if (copies.empty()) return steps;
  const Chooser chooser(graph, steps, copies, target);
  std::vector<Remade> all = chooser.run();
  for (int attempt = 0; attempt < most_remakes && !all.empty(); ++attempt) {
    CopiedGraph copied = RemakeInserter(graph, steps, copies, chooser, all).run();
    std::vector<Step> next = fuse(copied.graph, true, copied.copies, target);
    const std::vector<int> failed = groups_left_alone(copied, next);
    if (failed.empty()) {
      graph = std::move(copied.graph);
      return next;
    }
    std::erase_if(all, [&](const Remade& remade) {
      return std::ranges::any_of(steps[at(remade.host)].members,
                                 [&](int i) { return std::ranges::count(failed, copies[i]) > 0 && copies[i] > 0; });
    });
  }
  return steps;
}

}  // namespace gradus
