/// Stages follow from what steps read and write.
#include "gradus/backend/schedule.h"
#include <algorithm>

namespace gradus {
namespace {

bool may_fail(const Graph& graph, const Step& step) {
  return std::ranges::any_of(step.members, [&](int i) { return graph[i].op.may_fail(); });
}

class Stager {
 public:
  Stager(const Graph& graph, const std::vector<Step>& steps, const Sharing& sharing, const std::vector<Thunk>& thunks,
         Staging staging)
      : graph_(graph),
        steps_(steps),
        thunks_(thunks),
        staging_(staging),
        maker_(static_cast<std::size_t>(graph.size()), -1),
        overwritten_by_(static_cast<std::size_t>(graph.size())),
        after_readers_(static_cast<std::size_t>(graph.size())) {
    thunks_of_.resize(steps.size());
    for (std::size_t t = 0; t < thunks.size(); ++t)
      thunks_of_[static_cast<std::size_t>(thunks[t].step)].push_back(static_cast<int>(t));
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
    return std::move(schedule_);
  }

 private:
  struct Span {
    int first = 0, last = -1;  // stages of a step
    std::vector<int> reads;    // storages
  };

  void overwrites(int output, int input) { overwritten_by_[static_cast<std::size_t>(output)].push_back(input); }

  void place(int s) {
    const Step& step = steps_[static_cast<std::size_t>(s)];
    Span span;
    if (staging_ == Staging::in_order) span.first = static_cast<int>(schedule_.stages.size());
    const auto comes_after = [&](int value) {
      if (const int maker = maker_[static_cast<std::size_t>(value)]; maker >= 0)
        span.first = std::max(span.first, spans_[static_cast<std::size_t>(maker)].last + 1);
    };
    for (const Read& read : reads_of(graph_, step)) {
      span.reads.push_back(read.storage);
      comes_after(read.storage);
    }
    for (int awaited : waits_of(graph_, step)) comes_after(awaited);
    for (int output : step.outputs)
      for (int input : overwritten_by_[static_cast<std::size_t>(output)])
        span.first = std::max({span.first, after_readers_[static_cast<std::size_t>(input)], after_failures_});
    const std::vector<int>& thunks = thunks_of_[static_cast<std::size_t>(s)];
    span.last = span.first + static_cast<int>(thunks.size()) - 1;
    for (std::size_t i = 0; i < thunks.size(); ++i) {
      const std::size_t stage = static_cast<std::size_t>(span.first) + i;
      if (schedule_.stages.size() <= stage) schedule_.stages.resize(stage + 1);
      schedule_.stages[stage].push_back(thunks[i]);
    }
    for (int i : step.members) maker_[static_cast<std::size_t>(i)] = s;
    for (int storage : span.reads) {
      int& after = after_readers_[static_cast<std::size_t>(storage)];
      after = std::max(after, span.last + 1);
    }
    if (may_fail(graph_, step)) after_failures_ = std::max(after_failures_, span.last + 1);
    spans_.push_back(std::move(span));
  }

  void add_temporaries() {
    std::vector<int> last_use(static_cast<std::size_t>(graph_.size()), -1);
    for (const Span& span : spans_)
      for (int storage : span.reads)
        last_use[static_cast<std::size_t>(storage)] = std::max(last_use[static_cast<std::size_t>(storage)], span.last);
    std::vector<bool> yielded(static_cast<std::size_t>(graph_.size()));
    for (int o : graph_.outputs) yielded[static_cast<std::size_t>(storage_of(graph_, o))] = true;
    for (const Inside& inside : schedule_.inside) yielded[static_cast<std::size_t>(inside.value)] = true;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const Span& span = spans_[s];
      for (int i : steps_[s].outputs)
        if (!yielded[static_cast<std::size_t>(i)])
          schedule_.temporaries.push_back(
              {i, -1, span.first, std::max(span.last, last_use[static_cast<std::size_t>(i)])});
      for (int t : thunks_of_[s])  // all thunks of a step share one scratch
        if (const Thunk& thunk = thunks_[static_cast<std::size_t>(t)]; thunk.shared_slot >= 0) {
          schedule_.temporaries.push_back({thunk.shared_slot, t, span.first, span.last});
          break;
        }
    }
  }

  const Graph& graph_;
  const std::vector<Step>& steps_;
  const std::vector<Thunk>& thunks_;
  const Staging staging_;
  std::vector<int> maker_;  // per value: the step of which it is a member
  std::vector<std::vector<int>> thunks_of_;
  std::vector<std::vector<int>> overwritten_by_;  // per value: the storages in whose memory it is written
  std::vector<int> after_readers_;                // per storage: the first stage after all that read it so far
  int after_failures_ = 0;                        // the first stage after all that may fail so far
  std::vector<Span> spans_;
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

}  // namespace gradus
