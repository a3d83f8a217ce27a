/// The order of elements: keys against comparisons, and how many comparisons a selection takes.
#include "gradus/tensor/element_order.h"
#include <gtest/gtest.h>
#include <cmath>
#include <numeric>
#include <random>
#include <ranges>
#include <vector>
#include "gradus/tensor/half.h"

namespace gradus::element_order::element_order_test {
namespace {

/// True if a stands before b, written with comparisons of numbers alone.
template <bool descending, class T> bool stands_before(T a, T b) {
  if (descending ? b < a : a < b) return true;
  return a == a && !(b == b);
}

template <class T> class Keys : public testing::Test {};
using Types = testing::Types<float, double, half, bfloat16, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                             std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, bool>;
TYPED_TEST_SUITE(Keys, Types);

template <class T> std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>)
    return {
        Limits::min(), Limits::max(), T(0), T(1), static_cast<T>(Limits::max() / 2), static_cast<T>(Limits::min() / 2)};
  std::vector<T> all;
  for (const float x : {0.0f, 1.0f, 1.0078125f, 3e4f, 6e-8f, 1e-40f, std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()})
    for (const float sign : {1.0f, -1.0f}) all.push_back(static_cast<T>(std::copysign(x, sign)));
  return all;
}

TYPED_TEST(Keys, AreOrderedAsTheNumbers) {
  for (const TypeParam a : edges<TypeParam>())
    for (const TypeParam b : edges<TypeParam>()) {
      EXPECT_EQ(key_of<false>(a) < key_of<false>(b), (stands_before<false>(a, b))) << +double(a) << " " << +double(b);
      EXPECT_EQ(key_of<true>(a) < key_of<true>(b), (stands_before<true>(a, b))) << +double(a) << " " << +double(b);
    }
}

/// A key that counts how often keys are compared.
struct Counted {
  std::uint32_t value = 0;
  static inline std::int64_t comparisons = 0;
  friend bool operator<(const Counted& a, const Counted& b) {
    ++comparisons;
    return a.value < b.value;
  }
  friend bool operator!=(const Counted& a, const Counted& b) { return a.value != b.value; }
};

std::vector<std::vector<std::uint32_t>> rows(std::size_t n) {
  std::vector<std::uint32_t> ascending(n), descending(n), random(n), few(n);
  std::iota(ascending.begin(), ascending.end(), 0u);
  std::ranges::copy(ascending | std::views::reverse, descending.begin());
  std::mt19937 bits(7);
  for (std::uint32_t& x : random) x = static_cast<std::uint32_t>(bits());
  for (std::uint32_t& x : few) x = static_cast<std::uint32_t>(bits() % 3);
  return {ascending, descending, random, few, std::vector<std::uint32_t>(n, 5)};
}

TEST(ElementOrder, SelectingComparesFewKeys) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{10}, std::size_t{50}, std::size_t{1000}})
    for (const std::vector<std::uint32_t>& row : rows(100000)) {
      std::vector<Entry<Counted>> room(room_to_select(count));
      Counted::comparisons = 0;
      auto found = select_first<Counted>(row.size(), count, room, [&](std::size_t i) { return Counted{row[i]}; });
      const std::int64_t comparisons = Counted::comparisons;
      std::ranges::sort(found, [](const auto& a, const auto& b) {
        return a.key.value != b.key.value ? a.key.value < b.key.value : a.place < b.place;
      });
      std::vector<std::uint32_t> order(row.size());
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return row[i]; });
      ASSERT_EQ(found.size(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(found[i].place, order[i]);
      EXPECT_LE(comparisons, 10 * static_cast<std::int64_t>(row.size())) << "count " << count;
    }
}

TEST(ElementOrder, SortsAsComparisonsDo) {
  for (const std::size_t n : {std::size_t{1}, worth_digits - 1, worth_digits, std::size_t{5000}})
    for (const std::vector<std::uint32_t>& row : rows(n)) {
      std::vector<Entry<std::uint64_t>> entries(n), room(n);
      for (std::size_t i = 0; i < n; ++i)
        entries[i] = {std::uint64_t{row[i]} * 0x100000001, static_cast<std::uint32_t>(i)};
      std::vector<Entry<std::uint64_t>> expected = entries;
      std::sort(expected.begin(), expected.end());
      sort_entries<std::uint64_t>(entries, room);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(entries[i].place, expected[i].place) << n << " " << i;
    }
}

// Several entries share none, a few or most of the upper halves of the keys.
TEST(ElementOrder, SortsKeysThatShareUpperHalves) {
  for (const int bits : {32, 17, 8})
    for (const std::vector<std::uint32_t>& row : rows(5000)) {
      std::vector<Entry<std::uint64_t>> entries(row.size()), room(row.size());
      for (std::uint32_t i = 0; i < row.size(); ++i)
        entries[i] = {std::uint64_t{row[i] >> (32 - bits)} << 32 | (row[i] * 2654435761u & ~3u), i};
      std::vector<Entry<std::uint64_t>> expected = entries;
      std::sort(expected.begin(), expected.end());
      sort_entries<std::uint64_t>(entries, room);
      for (std::size_t i = 0; i < row.size(); ++i) ASSERT_EQ(entries[i].place, expected[i].place) << bits << " " << i;
    }
}

}  // namespace
}  // namespace gradus::element_order::element_order_test
