/// Order, sharing and layout of memory.
#include "gradus/compiler/plan_memory.h"
#include <algorithm>
#include <numeric>
#include "gradus/compiler/first_fit.h"
#include "gradus/ops/scatter_ops.h"

namespace gradus {
namespace {

bool may_fail(const Graph& graph, const Step& step) {
  return std::ranges::any_of(step.members, [&](int i) { return graph[i].op.may_fail(); });
}

// ---------------------------------------------------------------- order

class Orderer {
 public:
  Orderer(const Graph& graph, std::vector<Step> steps)
      : graph_(graph), steps_(std::move(steps)), maker_(graph, -1), urgent_(steps_.size()), read_(urgent_) {}
  std::vector<Step> run() {
    for (std::size_t s = 0; s < steps_.size(); ++s) look_at(static_cast<int>(s));
    std::vector<Step> ordered;
    for (int turn = 0; turn < 3; ++turn)
      for (std::size_t s = 0; s < steps_.size(); ++s)
        if (turn_of(s) == turn) ordered.push_back(std::move(steps_[s]));
    return ordered;
  }

 private:
  int turn_of(std::size_t s) const { return urgent_[s] ? 0 : read_[s] ? 1 : 2; }

  void look_at(int s) {
    const Step& step = steps_[s];
    for (const Read& read : reads_of(graph_, step)) {
      const int maker = maker_[read.storage];
      internal_check(maker >= 0 || graph_[read.storage].is_input(), "step ", s, " reads %", read.storage,
                     " before any step has written it");
      if (maker >= 0) read_[maker] = true;
    }
    for (int i : step.members) maker_[i] = s;
    for (int awaited : waits_of(graph_, step))
      if (const int maker = maker_[awaited]; maker >= 0) read_[maker] = true;
    if (may_fail(graph_, step)) make_urgent(s);
  }
  void make_urgent(int s) {
    if (urgent_[s]) return;
    urgent_[s] = true;
    const Step& step = steps_[s];
    const auto before = [&](int value) {
      if (const int maker = maker_[value]; maker >= 0 && maker != s) make_urgent(maker);
    };
    for (const Read& read : reads_of(graph_, step)) before(read.storage);
    for (int awaited : waits_of(graph_, step)) before(awaited);
  }

  const Graph& graph_;
  Numbered<Step> steps_;
  PerValue<int> maker_;           // the step that computes it
  Numbered<bool> urgent_, read_;  // per step: it or a step that needs it may fail; other steps read it
};

// ---------------------------------------------------------------- sharing

/// The storage in which a step changes some rows and leaves the others, so that its result may lie there; -1: it does
/// something else, or reads that storage for other ends, too.
int changed_by(const Graph& graph, const Step& step) {
  if (step.kind != Step::Kind::library || !graph[step.members[0]].op.as<UpdateRows>()) return -1;
  const std::vector<Read> reads = reads_of(graph, step);
  const int changed = reads[0].storage;
  return std::ranges::count(reads, changed, &Read::storage) == 1 ? changed : -1;
}

class Sharer {
 public:
  Sharer(const Graph& graph, const std::vector<Step>& steps)
      : graph_(graph),
        steps_(steps),
        free_(graph.dying),
        writer_(graph, -1),
        last_reader_(writer_),
        yielded_(graph),
        sharing_{.may_overwrite = std::vector<int>(graph.outputs.size(), -1), .in_place = true} {
    for (std::size_t s = 0; s < steps.size(); ++s) look_at(static_cast<int>(s));
    for (int output : graph.outputs) {
      const int storage = storage_of(graph, output);
      is_first_.push_back(!yielded_[storage]);
      yielded_[storage] = true;
    }
    for (std::size_t k = 0; k < graph.outputs.size(); ++k)
      first_written_.push_back(is_first_[k] ? find_first_written(storage_of(graph, graph.outputs[k])) : -1);
    std::erase_if(free_, [&](int input) { return yielded_[input]; });
  }
  /// First the inputs that an output is a formula of: so a Variable gets its own memory, the only one that it may take.
  /// Then inputs that are read where it is written, then any that are free by then.
  Sharing run() {
    for_each_left([&](std::size_t k) {
      for (int input : inputs_near(storage_of(graph_, graph_.outputs[k])))
        if (sharing_.may_overwrite[k] < 0 && std::ranges::count(free_, input) > 0)
          give_memory(k, [&](int writer, int output, int i) {
            return i == input && (may_take(writer, output, i, true) || may_take(writer, output, i, false));
          });
    });
    for (const bool in_place : {true, false})
      for_each_left([&](std::size_t k) {
        give_memory(k, [&](int writer, int output, int i) { return may_take(writer, output, i, in_place); });
      });
    return std::move(sharing_);
  }

 private:
  void look_at(int s) {
    const Step& step = steps_[at(s)];
    std::vector<int>& storages = reads_.emplace_back();
    for (const Read& read : reads_of(graph_, step)) {
      storages.push_back(read.storage);
      last_reader_[read.storage] = s;
    }
    for (int output : step.outputs) writer_[output] = s;
    if (may_fail(graph_, step)) last_failure_ = s;
  }

  /// The value that is written into the memory of an output before all else: its first source, or itself.
  int find_first_written(int output) {
    int first = output;
    for (;;) {
      const int writer = writer_[first];
      const int from = writer < 0 ? -1 : changed_by(graph_, steps_[at(writer)]);
      if (from < 0 || yielded_[from] || last_reader_[from] > writer) return first;
      const int maker = writer_[from];
      if (maker < 0 || steps_[at(maker)].kind == Step::Kind::control) return first;
      sharing_.inside.push_back({from, output});
      first = from;
    }
  }

  /// Calls visit(k) for the outputs that have memory of their own and none of an input yet.
  template <class Visit> void for_each_left(Visit visit) {
    for (std::size_t k = 0; k < graph_.outputs.size() && !free_.empty(); ++k)
      if (sharing_.may_overwrite[k] < 0 && is_first_[k]) visit(k);
  }

  /// Inputs from which `value` is made through values of its spec, the nearest first.
  std::vector<int> inputs_near(int value) const {
    constexpr std::size_t most = 32;
    std::vector<int> seen{value}, inputs;
    for (std::size_t k = 0; k < seen.size() && seen.size() < most; ++k)
      for (int operand : graph_[seen[k]].in) {
        if (graph_[operand].spec != graph_[value].spec || std::ranges::count(seen, operand) > 0) continue;
        seen.push_back(operand);
        if (graph_[operand].is_input()) inputs.push_back(operand);
      }
    return inputs;
  }

  template <class MayTake> void give_memory(std::size_t k, MayTake may_take) {
    const int output = first_written_[k], writer = writer_[output];
    if (writer < 0 || writer <= last_failure_) return;
    const auto found = std::ranges::find_if(free_, [&](int i) { return may_take(writer, output, i); });
    if (found == free_.end()) return;
    sharing_.may_overwrite[k] = *found;
    free_.erase(found);
  }
  bool may_take(int writer, int output, int input, bool in_place) const {
    if (last_reader_[input] > writer || (std::ranges::count(reads_[writer], input) > 0) != in_place) return false;
    const Spec &from = graph_[input].spec, &to = graph_[output].spec;
    if (in_place && changed_by(graph_, steps_[at(writer)]) == input)
      return from.dtype == to.dtype && from.shape.size() == to.shape.size();  // which may be read in another shape
    return from == to && (!in_place || may_write_over(graph_, steps_[at(writer)], output, input));
  }

  const Graph& graph_;
  const std::vector<Step>& steps_;
  std::vector<int> free_;               // dying inputs that are not taken yet
  Numbered<std::vector<int>> reads_;    // per step: storages
  PerValue<int> writer_, last_reader_;  // of storages: steps
  PerValue<bool> yielded_;              // of storages
  std::vector<bool> is_first_;          // per output: none before it lies in the same memory
  std::vector<int> first_written_;      // per output
  int last_failure_ = -1;               // the last step that may fail
  Sharing sharing_;
};

}  // namespace

std::vector<Step> order_steps(const Graph& graph, std::vector<Step> steps) {
  return Orderer(graph, std::move(steps)).run();
}

Sharing plan_sharing(const Graph& graph, const std::vector<Step>& steps) { return Sharer(graph, steps).run(); }

Layout lay_out(std::span<const Interval> intervals) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  Layout in_order = first_fit(intervals, order);
  const auto bytes_of = [&](std::size_t i) { return intervals[i].bytes; };
  if (std::ranges::is_sorted(order, std::greater<>(), bytes_of)) return in_order;
  std::ranges::stable_sort(order, std::greater<>(), bytes_of);
  Layout by_size = first_fit(intervals, order);
  const std::int64_t looked_at = by_size.looked_at + in_order.looked_at;
  Layout& best = by_size.bytes <= in_order.bytes ? by_size : in_order;
  best.looked_at = looked_at;
  return best;
}

}  // namespace gradus
