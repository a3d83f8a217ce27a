/// Placing live ranges in memory: first fit, with about log(n)^2 of work for each of n.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>
#include "gradus/compiler/plan_memory.h"

namespace gradus {

/// Memory that is taken over time. A tree over the steps: each node has the ranges taken throughout its steps by
/// intervals put there, and those taken at any of its steps by intervals put there or below, as ranges that do not
/// touch.
class TakenMemory {
 public:
  /// Memory for steps 0 to `steps` - 1.
  explicit TakenMemory(int steps);
  /// The lowest offset at which `bytes` are free in all steps of the interval; takes them. With 0 bytes: 0.
  std::int64_t take(const Interval& interval, std::int64_t bytes);
  /// The number of ranges that were looked at: the work grows with it.
  std::int64_t looked_at() const { return looked_at_; }

 private:
  struct Range {
    std::int64_t begin, end;
  };
  using Ranges = std::vector<Range>;
  struct Node {
    Ranges throughout, at_any;
  };
  /// A node all of whose steps are the interval's.
  struct Part {
    int steps;
    std::size_t node;
  };
  void find_lists(std::size_t node, int low, int high, const Interval& interval);
  void insert(std::size_t node, int low, int high, const Interval& interval, Range range);
  static void add(Ranges& ranges, Range range);
  /// Below it nothing fits: there was no room for as many bytes over fewer of the same steps.
  std::int64_t least_offset(const Interval& interval, std::int64_t bytes) const;
  /// Below it `bytes` do not fit, at the latest since they were last asked for, over the steps of one node.
  std::int64_t least_within(std::size_t node, std::int64_t bytes);
  /// The lowest offset from `at` on at which no list is in the way.
  std::int64_t first_gap(std::span<const Ranges* const> lists, std::int64_t at, std::int64_t bytes);
  /// Where the range that is in the way of [at, at + bytes) ends; `at` if none is.
  std::int64_t end_of_obstacle(const Ranges& ranges, std::int64_t at, std::int64_t bytes);

  int steps_;
  std::vector<Node> nodes_;  // the children of i are 2 i + 1 and 2 i + 2
  std::vector<const Ranges*> lists_, of_node_;
  std::vector<Part> parts_;  // of the interval
  std::int64_t looked_at_ = 0;
  struct Known {
    int other_end;     // of the interval
    std::int64_t end;  // of the memory that it took
  };
  using ByBytes = std::map<std::pair<int, std::int64_t>, Known>;
  ByBytes from_, until_;  // by first or last step, and bytes: the last one that was asked for
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> gaps_;  // the least offset, by node and bytes
};

/// Each interval, in the order given, at the lowest offset that is free while it lives.
Layout first_fit(std::span<const Interval> intervals, std::span<const std::size_t> order);

}  // namespace gradus
