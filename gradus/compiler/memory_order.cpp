/// List scheduling: of the steps that are ready, the one that frees most, else the first.
#include "gradus/compiler/memory_order.h"
#include <algorithm>
#include <tuple>

namespace gradus {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

class MemoryOrderer {
 public:
  MemoryOrderer(const Graph& graph, std::vector<Step> steps, std::span<const std::int64_t> symbols)
      : graph_(graph), steps_(std::move(steps)), info_(steps_.size()) {
    bytes_.assign(at(graph.size()), 0);
    readers_left_.assign(at(graph.size()), 0);
    for (const Step& step : steps_)
      for (int i : step.outputs)
        bytes_[at(i)] = bytes_of({graph[i].spec.dtype, graph[i].spec.shape.evaluated(symbols)});
    for (int o : graph.outputs) bytes_[at(storage_of(graph, o))] = 0;  // memory of the caller's
    connect();
    find_overwrites();
    find_urgent();
  }

  std::vector<Step> run() {
    for (int s = 0; s < count(); ++s)
      if (info_[at(s)].missing == 0) ready_.push_back(s);
    std::vector<Step> ordered;
    while (!ready_.empty()) {
      const auto next = std::ranges::min_element(ready_, {}, [&](int s) { return rank(s); });
      const int s = *next;
      *next = ready_.back();
      ready_.pop_back();
      finish(s);
      ordered.push_back(std::move(steps_[at(s)]));
    }
    internal_check(ordered.size() == steps_.size(), "steps depend on each other in a circle");
    return ordered;
  }

 private:
  struct Info {
    std::vector<int> reads;      // storages, each once
    std::vector<int> followers;  // steps that read what this one writes, or wait for it
    std::vector<int> waits;      // steps that have to come before, though nothing of theirs is read
    int missing = 0;             // steps that it waits for
    int overwrites = -1;         // the dying input that an output of it may take over
    int last = 0;                // member
    bool urgent = false;         // it or what needs it may fail
  };
  int count() const { return static_cast<int>(steps_.size()); }

  void connect() {
    std::vector<int> writer(at(graph_.size()), -1);
    for (int s = 0; s < count(); ++s)
      for (int i : steps_[at(s)].outputs) writer[at(i)] = s;
    for (int s = 0; s < count(); ++s) {
      Info& info = info_[at(s)];
      info.last = steps_[at(s)].members.back();
      for (const Read& read : reads_of(graph_, steps_[at(s)])) info.reads.push_back(read.storage);
      std::ranges::sort(info.reads);
      info.reads.erase(std::ranges::unique(info.reads).begin(), info.reads.end());
      for (int storage : info.reads) {
        ++readers_left_[at(storage)];
        if (writer[at(storage)] < 0) continue;
        follow(writer[at(storage)], s);
      }
      for (int awaited : waits_of(graph_, steps_[at(s)]))
        if (writer[at(awaited)] >= 0) follow(writer[at(awaited)], s);
    }
    writer_ = std::move(writer);
    connect_waits();
  }

  /// Steps behind barriers follow those that make what the barriers wait for.
  void connect_waits() {
    std::vector<int> maker(at(graph_.size()), -1);
    for (int s = 0; s < count(); ++s)
      for (int i : steps_[at(s)].members) maker[at(i)] = s;
    for (int s = 0; s < count(); ++s)
      for (int awaited : waits_of(graph_, steps_[at(s)]))
        if (const int before = maker[at(awaited)]; before >= 0 && before != s) {
          info_[at(before)].followers.push_back(s);
          info_[at(s)].waits.push_back(before);
          ++info_[at(s)].missing;
        }
  }

  void follow(int before, int s) {
    info_[at(before)].followers.push_back(s);
    ++info_[at(s)].missing;
  }

  void find_overwrites() {
    for (int o : graph_.outputs) {
      const int output = storage_of(graph_, o), s = writer_[at(output)];
      if (s < 0) continue;
      for (int input : graph_.dying)
        if (graph_[input].spec == graph_[output].spec && std::ranges::binary_search(info_[at(s)].reads, input))
          info_[at(s)].overwrites = input;
    }
  }

  void find_urgent() {
    std::vector<int> pending;
    const auto mark = [&](int s) {
      if (!std::exchange(info_[at(s)].urgent, true)) pending.push_back(s);
    };
    for (int s = 0; s < count(); ++s)
      if (std::ranges::any_of(steps_[at(s)].members, [&](int i) { return graph_[i].op.may_fail(); })) mark(s);
    while (!pending.empty()) {
      const int s = pending.back();
      pending.pop_back();
      for (int storage : info_[at(s)].reads)
        if (writer_[at(storage)] >= 0) mark(writer_[at(storage)]);
      for (int awaited : waits_of(graph_, steps_[at(s)]))
        if (writer_[at(awaited)] >= 0) mark(writer_[at(awaited)]);
      for (int before : info_[at(s)].waits) mark(before);
    }
  }

  /// What runs first has the lowest rank.
  std::tuple<bool, bool, std::int64_t, int> rank(int s) const {
    const Info& info = info_[at(s)];
    const bool waits = info.overwrites >= 0 && readers_left_[at(info.overwrites)] > 1;
    std::int64_t growth = 0;
    for (int i : steps_[at(s)].outputs) growth += bytes_[at(i)];
    for (int storage : info.reads)
      if (readers_left_[at(storage)] == 1) growth -= bytes_[at(storage)];
    return {!info.urgent, waits, std::min<std::int64_t>(growth, 0), info.last};
  }

  void finish(int s) {
    for (int storage : info_[at(s)].reads) --readers_left_[at(storage)];
    for (int follower : info_[at(s)].followers)
      if (--info_[at(follower)].missing == 0) ready_.push_back(follower);
  }

  const Graph& graph_;
  std::vector<Step> steps_;
  std::vector<Info> info_;
  std::vector<std::int64_t> bytes_;  // per value: of its memory if it is a temporary
  std::vector<int> readers_left_;    // per value: steps that have yet to read it
  std::vector<int> writer_;          // per value
  std::vector<int> ready_;
};

}  // namespace

std::vector<Step> order_for_memory(const Graph& graph, std::vector<Step> steps, std::span<const std::int64_t> symbols) {
  return MemoryOrderer(graph, std::move(steps), symbols).run();
}

}  // namespace gradus
