/// Running sums and products along an axis, in the order of the numeric contract: blocks of 2,048 elements, within a
/// block one chain. An element is the last one of the block before, combined with its place in its own block. So errors
/// grow with the length of a block and with the number of blocks, and running sums of positive numbers never fall.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/backend/cpu/kernels/kernels.h"
#include "gradus/backend/cpu/kernels/sum_of.h"

namespace gradus::library {

/// How a running sum takes in an element. `is_within`: a block's own chain says what it would say from any beginning.
struct RunningSum {
  template <class C> static constexpr C identity = std::is_floating_point_v<C> ? C(-0.0) : C(0);  // keeps -0
  template <class C> static C combine(C a, C b) { return sum_of(a, b); }
  template <class C> static bool is_within(C place) {
    if constexpr (std::is_floating_point_v<C>) return std::abs(place) <= std::numeric_limits<C>::max();
    else return true;
  }
};
struct RunningProduct {
  template <class C> static constexpr C identity = C(1);
  template <class C> static C combine(C a, C b) {
    if constexpr (std::is_integral_v<C>)
      return static_cast<C>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    else return a * b;
  }
  template <class C> static bool is_within(C place) {
    if constexpr (std::is_floating_point_v<C>)
      return std::abs(place) >= std::numeric_limits<C>::min() && std::abs(place) <= std::numeric_limits<C>::max();
    else return true;
  }
};

/// Columns of one outer index. `first_row`: of x, taken in place of its own first row.
template <class T> struct RunningColumns {
  const T *x, *first_row;
  T* y;
  AroundAxis around;
  bool exclusive = false, reverse = false;  // exclusive: of sums alone
};

constexpr std::int64_t running_block = 2048, running_width = 256;  // columns that advance together

/// So many columns from `column` on, at most `width` of them.
template <class Step, class T, std::int64_t width> class RunningBlocks {
 public:
  RunningBlocks(const RunningColumns<T>& columns, std::int64_t column, std::int64_t count)
      : c_(columns), column_(column), count_(count) {
    // The first of sums that leave their own element out is 0.
    std::fill_n(base_, count, c_.exclusive ? C(0) : Step::template identity<C>);
  }
  void run() {
    for (std::int64_t begin = 0; begin < c_.around.n; begin += running_block) {
      const std::int64_t end = std::min(c_.around.n, begin + running_block);
      if (c_.exclusive) run_block<true>(begin, end);
      else run_block<false>(begin, end);
    }
  }

 private:
  using C = ComputedIn<T>;

  std::int64_t count() const { return width == 1 ? 1 : count_; }
  std::int64_t at(std::int64_t step) const {
    return (c_.reverse ? c_.around.n - 1 - step : step) * c_.around.inner + column_;
  }
  const T* row(std::int64_t step) const { return (step == 0 ? c_.first_row : c_.x) + at(step); }

  template <bool exclusive> void run_block(std::int64_t begin, std::int64_t end) {
    C place[std::size_t{width}];
    bool is_within[std::size_t{width}];
    std::fill_n(place, count(), Step::template identity<C>);
    std::fill_n(is_within, count(), true);
    for (std::int64_t step = begin; step < end; ++step) {
      const T* const x = row(step);
      T* const y = c_.y + at(step);
      for (std::int64_t i = 0; i < count(); ++i) {
        if constexpr (exclusive) y[i] = static_cast<T>(Step::combine(base_[i], place[i]));
        place[i] = Step::combine(place[i], static_cast<C>(x[i]));
        if constexpr (!exclusive) y[i] = static_cast<T>(Step::combine(base_[i], place[i]));
        is_within[i] = is_within[i] & Step::is_within(place[i]);
      }
    }
    for (std::int64_t i = 0; i < count(); ++i)
      if (is_within[i]) base_[i] = Step::combine(base_[i], place[i]);
      else run_chain<exclusive>(i, begin, end);
  }

  /// A block whose own chain leaves the range of numbers goes on from the last element of the block before.
  template <bool exclusive> void run_chain(std::int64_t i, std::int64_t begin, std::int64_t end) {
    C& state = base_[i];
    for (std::int64_t step = begin; step < end; ++step) {
      if constexpr (exclusive) c_.y[at(step) + i] = static_cast<T>(state);
      state = Step::combine(state, static_cast<C>(row(step)[i]));
      if constexpr (!exclusive) c_.y[at(step) + i] = static_cast<T>(state);
    }
  }

  const RunningColumns<T>& c_;
  const std::int64_t column_, count_;
  C base_[std::size_t{width}];
};

/// Columns [first, last).
template <class Step, class T>
void run_in_blocks(const RunningColumns<T>& columns, std::int64_t first, std::int64_t last) {
  for (std::int64_t column = first; column < last; column += running_width) {
    const std::int64_t count = std::min(running_width, last - column);
    if (count == 1) RunningBlocks<Step, T, 1>(columns, column, 1).run();
    else RunningBlocks<Step, T, running_width>(columns, column, count).run();
  }
}

}  // namespace gradus::library
