/// Stages follow from the reads and writes of steps.
#include "gradus/backend/cpu/run/schedule.h"
#include <algorithm>
#include <numeric>

namespace gradus {
namespace {

bool may_fail(const Graph& graph, const Step& step) {
  return std::ranges::any_of(step.members, [&](int i) { return graph[i].op.may_fail(); });
}

/// In whose memory each temporary lies in the end: its own, or that of one before it.
std::vector<std::size_t> places_of(std::span<const Temporary> temporaries) {
  std::vector<std::size_t> places(temporaries.size());
  for (std::size_t i = 0; i < temporaries.size(); ++i) {
    const int over = temporaries[i].over;
    internal_check(over < static_cast<int>(i), "a temporary lies in the memory of a later one");
    places[i] = over < 0 ? i : places[at(over)];
  }
  return places;
}

class Stager {
 public:
  Stager(const Graph& graph, const std::vector<Step>& steps, const Sharing& sharing, const std::vector<Thunk>& thunks,
         Staging staging)
      : graph_(graph),
        steps_(steps),
        thunks_(thunks),
        staging_(staging),
        in_place_(sharing.in_place),
        maker_(graph, -1),
        thunks_of_(steps.size()),
        overwritten_by_(graph),
        after_readers_(graph) {
    for (std::size_t t = 0; t < thunks.size(); ++t) thunks_of_[thunks[t].step].push_back(static_cast<int>(t));
    for (std::size_t k = 0; k < graph.outputs.size(); ++k)
      if (sharing.may_overwrite[k] >= 0) overwrites(storage_of(graph, graph.outputs[k]), sharing.may_overwrite[k]);
    schedule_.inside = sharing.inside;
    for (std::size_t k = 0; k < graph.outputs.size(); ++k)
      if (sharing.may_overwrite[k] >= 0)
        for (const Inside& inside : sharing.inside)
          if (inside.output == storage_of(graph, graph.outputs[k])) overwrites(inside.value, sharing.may_overwrite[k]);
    for (std::size_t i = 0; i < sharing.inside.size(); ++i) {  // from the output on back
      const Inside& inside = sharing.inside[i];
      const bool goes_on = i > 0 && sharing.inside[i - 1].output == inside.output;
      overwrites(goes_on ? sharing.inside[i - 1].value : inside.output, inside.value);
    }
  }

  StagePlan run() {
    for (std::size_t s = 0; s < steps_.size(); ++s) place(static_cast<int>(s));
    add_temporaries();
    constexpr int most_parts = 8;
    if (in_place_) write_in_place();
    for (int i = 0; in_place_ && i < most_parts && part_fullest_stage(); ++i) write_in_place();
    return std::move(schedule_);
  }

 private:
  struct Span {
    int first = 0, last = -1;  // stages of a step
    std::vector<int> reads;    // storages
  };

  void overwrites(int output, int input) { overwritten_by_[output].push_back(input); }

  void place(int s) {
    const Step& step = steps_[at(s)];
    Span span;
    if (staging_ == Staging::in_order) span.first = static_cast<int>(schedule_.stages.size());
    const auto comes_after = [&](int value) {
      if (const int maker = maker_[value]; maker >= 0) span.first = std::max(span.first, spans_[maker].last + 1);
    };
    for (const Read& read : reads_of(graph_, step)) {
      span.reads.push_back(read.storage);
      comes_after(read.storage);
    }
    for (int awaited : waits_of(graph_, step)) comes_after(awaited);
    for (int output : step.outputs)
      for (int input : overwritten_by_[output])
        span.first = std::max({span.first, after_readers_[input], after_failures_});
    const std::vector<int>& thunks = thunks_of_[s];
    span.last = span.first + static_cast<int>(thunks.size()) - 1;
    for (std::size_t i = 0; i < thunks.size(); ++i) {
      const std::size_t stage = static_cast<std::size_t>(span.first) + i;
      if (schedule_.stages.size() <= stage) schedule_.stages.resize(stage + 1);
      schedule_.stages[stage].push_back(thunks[i]);
    }
    for (int i : step.members) maker_[i] = s;
    for (int storage : span.reads) {
      int& after = after_readers_[storage];
      after = std::max(after, span.last + 1);
    }
    if (may_fail(graph_, step)) after_failures_ = std::max(after_failures_, span.last + 1);
    spans_.push_back(std::move(span));
  }

  void add_temporaries() {
    PerValue<int> last_use(graph_, -1);
    for (const Span& span : spans_)
      for (int storage : span.reads) last_use[storage] = std::max(last_use[storage], span.last);
    PerValue<bool> yielded(graph_);
    for (int o : graph_.outputs) yielded[storage_of(graph_, o)] = true;
    for (const Inside& inside : schedule_.inside) yielded[inside.value] = true;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Span& span = spans_[s];
      for (int i : steps_[s].outputs)
        if (!yielded[i]) schedule_.temporaries.push_back({i, -1, span.first, std::max(span.last, last_use[i])});
      for (int t : thunks_of_[s])  // all thunks of a step share one scratch
        if (const Thunk& thunk = thunks_[at(t)]; thunk.shared_slot >= 0) {
          schedule_.temporaries.push_back({thunk.shared_slot, t, span.first, span.last});
          break;
        }
    }
  }

  /// The result of a step may take the memory of a temporary that no other step reads from then on, if the step reads
  /// each element before it writes the same one.
  void write_in_place() {
    PerValue<int> temporary_of(graph_, -1);
    for (std::size_t i = 0; i < schedule_.temporaries.size(); ++i)
      if (const Temporary& t = schedule_.temporaries[i]; t.thunk < 0) temporary_of[t.slot] = static_cast<int>(i);
    struct Readers {
      int last = -1;           // the step that reads it last, until
      int end = -1;            // this stage, and
      int end_of_others = -1;  // when the others have
    };
    PerValue<Readers> readers(graph_);
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (int storage : spans_[s].reads) {
        Readers& known = readers[storage];
        if (known.last == static_cast<int>(s)) continue;
        known.end_of_others = std::max(known.end_of_others, std::min(known.end, spans_[s].last));
        if (spans_[s].last > known.end) known = {static_cast<int>(s), spans_[s].last, known.end_of_others};
      }
    Numbered<bool> taken(schedule_.temporaries.size());
    for (Temporary& t : schedule_.temporaries) {
      const int writer = t.thunk < 0 ? maker_[t.slot] : -1;
      if (writer < 0 || t.last < t.first) continue;
      for (int storage : spans_[writer].reads) {
        const int from = temporary_of[storage];
        const Readers& known = readers[storage];
        if (from < 0 || taken[from] || known.last != writer || known.end_of_others >= t.first ||
            !may_take(writer, t.slot, storage))
          continue;
        t.over = from;
        taken[from] = true;
        break;
      }
    }
  }

  std::int64_t usual_bytes(const Temporary& t) const {
    return t.thunk >= 0 ? 0 : gradus::usual_bytes(graph_[t.slot].spec);
  }

  /// Bytes that live in each stage; a value in the memory of another one makes that one live on.
  std::vector<std::int64_t> bytes_in_stages() const {
    const std::vector<Temporary>& all = schedule_.temporaries;
    std::vector<int> last;
    for (const Temporary& t : all) last.push_back(t.last);
    const std::vector<std::size_t> places = places_of(all);
    for (std::size_t i = 0; i < all.size(); ++i) last[places[i]] = std::max(last[places[i]], all[i].last);
    Numbered<std::int64_t> bytes(schedule_.stages.size() + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].over >= 0 || last[i] < all[i].first) continue;
      bytes[all[i].first] += usual_bytes(all[i]);
      bytes[last[i] + 1] -= usual_bytes(all[i]);
    }
    for (std::size_t s = 1; s < bytes.size(); ++s) bytes[s] += bytes[s - 1];
    return bytes;
  }

  /// Parts the stage in which most lives: if its memory can then serve the others' results, the step that frees most
  /// goes before them, a barrier between. True if it was parted; temporaries are found again then.
  bool part_fullest_stage() {
    constexpr std::int64_t least_bytes = 1 << 20, least_share = 64;
    const std::vector<std::int64_t> bytes = bytes_in_stages();
    const auto fullest = std::ranges::max_element(bytes);
    const int stage = static_cast<int>(fullest - bytes.begin());
    std::vector<int> begun;
    for (std::size_t s = 0; s < steps_.size(); ++s)
      if (spans_[s].first == stage && spans_[s].last >= stage) begun.push_back(static_cast<int>(s));
    if (begun.size() < 2 || *fullest < least_bytes) return false;
    const Numbered<std::int64_t> freed = freed_by_steps(stage), made = made_by_steps(stage);
    const std::int64_t made_by_all = std::accumulate(made.begin(), made.end(), std::int64_t{0});
    int first = -1;
    std::int64_t most_gained = *fullest / least_share;
    for (int s : begun) {
      const std::int64_t made_by_others = made_by_all - made[s];
      if (const std::int64_t gained = std::min(freed[s], made_by_others); gained > most_gained)
        first = s, most_gained = gained;
    }
    if (first < 0) return false;
    schedule_.stages.insert(schedule_.stages.begin() + stage + 1, std::vector<int>());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      Span& span = spans_[s];
      if (span.first > stage) ++span.first;
      if (span.last > stage) ++span.last;
    }
    std::erase(begun, first);
    delay(begun, stage);
    schedule_.temporaries.clear();
    add_temporaries();
    return true;
  }
  /// The first thunks of these steps go from a stage into the next one, which has just been put in.
  void delay(std::span<const int> steps, int stage) {
    std::vector<int>& from = schedule_.stages[at(stage)];
    std::vector<int>& to = schedule_.stages[at(stage) + 1];
    Numbered<bool> goes(thunks_.size());
    for (int s : steps) {
      Span& span = spans_[s];
      span.last = std::max(span.last, stage + 1), span.first = stage + 1;
      to.push_back(thunks_of_[s].front());
      goes[to.back()] = true;
    }
    std::erase_if(from, [&](int thunk) { return goes[thunk]; });
  }
  /// Bytes that each step alone reads as late as in this stage.
  Numbered<std::int64_t> freed_by_steps(int stage) const {
    constexpr int nobody = -1, several = -2;
    PerValue<int> reader(graph_, nobody);  // of storages: the last reader left
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (spans_[s].last < stage) continue;
      for (int storage : spans_[s].reads) {
        int& known = reader[storage];
        if (known != static_cast<int>(s)) known = known == nobody ? static_cast<int>(s) : several;
      }
    }
    Numbered<bool> is_written_over(schedule_.temporaries.size());
    for (const Temporary& t : schedule_.temporaries)
      if (t.over >= 0) is_written_over[t.over] = true;
    Numbered<std::int64_t> bytes(steps_.size());
    for (std::size_t i = 0; i < schedule_.temporaries.size(); ++i) {
      const Temporary& t = schedule_.temporaries[i];
      if (t.thunk >= 0 || t.last != stage || is_written_over[i]) continue;
      const int s = reader[t.slot];
      if (s >= 0 && spans_[s].last == stage) bytes[s] += usual_bytes(t);
    }
    return bytes;
  }
  /// Bytes that each step begins to write in this stage, in memory of its own.
  Numbered<std::int64_t> made_by_steps(int stage) const {
    Numbered<std::int64_t> bytes(steps_.size());
    for (const Temporary& t : schedule_.temporaries)
      if (t.thunk < 0 && t.first == stage && t.over < 0) bytes[maker_[t.slot]] += usual_bytes(t);
    return bytes;
  }

  bool may_take(int writer, int value, int storage) const {
    const Spec &written = graph_[value].spec, &read = graph_[storage].spec;
    if (written.dtype != read.dtype || written.shape.size() != read.shape.size()) return false;
    return may_write_over(graph_, steps_[at(writer)], value, storage);
  }

  const Graph& graph_;
  const std::vector<Step>& steps_;
  const std::vector<Thunk>& thunks_;
  const Staging staging_;
  const bool in_place_;
  PerValue<int> maker_;  // the step that makes it
  Numbered<std::vector<int>> thunks_of_;
  PerValue<std::vector<int>> overwritten_by_;  // the storages in whose memory it is written
  PerValue<int> after_readers_;                // of storages: the first stage after all that read it so far
  int after_failures_ = 0;                     // the first stage after all that may fail so far
  Numbered<Span> spans_;
  StagePlan schedule_;
};

}  // namespace

StagePlan plan_stages(const Graph& graph, const std::vector<Step>& steps, const Sharing& sharing,
                      const std::vector<Thunk>& thunks, Staging staging) {
  return Stager(graph, steps, sharing, thunks, staging).run();
}

std::vector<Interval> intervals_of(const Graph& graph, const StagePlan& schedule, std::span<const std::int64_t> symbols,
                                   const std::function<std::int64_t(int thunk)>& scratch_of) {
  std::vector<Interval> intervals;
  for (const Temporary& t : schedule.temporaries) {
    const std::int64_t bytes = t.thunk >= 0
                                   ? scratch_of(t.thunk)
                                   : bytes_of({graph[t.slot].spec.dtype, graph[t.slot].spec.shape.evaluated(symbols)});
    intervals.push_back({bytes, t.first, t.last});
  }
  return intervals;
}

Arena lay_out_arena(const StagePlan& schedule, std::vector<Interval> intervals) {
  Arena apart{std::move(intervals), {}};
  apart.layout = lay_out(apart.intervals);
  if (std::ranges::none_of(schedule.temporaries, [](const Temporary& t) { return t.over >= 0; })) return apart;
  const std::vector<std::size_t> places = places_of(schedule.temporaries);
  Arena in_place{apart.intervals, {}};
  for (std::size_t i = 0; i < in_place.intervals.size(); ++i)
    if (const std::size_t place = places[i]; place != i) {
      int& last = in_place.intervals[place].last;
      last = std::max(last, in_place.intervals[i].last);
      in_place.intervals[i].bytes = 0;
    }
  in_place.layout = lay_out(in_place.intervals);
  if (in_place.layout.bytes > apart.layout.bytes) return apart;
  for (std::size_t i = 0; i < in_place.intervals.size(); ++i)
    in_place.layout.offsets[i] = in_place.layout.offsets[places[i]];
  return in_place;
}

}  // namespace gradus
