/// The search for values to compute again. Decision 26 has the reasons.
#include "gradus/compiler/recompute.h"
#include <algorithm>
#include <map>
#include <numeric>

namespace gradus {
namespace {

/// The search ends after this many steps in a row that did not lower the peak, and after this many in all.
constexpr int most_sideways = 24, most_steps = 2000;
/// The search also ends when the program has grown past this many values: 100 layers of 64 units, each computed again
/// from the input for each of them, took 70 s to find and would run 50 times as long.
int most_values(int before) { return 3 * before + 2000; }
/// The number of proposals at a peak that are planned.
constexpr std::size_t most_tried = 10;
/// The number of copies that are tried to be left out in the end.
constexpr int most_given_back = 48;

/// How good a plan is: less alive at its worst moment, else fewer such moments.
struct Peak {
  std::int64_t bytes = 0;
  int moments = 0;
  int first = 0;  // step
  auto key() const { return std::pair(bytes, moments); }
};

Peak peak_of(const PlannedMemory& memory) {
  Numbered<std::int64_t> change(memory.steps.size() + 1, 0);
  for (const PlannedMemory::Temporary& t : memory.temporaries) {
    const std::int64_t bytes = (t.bytes + 63) / 64 * 64;
    change[t.first] += bytes;
    change[t.last + 1] -= bytes;
  }
  Peak peak;
  std::int64_t alive = 0;
  for (std::size_t s = 0; s < memory.steps.size(); ++s) {
    alive += change[s];
    if (alive > peak.bytes) peak = {alive, 0, static_cast<int>(s)};
    peak.moments += alive == peak.bytes;
  }
  return peak;
}

class Search {
 public:
  Search(const Graph& graph, std::int64_t budget, std::int64_t known, const MemoryPlanner& planner,
         const TargetModel& target)
      : planner_(planner), target_(target), budget_(budget), smallest_(known) {
    CopiedGraph first{graph, PerValue<int>(graph), PerValue<int>(graph)};
    std::iota(first.origins.begin(), first.origins.end(), 0);
    now_ = arranged(planned(std::move(first)));
    smallest_ = std::min(smallest_, now_.memory.bytes);
    stored_ = PerValue<std::int64_t>(graph);
    for (const PlannedMemory::Temporary& t : now_.memory.temporaries)
      if (t.value >= 0) stored_[now_.origins[t.value]] = t.bytes;
  }

  Recomputed run() {
    int sideways = 0;
    Peak best = peak_of(now_.memory);
    for (int step = 0; now_.memory.bytes > budget_; ++step) {
      const bool has_grown = now_.graph.size() > most_values(static_cast<int>(stored_.size()));
      if (step == most_steps || sideways > most_sideways || has_grown || !advance()) fail();
      const Peak peak = peak_of(now_.memory);
      sideways = peak.key() < best.key() ? 0 : sideways + 1;
      if (peak.key() < best.key()) best = peak;
    }
    give_back();
    return {std::move(now_.graph), std::move(now_.memory), recomputed_bytes()};
  }

 private:
  struct Planned {
    CopiedGraph graph;
    PlannedMemory memory;
  };
  Planned planned(CopiedGraph next) const {
    PlannedMemory memory = planner_(next.graph, next.copies);
    return {std::move(next), std::move(memory)};
  }
  static Arranged arranged(Planned next) { return arrange(next.graph, std::move(next.memory)); }

  /// Splits one value that is kept past the peak; prefers the cheapest per byte among those that lower it.
  bool advance() {
    const Peak peak = peak_of(now_.memory);
    std::vector<LateCopy> proposals = proposals_at(peak.first);
    std::optional<Planned> aside;
    for (std::size_t k = 0; k < std::min(proposals.size(), most_tried); ++k) {
      Planned next = planned(with_late_copy(now_, proposals[k], groups_ + 1));
      const Peak reached = peak_of(next.memory);
      if (reached.key() < peak.key()) return accept(arranged(std::move(next)));
      if (!aside && reached.bytes <= peak.bytes && proposals[k].reader > peak.first) aside = std::move(next);
    }
    return aside && accept(arranged(std::move(*aside)));
  }
  bool accept(Arranged next) {
    groups_ = std::max(groups_, std::ranges::max(next.copies));
    now_ = std::move(next);
    smallest_ = std::min(smallest_, now_.memory.bytes);
    return true;
  }

  /// True if a copy that only this step reads may become a part of it, and need no memory.
  bool may_take_in(int step) const { return now_.memory.steps[step].kind == Step::Kind::loops; }

  /// Proposals for values alive at step `peak`, kept for later or for this step. The cheapest per byte come first.
  std::vector<LateCopy> proposals_at(int peak) const {
    std::map<std::pair<int, int>, std::vector<int>> kept;  // by the steps that make them and that read them next
    for (const PlannedMemory::Temporary& t : now_.memory.temporaries) {
      if (t.value < 0 || t.bytes == 0 || t.first > peak || t.last < peak || t.last == t.first) continue;
      const int next = *std::ranges::upper_bound(now_.readers[t.value], peak - (t.first < peak));
      const bool is_used_at_once = next == t.first + 1 && t.first == peak;
      if (next > peak ? !is_used_at_once : may_take_in(peak)) kept[{t.first, next}].push_back(t.value);
    }
    std::vector<LateCopy> proposals;
    const auto propose = [&](std::vector<int> values, Operands operands) {
      auto copy = propose_late_copy(now_, std::move(values), operands, peak);
      if (!copy) return;
      if (auto each = for_each_reader(now_, *copy)) proposals.push_back(std::move(*each));
      proposals.push_back(std::move(*copy));
    };
    for (const auto& [steps, values] : kept) {
      propose(values, Operands::again);
      propose(values, Operands::kept);
      if (values.size() == 1) continue;
      for (int value : values) propose({value}, Operands::again);
    }
    std::ranges::stable_sort(proposals, {}, [&](const LateCopy& copy) {
      return std::pair((copy.cost + target_.kernel_overhead_ns) / static_cast<double>(copy.freed), -copy.reader);
    });
    return proposals;
  }

  // ---------------------------------------------------------------- superfluous copies

  /// Where the budget allows it, a copy is replaced by the last equal value before it.
  void give_back() {
    for (int tries = 0, copy = now_.graph.size() - 1; copy >= 0 && tries < most_given_back; --copy) {
      if (copy >= now_.graph.size() || now_.copies[copy] == 0 || now_.temporary[copy] < 0) continue;
      int before = copy - 1;
      while (before >= 0 && now_.origins[before] != now_.origins[copy]) --before;
      if (before < 0) continue;
      ++tries;
      CopiedGraph next{now_.graph, now_.copies, now_.origins};
      for (Value& v : next.graph.values) std::ranges::replace(v.in, copy, before);
      Planned less = planned(without_unneeded(next));
      if (less.memory.bytes <= budget_) now_ = arranged(std::move(less));
    }
  }

  /// The bytes of copies of values that stood in memory before, and were not just moved.
  std::int64_t recomputed_bytes() const {
    PerValue<bool> seen(stored_.size());
    std::int64_t bytes = 0;
    for (int origin : now_.origins) {
      if (seen[origin]) bytes += stored_[origin];
      seen[origin] = true;
    }
    return bytes;
  }

  [[noreturn]] void fail() const { throw BudgetTooSmall(budget_, smallest_); }

  const MemoryPlanner& planner_;
  const TargetModel& target_;
  const std::int64_t budget_;
  std::int64_t smallest_;  // bytes that some plan so far needs
  Arranged now_;
  PerValue<std::int64_t> stored_;  // per origin: the bytes that it took before anything was copied
  int groups_ = 0;
};

}  // namespace

Recomputed recompute(const Graph& graph, std::int64_t max_bytes, std::int64_t known, const MemoryPlanner& planner,
                     const TargetModel& target) {
  return Search(graph, max_bytes, known, planner, target).run();
}

}  // namespace gradus
