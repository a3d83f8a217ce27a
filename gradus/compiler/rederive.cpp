/// Chooses stored values that are cheaper to compute again than to write and to read. Decisions 106 and 149 have the
/// reasons.
#include "gradus/compiler/rederive.h"
#include <algorithm>
#include <map>
#include "gradus/compiler/late_copies.h"
#include "gradus/compiler/passes.h"
#include "gradus/scalar/rare_parts.h"

namespace gradus {
namespace {

bool holds(const std::vector<int>& list, int i) { return std::ranges::find(list, i) != list.end(); }

/// A value that is smaller by this factor than its derivate is rather stored than computed again.
constexpr std::int64_t small_factor = 4;
/// This small a share of the freed memory may stay longer: a number per channel, say.
constexpr std::int64_t small_memory_share = 64;
constexpr int most_rederivations = 4;

/// The places and sizes of values.
struct Places {
  Places(const Graph& graph, std::span<const Step> steps, const TargetModel& target)
      : graph(graph),
        target(target),
        step_of(graph, -1),
        stored(graph),
        is_output(graph),
        is_read_elsewhere(graph),
        readers(graph) {
    for (std::size_t s = 0; s < steps.size(); ++s) add(steps[s], static_cast<int>(s));
    for (int o : graph.outputs) is_output[storage_of(graph, o)] = true;
  }

  void add(const Step& step, int index) {
    for (int member : step.members) step_of[member] = index;
    for (int output : step.outputs) stored[output] = true;
    for (const Read& read : reads_of(graph, step)) {
      if (std::vector<int>& of = readers[read.storage]; of.empty() || of.back() != index) of.push_back(index);
      const bool as_it_stands = step.kind == Step::Kind::loops && storage_of(graph, read.operand) == read.storage;
      if (!as_it_stands) is_read_elsewhere[read.storage] = true;
    }
  }

  std::int64_t elements(int value) const { return usual_elements(graph[value].spec.shape); }
  std::int64_t bytes(int value) const { return usual_bytes(graph[value].spec); }

  const Graph& graph;
  const TargetModel& target;
  PerValue<int> step_of;  // the step that it belongs to; -1: none
  PerValue<bool> stored, is_output;
  PerValue<bool> is_read_elsewhere;    // by something that is no formula on the same elements
  PerValue<std::vector<int>> readers;  // steps that read it from memory
};

/// To write and to read by all steps.
std::int64_t bytes_moved(const Graph& graph, std::span<const Step> steps) {
  const TargetModel any;
  const Places places(graph, steps, any);
  std::int64_t sum = 0;
  for (int i = 0; i < graph.size(); ++i)
    sum += places.bytes(i) * (static_cast<std::int64_t>(places.readers[i].size()) + (places.stored[i] ? 1 : 0));
  return sum;
}

/// Values that are computed again instead of reading `values`, and their inputs.
struct Cone {
  std::vector<int> values, members, leaves;
  double instructions = 0;
};

/// Chooses, among the results of another step that a step reads, those that it had better compute itself.
class Choice {
 public:
  Choice(const Places& places, int reader) : graph_(places.graph), places_(places), reader_(reader) {}

  /// Without members if nothing pays.
  Cone run(std::vector<int> values) const {
    Derived derived{std::move(values), {}};
    double gain = gain_of(derived);
    const auto improves = [&](Derived other) {
      const double its = gain_of(other);
      if (its <= gain) return false;
      derived = std::move(other), gain = its;
      return true;
    };
    while (with_deeper(derived, improves) || with_fewer(derived, improves)) {}
    return gain > 0 ? cone_of(derived) : Cone();
  }

 private:
  /// Candidates to recompute in the reader, and their stored operands.
  struct Derived {
    std::vector<int> values, deeper;
  };

  template <class Improves> bool with_fewer(const Derived& derived, Improves improves) const {
    for (std::size_t k = 0; k < derived.values.size(); ++k) {
      Derived fewer = derived;
      fewer.values.erase(fewer.values.begin() + static_cast<std::ptrdiff_t>(k));
      if (improves(std::move(fewer))) return true;
    }
    return false;
  }
  /// A leaf of the same maker is computed again, too: as the result of a relu is where its sign is wanted.
  template <class Improves> bool with_deeper(const Derived& derived, Improves improves) const {
    if (derived.values.empty()) return false;
    for (int leaf : cone_of(derived).leaves) {
      if (!is_like(leaf, derived.values[0]) || holds(places_.readers[leaf], reader_)) continue;
      Derived deeper = derived;
      deeper.deeper.push_back(leaf);
      if (improves(std::move(deeper))) return true;
    }
    return false;
  }

  Cone cone_of(const Derived& of) const {
    Cone cone{.values = of.values};
    std::vector<int> pending = of.values;
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      if (holds(cone.members, i)) continue;
      cone.members.push_back(i);
      cone.instructions += static_cast<double>(length_of(i) * places_.elements(i));
      for (int operand : graph_[i].in) {
        const int source = source_of(graph_, operand);
        if (is_computed_where_read(graph_, source)) continue;
        if (is_computed_again(source, of)) pending.push_back(source);
        else if (!holds(cone.leaves, source)) cone.leaves.push_back(source);
      }
    }
    return cone;
  }

  /// True for values that the maker of `derived` has in registers, except reductions and values of whole rows.
  bool is_computed_again(int source, const Derived& derived) const {
    if (holds(derived.values, source) || holds(derived.deeper, source)) return true;
    return !places_.stored[source] && is_like(source, derived.values[0]);
  }
  bool is_like(int source, int derived) const {
    return places_.step_of[source] == places_.step_of[derived] && graph_[source].op.is_elementwise() &&
           places_.elements(source) * small_factor > places_.elements(derived);
  }

  /// The worth of the bytes that are neither moved nor kept less that of the work; negative if more memory would be in
  /// use.
  double gain_of(const Derived& derived) const {
    if (derived.values.empty()) return 0;
    const TargetModel& target = places_.target;
    const Cone cone = cone_of(derived);
    double moved = 0, freed_by_all = 0;  // a value with several readers counts in parts
    std::int64_t freed = 0, kept = 0;
    for (int value : derived.values) {
      const std::int64_t bytes = places_.bytes(value);
      moved += static_cast<double>(bytes);
      if (places_.is_output[value] || places_.is_read_elsewhere[value]) continue;
      const double part = static_cast<double>(bytes) / static_cast<double>(places_.readers[value].size());
      moved += part;
      freed_by_all += part;
      freed += bytes;
    }
    for (int leaf : cone.leaves) {
      const std::vector<int>& readers = places_.readers[leaf];
      const std::int64_t bytes = places_.bytes(leaf);
      const bool is_new = places_.step_of[leaf] >= 0 && !places_.stored[leaf];
      moved -= static_cast<double>(bytes) * (is_new + !holds(readers, reader_));
      const bool stays = graph_[leaf].is_input() || places_.is_output[leaf];
      if (!stays && (readers.empty() || readers.back() < reader_)) kept += bytes;
    }
    if (moved < static_cast<double>(target.least_moved_bytes) || kept > freed + freed / small_memory_share) return -1;
    const double freed_here = freed_by_all - static_cast<double>(kept);
    return moved * target.instructions_per_byte + freed_here * target.instructions_per_kept_byte - cone.instructions;
  }

  std::int64_t length_of(int value) const {
    std::vector<DType> types;
    for (int operand : graph_[value].in) types.push_back(graph_[operand].spec.dtype);
    return scalar::usual_instructions(graph_[value].op.formula(types));
  }

  const Graph& graph_;
  const Places& places_;
  const int reader_;
};

/// The values of others that step `reader` computes again.
std::vector<Cone> copies_for(const Places& places, const Step& step, int reader) {
  if (step.kind != Step::Kind::loops) return {};
  std::map<int, std::vector<int>> candidates;  // by the step that makes them
  std::vector<int> excluded;
  for (const Read& read : reads_of(places.graph, step)) {
    const int maker = places.step_of[read.storage];
    if (maker < 0 || !places.graph[read.storage].op.is_elementwise()) continue;
    if (storage_of(places.graph, read.operand) != read.storage) excluded.push_back(read.storage);
    if (!holds(candidates[maker], read.storage)) candidates[maker].push_back(read.storage);
  }
  std::vector<Cone> cones;
  for (auto& [maker, values] : candidates) {
    std::erase_if(values, [&](int value) { return holds(excluded, value); });
    if (Cone cone = Choice(places, reader).run(values); !cone.members.empty()) cones.push_back(std::move(cone));
  }
  return cones;
}

/// Per step, the values that it computes again. Each choice knows of those before it: a value without readers is not
/// stored. Steps that relied on it choose once more.
Numbered<std::vector<int>> choose(const Places& given, std::span<const Step> steps) {
  Places places = given;
  std::vector<std::vector<Cone>> cones(steps.size());
  const auto reads = [&](int value, int reader, bool does) {
    std::vector<int>& readers = places.readers[value];
    std::erase(readers, reader);
    if (does) readers.insert(std::ranges::upper_bound(readers, reader), reader);
    places.stored[value] = given.stored[value] && (!readers.empty() || places.is_output[value]);
  };
  for (int turn = 0; turn < 2; ++turn)
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (turn > 0 && cones[s].empty()) continue;
      const int reader = static_cast<int>(s);
      for (const Cone& cone : cones[s]) {
        for (int leaf : cone.leaves) reads(leaf, reader, holds(given.readers[leaf], reader));
        for (int value : cone.values) reads(value, reader, true);
      }
      cones[s] = copies_for(places, steps[s], reader);
      for (const Cone& cone : cones[s]) {
        for (int leaf : cone.leaves) reads(leaf, reader, true);
        for (int value : cone.values) reads(value, reader, false);
      }
    }
  Numbered<std::vector<int>> again(steps.size());
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const Cone& cone : cones[s]) again[s].insert(again[s].end(), cone.members.begin(), cone.members.end());
  return again;
}

/// The graph with copies in front of the members of `steps` that read them; `again`: per step, the values that it
/// computes again.
class DerivationInserter {
 public:
  DerivationInserter(const Places& places, const Numbered<std::vector<int>>& again)
      : graph_(places.graph), step_of_(places.step_of), again_(again), moved_(graph_), late_(again.size()) {}

  CopiedGraph run() {
    for (int i = 0; i < graph_.size(); ++i) {
      const int step = step_of_[i];
      const bool copies = step >= 0 && !again_[step].empty();
      Value v = graph_[i];
      for (int& operand : v.in) operand = copies ? late(operand, step) : moved_.places[operand];
      moved_.places.set(i, moved_.add(std::move(v), 0, no_origin));
    }
    moved_.places.finish();
    return without_unneeded(moved_.to);
  }

 private:
  static constexpr int no_origin = 0;  // never asked for

  /// The value that members of `step` read as i: a copy if there is one, through aliases and views as well.
  int late(int i, int step) {
    if (const auto known = late_[step].find(i); known != late_[step].end()) return known->second;
    Value v = graph_[i];
    const bool is_copied = holds(again_[step], i);
    const bool passes = step_of_[i] < 0 && (v.op.is_alias() || v.op.is_view());
    int found = moved_.places[i];
    if (is_copied || passes) {
      bool differs = is_copied;
      for (int& operand : v.in) {
        const int original = moved_.places[operand];
        operand = late(operand, step);
        differs = differs || operand != original;
      }
      if (differs) found = moved_.add(std::move(v), step + 1, no_origin);
    }
    return late_[step].emplace(i, found).first->second;
  }

  const Graph& graph_;
  const PerValue<int>& step_of_;
  const Numbered<std::vector<int>>& again_;
  Moved moved_;
  Numbered<std::map<int, int>> late_;  // per step
};

/// The steps whose copies did not become parts of them but stand in memory.
std::vector<int> not_taken_in(const CopiedGraph& given, std::span<const Step> steps) {
  std::vector<int> readers;
  for (const Step& step : steps)
    for (int output : step.outputs)
      if (const int group = given.copies[output]; group > 0) readers.push_back(group - 1);
  return readers;
}

}  // namespace

std::vector<Step> rederive(Graph& graph, std::vector<Step> steps, PerValue<int>* copies, const TargetModel& target) {
  const Places places(graph, steps, target);
  Numbered<std::vector<int>> again = choose(places, steps);
  for (int attempt = 0; attempt < most_rederivations; ++attempt) {
    if (std::ranges::all_of(again, [](const std::vector<int>& of_step) { return of_step.empty(); })) break;
    CopiedGraph copied = DerivationInserter(places, again).run();
    std::vector<Step> next = fuse(copied.graph, true, copied.copies, target);
    const std::vector<int> failed = not_taken_in(copied, next);
    for (int reader : failed) again[reader].clear();
    if (!failed.empty()) continue;
    if (bytes_moved(copied.graph, next) >= bytes_moved(graph, steps)) break;
    graph = std::move(copied.graph);
    if (copies) *copies = std::move(copied.copies);
    return next;
  }
  return steps;
}

}  // namespace gradus
