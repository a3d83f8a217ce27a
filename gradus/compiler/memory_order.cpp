/// List scheduling: of the steps that are ready, the one that frees most, else the first.
#include "gradus/compiler/memory_order.h"
#include <algorithm>
#include <tuple>

namespace gradus {
namespace {

class MemoryOrderer {
 public:
  MemoryOrderer(const Graph& graph, std::vector<Step> steps, std::span<const std::int64_t> symbols)
      : graph_(graph),
        steps_(std::move(steps)),
        info_(steps_.size()),
        bytes_(graph),
        readers_left_(graph),
        writer_(graph, -1) {
    for (const Step& step : steps_)
      for (int i : step.outputs) bytes_[i] = bytes_of({graph[i].spec.dtype, graph[i].spec.shape.evaluated(symbols)});
    for (int o : graph.outputs) bytes_[storage_of(graph, o)] = 0;  // memory of the caller's
    connect();
    find_overwrites();
    find_urgent();
  }

  std::vector<Step> run() {
    for (int s = 0; s < count(); ++s)
      if (info_[s].missing == 0) ready_.push_back(s);
    std::vector<Step> ordered;
    while (!ready_.empty()) {
      const auto next = std::ranges::min_element(ready_, {}, [&](int s) { return rank(s); });
      const int s = *next;
      *next = ready_.back();
      ready_.pop_back();
      finish(s);
      ordered.push_back(std::move(steps_[s]));
    }
    internal_check(ordered.size() == steps_.size(), "steps depend on each other in a circle");
    return ordered;
  }

 private:
  struct Info {
    std::vector<int> reads;      // storages, each once
    std::vector<int> followers;  // steps that read its results, or wait for it
    std::vector<int> waits;      // steps that have to come before, though nothing of theirs is read
    int missing = 0;             // steps that it waits for
    int overwrites = -1;         // the dying input that an output of it may take over
    int last = 0;                // member
    bool urgent = false;         // it or a step that needs it may fail
  };
  int count() const { return static_cast<int>(steps_.size()); }

  void connect() {
    for (int s = 0; s < count(); ++s)
      for (int i : steps_[s].outputs) writer_[i] = s;
    for (int s = 0; s < count(); ++s) {
      Info& info = info_[s];
      info.last = steps_[s].members.back();
      for (const Read& read : reads_of(graph_, steps_[s])) info.reads.push_back(read.storage);
      std::ranges::sort(info.reads);
      info.reads.erase(std::ranges::unique(info.reads).begin(), info.reads.end());
      for (int storage : info.reads) {
        ++readers_left_[storage];
        if (writer_[storage] < 0) continue;
        follow(writer_[storage], s);
      }
      for (int awaited : waits_of(graph_, steps_[s]))
        if (writer_[awaited] >= 0) follow(writer_[awaited], s);
    }
    connect_waits();
  }

  /// Steps behind barriers follow those that make the awaited values.
  void connect_waits() {
    PerValue<int> maker(graph_, -1);
    for (int s = 0; s < count(); ++s)
      for (int i : steps_[s].members) maker[i] = s;
    for (int s = 0; s < count(); ++s)
      for (int awaited : waits_of(graph_, steps_[s]))
        if (const int before = maker[awaited]; before >= 0 && before != s) {
          info_[before].followers.push_back(s);
          info_[s].waits.push_back(before);
          ++info_[s].missing;
        }
  }

  void follow(int before, int s) {
    info_[before].followers.push_back(s);
    ++info_[s].missing;
  }

  void find_overwrites() {
    for (int o : graph_.outputs) {
      const int output = storage_of(graph_, o), s = writer_[output];
      if (s < 0) continue;
      for (int input : graph_.dying)
        if (graph_[input].spec == graph_[output].spec && std::ranges::binary_search(info_[s].reads, input))
          info_[s].overwrites = input;
    }
  }

  void find_urgent() {
    std::vector<int> pending;
    const auto mark = [&](int s) {
      if (!std::exchange(info_[s].urgent, true)) pending.push_back(s);
    };
    for (int s = 0; s < count(); ++s)
      if (std::ranges::any_of(steps_[s].members, [&](int i) { return graph_[i].op.may_fail(); })) mark(s);
    while (!pending.empty()) {
      const int s = pending.back();
      pending.pop_back();
      for (int storage : info_[s].reads)
        if (writer_[storage] >= 0) mark(writer_[storage]);
      for (int awaited : waits_of(graph_, steps_[s]))
        if (writer_[awaited] >= 0) mark(writer_[awaited]);
      for (int before : info_[s].waits) mark(before);
    }
  }

  /// The step with the lowest rank runs first.
  std::tuple<bool, bool, std::int64_t, int> rank(int s) const {
    const Info& info = info_[s];
    const bool waits = info.overwrites >= 0 && readers_left_[info.overwrites] > 1;
    std::int64_t growth = 0;
    for (int i : steps_[s].outputs) growth += bytes_[i];
    for (int storage : info.reads)
      if (readers_left_[storage] == 1) growth -= bytes_[storage];
    return {!info.urgent, waits, std::min<std::int64_t>(growth, 0), info.last};
  }

  void finish(int s) {
    for (int storage : info_[s].reads) --readers_left_[storage];
    for (int follower : info_[s].followers)
      if (--info_[follower].missing == 0) ready_.push_back(follower);
  }

  const Graph& graph_;
  Numbered<Step> steps_;
  Numbered<Info> info_;           // per step
  PerValue<std::int64_t> bytes_;  // of its memory if it is a temporary
  PerValue<int> readers_left_;    // steps that have yet to read it
  PerValue<int> writer_;
  std::vector<int> ready_;
};

}  // namespace

std::vector<Step> order_for_memory(const Graph& graph, std::vector<Step> steps, std::span<const std::int64_t> symbols) {
  return MemoryOrderer(graph, std::move(steps), symbols).run();
}

}  // namespace gradus
