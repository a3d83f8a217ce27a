/// Kernels that take several elements at a time give the bits of one at a time: parts that are interleaved, windows
/// that choose, divisors of integers, whose formula takes a fixed number of steps.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include "gradus/function/function.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"
#include "gradus/ops/spectral.h"

namespace gradus::whole_vectors_test {
namespace {

template <class T> std::vector<T> interleaved(const std::vector<std::vector<T>>& parts) {
  std::vector<T> all;
  for (std::size_t row = 0; row < parts[0].size(); ++row)
    for (const std::vector<T>& part : parts) all.push_back(part[row]);
  return all;
}

template <class T> void expect_interleaved(std::int64_t rows, std::size_t count) {
  std::vector<std::vector<T>> parts(count);
  std::vector<Tensor> tensors;
  for (std::size_t k = 0; k < count; ++k) {
    for (std::int64_t row = 0; row < rows; ++row)
      parts[k].push_back(static_cast<T>(row * 7 + static_cast<int>(k) * 31));
    tensors.push_back(from_values(parts[k], {rows}));
  }
  EXPECT_EQ(stack(tensors, -1).to_vector<T>(), interleaved(parts)) << rows << " rows of " << count;
}

TEST(WholeVectors, StacksOfShortPartsAreInterleaved) {
  for (const std::int64_t rows : {1, 7, 64, 5001})
    for (const std::size_t parts : {2, 3, 4, 5, 9}) {
      expect_interleaved<float>(rows, parts);
      expect_interleaved<double>(rows, parts);
      expect_interleaved<std::uint8_t>(rows, parts);
      expect_interleaved<std::int64_t>(rows, parts);
    }
}

TEST(WholeVectors, PartsOfUnequalLengthStandSideBySide) {
  const Tensor x = reshape(range(5001 * 3, f32), {5001, 3}), y = reshape(-range(5001, f32), {5001, 1});
  const std::vector<float> joined = concat({x, y, x}, 1).to_vector<float>();
  for (std::int64_t row = 0; row < 5001; ++row)
    for (std::int64_t column = 0; column < 7; ++column) {
      const auto want = static_cast<float>(column == 3 ? -row : row * 3 + column % 4);
      ASSERT_EQ(joined[static_cast<std::size_t>(row * 7 + column)], want) << row << " " << column;
    }
}

/// The largest of each window of `size` by `size`, the first NaN of those that have one.
std::vector<float> largest_of_windows(const std::vector<float>& x, std::int64_t side, std::int64_t channels,
                                      std::int64_t size) {
  const std::int64_t windows = side - size + 1;
  std::vector<float> all;
  for (std::int64_t at = 0; at < windows * windows * channels; ++at) {
    const std::int64_t row = at / channels / windows, column = at / channels % windows;
    float best = -std::numeric_limits<float>::infinity();
    for (std::int64_t tap = 0; tap < size * size; ++tap) {
      const float each =
          x[static_cast<std::size_t>(((row + tap / size) * side + column + tap % size) * channels + at % channels)];
      if (each > best || std::isnan(each)) best = each;
    }
    all.push_back(best);
  }
  return all;
}

// Windows of up to 16 taps are read in vectors, larger ones element by element.
TEST(WholeVectors, WindowsChooseTheLargest) {
  constexpr std::int64_t side = 11;
  for (const std::int64_t channels : {1, 3, 8, 21})
    for (const std::int64_t size : {1, 2, 4, 5}) {
      const Tensor drawn = random::integers({side * side * channels}, {.low = -50, .high = 50, .seed = 1});
      std::vector<float> x = cast(drawn, f32).to_vector<float>();
      x[static_cast<std::size_t>(30 * channels)] = std::nanf("");
      const std::vector<float> want = largest_of_windows(x, side, channels, size);
      for (const DType dtype : {f32, f64, bf16}) {
        const Tensor images = cast(from_values(x, {1, side, side, channels}), dtype);
        const Tensor found = max_pool2d(images, {size, size}, {.strides = {1}});
        const std::vector<float> values = cast(found, f32).to_vector<float>();
        ASSERT_EQ(values.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i)
          ASSERT_TRUE(values[i] == want[i] || (std::isnan(values[i]) && std::isnan(want[i])))
              << dtype << " " << channels << " channels, windows of " << size << ", element " << i;
      }
    }
}

/// |x|, of the least number, too.
template <class T> std::uint64_t magnitude(T x) {
  const auto bits = static_cast<std::uint64_t>(x);
  return std::is_signed_v<T> && x < T{0} ? 0 - bits : bits;
}

template <class T> void expect_divisors(const std::vector<T>& a, const std::vector<T>& b) {
  const auto n = static_cast<std::int64_t>(a.size());
  const Tensor left = from_values(std::span<const T>(a), {n}), right = from_values(std::span<const T>(b), {n});
  const std::vector<T> lazy = gcd(left, right).template to_vector<T>();
  const std::vector<T> compiled =
      function([](Tensor x, Tensor y) { return gcd(x, y); })(left, right).template to_vector<T>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto want = static_cast<T>(std::gcd(magnitude(a[i]), magnitude(b[i])));
    ASSERT_EQ(lazy[i], want) << +a[i] << " " << +b[i];
    ASSERT_EQ(compiled[i], want) << +a[i] << " " << +b[i];
  }
}

/// All pairs of these numbers.
template <class T> void expect_divisors_of_pairs(const std::vector<T>& numbers) {
  std::vector<T> a, b;
  for (const T x : numbers)
    for (const T y : numbers) a.push_back(x), b.push_back(y);
  expect_divisors(a, b);
}

// Neighbours among Pell's and among Fibonacci's numbers take the most steps.
template <class T> std::vector<T> slow_and_extreme_numbers() {
  std::vector<T> numbers{0, 1, 6, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  numbers.push_back(static_cast<T>(numbers[3] + 1)), numbers.push_back(static_cast<T>(numbers[4] - 1));
  const std::uint64_t most = magnitude(numbers[4]);
  for (const std::uint64_t factor : {1, 2})
    for (std::uint64_t last = 1, next = factor; next <= most; last = std::exchange(next, factor * next + last)) {
      numbers.push_back(static_cast<T>(next));
      if (std::is_signed_v<T>) numbers.push_back(static_cast<T>(0 - next));
      if (next > most / 3) break;
    }
  return numbers;
}

TEST(WholeVectors, DivisorsAreTheGreatest) {
  std::vector<std::int8_t> bytes;
  for (int i = -128; i < 128; ++i) bytes.push_back(static_cast<std::int8_t>(i));
  expect_divisors_of_pairs(bytes);
  expect_divisors_of_pairs(slow_and_extreme_numbers<std::uint8_t>());
  expect_divisors_of_pairs(slow_and_extreme_numbers<std::int16_t>());
  expect_divisors_of_pairs(slow_and_extreme_numbers<std::uint16_t>());
  expect_divisors_of_pairs(slow_and_extreme_numbers<std::int32_t>());
  expect_divisors_of_pairs(slow_and_extreme_numbers<std::uint32_t>());
  expect_divisors_of_pairs(slow_and_extreme_numbers<std::int64_t>());
}

TEST(WholeVectors, AKaiserWindowIsAConstantOfATrace) {
  const auto windowed = function([](Tensor x) { return x * kaiser_window(33, 8.0, f64); });
  const std::vector<double> lazy = kaiser_window(33, 8.0, f64).to_vector<double>();
  EXPECT_EQ(windowed(ones({33}, f64)).to_vector<double>(), lazy);
  EXPECT_EQ(lazy[16], 1.0);
  for (std::size_t i = 0; i < 33; ++i) EXPECT_EQ(lazy[i], lazy[32 - i]) << i;
  EXPECT_EQ(kaiser_window(1).to_vector<float>(), std::vector<float>{1.0f});
  EXPECT_EQ(kaiser_window(0).shape(), Shape{0});
}

}  // namespace
}  // namespace gradus::whole_vectors_test
