/// Lists of ranges, asked in turn until none is in the way. Decision 219 has the reasons.
#include "gradus/compiler/first_fit.h"
#include <algorithm>
#include <bit>
#include <functional>

namespace gradus {
namespace {
constexpr std::int64_t alignment = 64;
}

TakenMemory::TakenMemory(int steps)
    : steps_(std::max(steps, 1)), nodes_(2 * std::bit_ceil(static_cast<std::size_t>(steps_)) - 1) {}

std::int64_t TakenMemory::end_of_obstacle(const Ranges& ranges, std::int64_t at, std::int64_t bytes) {
  ++looked_at_;
  const auto next = std::ranges::upper_bound(ranges, at, {}, &Range::end);
  return next != ranges.end() && next->begin < at + bytes ? next->end : at;
}

/// The lists in the way of an interval: ranges taken throughout the nodes above its parts, or at any step of them.
void TakenMemory::find_lists(std::size_t node, int low, int high, const Interval& interval) {
  Node& here = nodes_[node];
  if (interval.first <= low && high <= interval.last) {
    if (!here.at_any.empty()) lists_.push_back(&here.at_any);
    parts_.push_back({high - low + 1, node});
    return;
  }
  if (!here.throughout.empty()) lists_.push_back(&here.throughout);
  const int middle = low + (high - low) / 2;
  if (interval.first <= middle) find_lists(2 * node + 1, low, middle, interval);
  if (interval.last > middle) find_lists(2 * node + 2, middle + 1, high, interval);
}

void TakenMemory::insert(std::size_t node, int low, int high, const Interval& interval, Range range) {
  add(nodes_[node].at_any, range);
  if (interval.first <= low && high <= interval.last) return add(nodes_[node].throughout, range);
  const int middle = low + (high - low) / 2;
  if (interval.first <= middle) insert(2 * node + 1, low, middle, interval, range);
  if (interval.last > middle) insert(2 * node + 2, middle + 1, high, interval, range);
}

/// Adds a range, joined with those that it touches.
void TakenMemory::add(Ranges& ranges, Range range) {
  const auto first = std::ranges::lower_bound(ranges, range.begin, {}, &Range::end);
  auto last = first;
  for (; last != ranges.end() && last->begin <= range.end; ++last)
    range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
  if (first == last) {
    ranges.insert(first, range);
  } else {
    *first = range;
    ranges.erase(first + 1, last);
  }
}

std::int64_t TakenMemory::least_offset(const Interval& interval, std::int64_t bytes) const {
  const auto from = from_.find({interval.first, bytes}), until = until_.find({interval.last, bytes});
  std::int64_t least = 0;
  if (from != from_.end() && from->second.other_end <= interval.last) least = from->second.end;
  if (until != until_.end() && until->second.other_end >= interval.first) least = std::max(least, until->second.end);
  return least;
}

std::int64_t TakenMemory::first_gap(std::span<const Ranges* const> lists, std::int64_t at, std::int64_t bytes) {
  // Until no list has moved it since it was last asked.
  for (std::size_t asked = 0, list = 0; asked < lists.size(); list = (list + 1) % lists.size()) {
    const std::int64_t end = end_of_obstacle(*lists[list], at, bytes);
    asked = end == at ? asked + 1 : 0;
    at = end;
  }
  return at;
}

/// Memory is only ever taken, so a search goes on where the last one for as many bytes, or fewer, has ended: all of
/// them together pass each range once.
std::int64_t TakenMemory::least_within(std::size_t node, std::int64_t bytes) {
  auto known = gaps_.upper_bound({node, bytes});
  const bool is_known = known != gaps_.begin() && (--known)->first.first == node;
  of_node_.assign(1, &nodes_[node].at_any);
  for (std::size_t above = node; above > 0;) {
    above = (above - 1) / 2;
    if (!nodes_[above].throughout.empty()) of_node_.push_back(&nodes_[above].throughout);
  }
  return gaps_[{node, bytes}] = first_gap(of_node_, is_known ? known->second : 0, bytes);
}

std::int64_t TakenMemory::take(const Interval& interval, std::int64_t bytes) {
  if (bytes == 0) return 0;
  lists_.clear();
  parts_.clear();
  find_lists(0, 0, steps_ - 1, interval);
  std::int64_t least = least_offset(interval, bytes);
  // Most of a long interval are its two largest parts: values of one size that many layers keep for the way back have
  // them in common, and those are in the way of each other.
  if (constexpr std::size_t few = 3; parts_.size() > few) {
    std::ranges::partial_sort(parts_, parts_.begin() + 2, std::greater<>(), &Part::steps);
    for (const Part& part : {parts_[0], parts_[1]}) least = std::max(least, least_within(part.node, bytes));
  }
  const std::int64_t at = first_gap(lists_, least, bytes);
  insert(0, 0, steps_ - 1, interval, {at, at + bytes});
  from_[{interval.first, bytes}] = {interval.last, at + bytes};
  until_[{interval.last, bytes}] = {interval.first, at + bytes};
  return at;
}

namespace {

/// Up to this many are asked one by one, without memory.
constexpr std::size_t few = 16;

/// One that ends before it begins, of a step without work, counts from its end on.
Interval in_order(const Interval& i) { return {i.bytes, std::min(i.first, i.last), std::max(i.first, i.last)}; }
std::int64_t aligned_bytes(const Interval& i) { return (i.bytes + alignment - 1) / alignment * alignment; }

/// The end of one of `placed` that is in the way of [at, at + bytes) in steps of `interval`; `at` if none is.
std::int64_t end_of_obstacle(std::span<const Interval> intervals, std::span<const std::size_t> placed,
                             const std::vector<std::int64_t>& offsets, const Interval& interval, std::int64_t at) {
  for (const std::size_t i : placed) {
    const Interval other = in_order(intervals[i]);
    const std::int64_t begin = offsets[i], end = begin + aligned_bytes(other);
    const bool meets = other.first <= interval.last && interval.first <= other.last;
    if (meets && begin < at + aligned_bytes(interval) && at < end) return end;
  }
  return at;
}

Layout first_fit_of_few(std::span<const Interval> intervals, std::span<const std::size_t> order) {
  Layout layout{std::vector<std::int64_t>(intervals.size(), 0), 0};
  for (std::size_t k = 0; k < order.size(); ++k) {
    const Interval interval = in_order(intervals[order[k]]);
    std::int64_t& at = layout.offsets[order[k]];
    for (bool moved = interval.bytes > 0; moved; layout.looked_at += static_cast<std::int64_t>(k)) {
      const std::int64_t next = end_of_obstacle(intervals, order.first(k), layout.offsets, interval, at);
      moved = next != at;
      at = next;
    }
    layout.bytes = std::max(layout.bytes, at + aligned_bytes(interval));
  }
  return layout;
}

}  // namespace

Layout first_fit(std::span<const Interval> intervals, std::span<const std::size_t> order) {
  if (intervals.size() <= few) return first_fit_of_few(intervals, order);
  int steps = 0;
  for (const Interval& i : intervals) steps = std::max({steps, i.first + 1, i.last + 1});
  TakenMemory taken(steps);
  Layout layout{std::vector<std::int64_t>(intervals.size(), 0), 0};
  for (const std::size_t i : order) {
    const std::int64_t bytes = aligned_bytes(intervals[i]);
    layout.offsets[i] = taken.take(in_order(intervals[i]), bytes);
    layout.bytes = std::max(layout.bytes, layout.offsets[i] + bytes);
  }
  layout.looked_at = taken.looked_at();
  return layout;
}

}  // namespace gradus
