/// Arranging, proposing and inserting copies.
#include "gradus/compiler/late_copies.h"
#include "gradus/base/rooms.h"
#include <algorithm>
#include <map>
#include <set>

namespace gradus {
namespace {

/// Past this a chain costs more than a user would think of it.
constexpr int longest_chain = 2000;
/// An operand that is smaller by this factor is rather kept than computed again.
constexpr std::int64_t small_copy_factor = 4;

/// Notes the places of values.
void find_places(Arranged& now) {
  now.step = now.temporary = PerValue<int>(now.graph, -1);
  now.yielded = PerValue<bool>(now.graph);
  now.readers = PerValue<std::vector<int>>(now.graph);
  for (std::size_t s = 0; s < now.memory.steps.size(); ++s) {
    for (int member : now.memory.steps[s].members) now.step[member] = static_cast<int>(s);
    for (const Read& read : reads_of(now.graph, now.memory.steps[s]))
      if (auto& readers = now.readers[read.storage]; readers.empty() || readers.back() != static_cast<int>(s))
        readers.push_back(static_cast<int>(s));
  }
  for (std::size_t t = 0; t < now.memory.temporaries.size(); ++t)
    if (now.memory.temporaries[t].value >= 0) now.temporary[now.memory.temporaries[t].value] = static_cast<int>(t);
  for (int o : now.graph.outputs) now.yielded[storage_of(now.graph, o)] = true;
}

class Arranger {
 public:
  explicit Arranger(const CopiedGraph& given) : given_(given), graph_(given.graph), moved_(given.graph) {}

  Arranged run(PlannedMemory memory) {
    for (int i : graph_.inputs) place(i);
    for (const Step& step : memory.steps)
      for (int member : step.members) place(member);
    for (int o : graph_.outputs) place(o);
    moved_.places.finish();
    for (Step& step : memory.steps) {
      for (auto* list : {&step.members, &step.outputs}) {
        moved_.places.rename(*list);
        std::ranges::sort(*list);
      }
    }
    for (PlannedMemory::Temporary& t : memory.temporaries)
      if (t.value >= 0) t.value = moved_.places[t.value];
    Arranged arranged{.graph = std::move(moved_.to.graph),
                      .memory = std::move(memory),
                      .copies = std::move(moved_.to.copies),
                      .origins = std::move(moved_.to.origins)};
    find_places(arranged);
    return arranged;
  }

 private:
  /// With the operands that belong to no step, which are read in place. An explicit stack: views may be many.
  void place(int root) {
    std::vector<int> pending{root};
    while (!pending.empty()) {
      const int i = pending.back();
      if (moved_.places[i] >= 0) {
        pending.pop_back();
        continue;
      }
      const std::size_t before = pending.size();
      for (int operand : graph_[i].in)
        if (moved_.places[operand] < 0) pending.push_back(operand);
      if (pending.size() > before) continue;
      moved_.move(given_, i);
      pending.pop_back();
    }
  }

  const CopiedGraph& given_;
  const Graph& graph_;
  Moved moved_;
};

bool may_be_computed_again(const Value& v) {
  const AnyOp& op = v.op;
  return !op.may_fail() && (op.is_elementwise() || op.is_reduction() || op.is_view() || op.is_index() ||
                            op.is_alias() || op.is_library_call() || v.is_constant);
}

class Proposer {
 public:
  Proposer(const Arranged& now, std::vector<int> values, Operands operands, int peak)
      : now_(now), operands_(operands), peak_(peak) {
    copy_.values = std::move(values);
    for (int value : copy_.values) kept_ += now.memory.temporaries[now.temporary[value]].bytes;
  }

  std::optional<LateCopy> run() {
    copy_.reader = first_late_reader();
    if (copy_.reader < 0) return {};
    copy_.again = PerValue<bool>(now_.graph);
    copy_.instead = PerValue<int>(now_.graph, -1);
    find_equals();
    if (!mark()) return {};
    drop_marks_without_need();
    copy_.freed = kept_ - extended_;
    if (copy_.freed <= 0) return {};
    add_costs();
    return std::move(copy_);
  }

 private:
  /// The first reader at the peak, unless a value is made there, or after it; -1: there is none.
  int first_late_reader() const {
    int first = -1;
    for (int value : copy_.values) {
      const std::vector<int>& readers = now_.readers[value];
      const bool is_made_there = now_.memory.temporaries[now_.temporary[value]].first == peak_;
      const auto found = std::ranges::upper_bound(readers, is_made_there ? peak_ : peak_ - 1);
      if (found == readers.end()) return -1;
      if (first < 0 || *found < first) first = *found;
    }
    return first;
  }

  bool is_copied(int value) const { return std::ranges::count(copy_.values, value) > 0; }

  /// By origin: a value that is alive when the reader runs.
  void find_equals() {
    for (const PlannedMemory::Temporary& t : now_.memory.temporaries)
      if (t.value >= 0 && t.first < copy_.reader && t.last >= copy_.reader && !is_copied(t.value))
        alive_[now_.origins[t.value]] = t.value;
  }

  /// Marks the values that have to be computed again, from the copied ones back. Operands come first, so one walk down
  /// is enough.
  bool mark() {
    for (int value : copy_.values)
      if (!has_equal(value)) copy_.again[value] = true;
    int chain = 0;
    for (int i = *std::ranges::max_element(copy_.values); i >= 0; --i) {
      if (!copy_.again[i]) continue;
      if (!may_be_computed_again(now_.graph[i]) || ++chain > longest_chain) return false;
      const Value& v = now_.graph[i];
      const std::size_t read = v.op.is_alias() ? 1 : v.in.size();  // a barrier only waits for its second operand
      for (std::size_t k = 0; k < read; ++k)
        if (!is_at_hand(v.in[k])) copy_.again[v.in[k]] = true;
    }
    return true;
  }

  bool has_equal(int i) {
    const auto found = alive_.find(now_.origins[i]);
    if (found == alive_.end()) return false;
    copy_.instead[i] = found->second;
    return true;
  }

  bool is_at_hand(int i) {
    const Value& v = now_.graph[i];
    if (copy_.again[i]) return false;
    if (v.is_input() || v.is_constant || now_.yielded[i]) return true;
    if (is_copied(i)) return false;
    if (now_.temporary[i] < 0) return v.in.empty() || has_equal(i);
    const PlannedMemory::Temporary& t = now_.memory.temporaries[now_.temporary[i]];
    if (t.last >= copy_.reader || has_equal(i)) return true;
    const bool keeps = operands_ == Operands::kept || t.bytes * small_copy_factor <= kept_ || !may_be_computed_again(v);
    if (keeps && t.last < peak_ && !std::exchange(longer_[i], true)) extended_ += t.bytes;
    return keeps;
  }

  /// A view or an alias of something that is at hand is at hand as well.
  void drop_marks_without_need() {
    for (int i = 0; i < now_.graph.size(); ++i) {
      if (!copy_.again[i] || now_.step[i] >= 0) continue;
      const auto needs = [&](int operand) { return copy_.again[operand] || copy_.instead[operand] >= 0; };
      if (std::ranges::none_of(now_.graph[i].in, needs)) copy_.again[i] = false;
    }
  }

  void add_costs() {
    Numbered<int> members(now_.memory.steps.size());
    for (int i = 0; i < now_.graph.size(); ++i)
      if (copy_.again[i] && now_.step[i] >= 0) ++members[now_.step[i]];
    for (std::size_t s = 0; s < members.size(); ++s)
      copy_.cost += now_.memory.costs[s] * members[s] / static_cast<double>(now_.memory.steps[s].members.size());
  }

  const Arranged& now_;
  const Operands operands_;
  const int peak_;
  LateCopy copy_;
  std::int64_t kept_ = 0, extended_ = 0;  // bytes
  std::map<int, bool> longer_;            // temporaries that would live longer
  std::map<int, int> alive_;
};

/// Copies the graph; before the reader come the copies, and from there on the copied value is read from its copy.
class CopyInserter {
 public:
  CopyInserter(const Arranged& now, const LateCopy& copy, int group)
      : now_(now), copy_(copy), moved_(now.graph), late_(now.graph, -1) {
    const Step& reader = now.memory.steps[copy.reader];
    const int of_reader = now.copies[reader.members.front()];
    const bool joins = std::ranges::all_of(reader.members, [&](int i) { return now.copies[i] == of_reader; });
    group_ = joins && of_reader > 0 && !copy.each ? of_reader : group;
    begin_ = reader.members.front();
  }

  CopiedGraph run() {
    for (int i = 0; i < now_.graph.size(); ++i) {
      if (i == begin_) insert_copies();
      if (i >= begin_) enter(now_.step[i]);
      Value v = now_.graph[i];
      for (int& operand : v.in) operand = i < begin_ ? moved_.places[operand] : late(operand);
      moved_.places.set(i, moved_.add(std::move(v), now_.copies[i], now_.origins[i]));
    }
    moved_.places.finish();
    return without_unneeded(moved_.to);
  }

 private:
  void insert_copies() {
    for (int i = 0; i < begin_; ++i) {
      if (copy_.instead[i] >= 0) late_[i] = moved_.places[copy_.instead[i]];
      else if (copy_.again[i] && !copy_.each) late_[i] = add_late(i);
    }
  }
  int add_late(int i) {
    Value v = now_.graph[i];
    for (int& operand : v.in) operand = late(operand);
    return moved_.add(std::move(v), group_, now_.origins[i]);
  }
  /// Another step begins; where each reader has its own copies, those of the step before are not for it.
  void enter(int step) {
    if (!copy_.each || step < 0 || step == inside_) return;
    if (inside_ >= 0) ++group_;
    inside_ = step;
    for (int i = 0; i < begin_; ++i)
      if (copy_.instead[i] < 0) late_[i] = -1;
  }
  /// The value that late readers of i read: a copy if there is one, through views and aliases as well.
  int late(int i) {
    if (late_[i] >= 0) return late_[i];
    if (i < begin_ && (copy_.again[i] || leads_to_copy(i))) return late_[i] = add_late(i);
    return moved_.places[i];
  }
  bool leads_to_copy(int i) const {
    while (now_.step[i] < 0 && (now_.graph[i].op.is_view() || now_.graph[i].op.is_alias())) {
      i = now_.graph[i].in[0];
      if (late_[i] >= 0 || copy_.again[i]) return true;
    }
    return false;
  }

  const Arranged& now_;
  const LateCopy& copy_;
  Moved moved_;
  PerValue<int> late_;  // its copy, in the new graph
  int group_ = 0, begin_ = 0;
  int inside_ = -1;  // the step whose copies late_ holds, where each reader has its own
};

}  // namespace

int Moved::add(Value v, int copy, int origin) {
  to.copies.push_back(copy);
  to.origins.push_back(origin);
  return to.graph.add(std::move(v));
}

void Moved::move(const CopiedGraph& from, int i) {
  places.set(i, add(places.renamed(i), from.copies[i], from.origins[i]));
}

Arranged arrange(const CopiedGraph& given, PlannedMemory memory) { return Arranger(given).run(std::move(memory)); }

std::optional<LateCopy> propose_late_copy(const Arranged& now, std::vector<int> values, Operands operands, int peak) {
  return Proposer(now, std::move(values), operands, peak).run();
}

std::optional<LateCopy> for_each_reader(const Arranged& now, LateCopy copy) {
  constexpr int most_formulas = 200, most_readers = 8;
  int formulas = 0;
  std::set<int> readers;
  for (int i = 0; i < now.graph.size(); ++i) {
    if (!copy.again[i]) continue;
    if (now.graph[i].op.is_library_call() || ++formulas > most_formulas) return {};
  }
  for (int value : copy.values)
    for (int reader : now.readers[value])
      if (reader >= copy.reader) readers.insert(reader);
  if (readers.size() < 2 || readers.size() > most_readers) return {};
  copy.each = true;
  copy.cost *= static_cast<double>(readers.size());
  return copy;
}

CopiedGraph with_late_copy(const Arranged& now, const LateCopy& copy, int group) {
  return CopyInserter(now, copy, group).run();
}

CopiedGraph without_unneeded(const CopiedGraph& given) {
  const Graph& graph = given.graph;
  const PerValue<bool> needed = needed_with_inputs(graph);
  Moved moved(graph);
  for (int i = 0; i < graph.size(); ++i)
    if (needed[i]) moved.move(given, i);
  moved.places.finish();
  return std::move(moved.to);
}

}  // namespace gradus
