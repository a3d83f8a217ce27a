/// Long sums: means, variances and normalization of long rows with an offset, running sums and products of many
/// elements. References are f64, which loses nothing at this length, and plain loops in the order of the contract.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::long_sums_test {
namespace {

double ulp(double x) {
  const float size = std::abs(static_cast<float>(x));
  return static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity()) - size);
}

/// f32 [1, n]
Tensor row_near(double offset, std::int64_t n, bool is_normal) {
  const Tensor noise = is_normal ? random::normal({1, n}, {.dtype = f64, .seed = 7})
                                 : random::uniform({1, n}, {.dtype = f64, .seed = 7});
  return cast(noise + offset, f32);
}

void expect_right_statistics(double offset, std::int64_t n, bool is_normal) {
  const Tensor x = row_near(offset, n, is_normal), exact = cast(x, f64);
  const std::string where = text(n, is_normal ? " normal" : " uniform", " numbers near ", offset);
  const double size = reduce_mean(abs(exact)).item(), variance = reduce_variance(exact).item();
  EXPECT_LE(std::abs(reduce_mean(x).item() - reduce_mean(exact).item()), 2 * ulp(size)) << where;
  const double own = reduce_variance(x).item();
  EXPECT_GE(own, 0) << where;
  EXPECT_LE(std::abs(own - variance), 1e-3 * variance) << where;
  const auto normalized = [](const Tensor& t) { return layer_normalization(t, {.epsilon = 1e-6}); };
  EXPECT_LE(max_abs_difference(cast(normalized(x), f64), normalized(exact)), 0.03) << where;
}

TEST(LongRows, HaveRightStatisticsWithAnOffset) {
  for (const std::int64_t n : {4096, 5000, 20000, 32768, 100000, 1000000})
    for (const double offset : {0.0, 1e3, -3e4, 1e5})
      for (const bool is_normal : {false, true})
        if (n < 1000000 || !is_normal) expect_right_statistics(offset, n, is_normal);
  expect_right_statistics(1e5, 5000000, false);
}

/// Additions of equal numbers all round in the same direction.
TEST(LongRows, OfOneNumberHaveNoNegativeVariance) {
  for (const std::int64_t n : {4096, 33333, 1000000})
    for (const double number : {0.1, 99999.9, -1e5, 1e15}) {
      const Tensor x = full({1, n}, number);
      const double variance = reduce_variance(x, {.axis = {-1}}).item(), most = 16 * ulp(number);
      EXPECT_GE(variance, 0) << n << ' ' << number;
      EXPECT_LE(variance, most * most) << n << ' ' << number;
    }
}

TEST(RunningSums, OfManyElementsAreRight) {
  const Tensor sums = cumsum(full({5000000}, 0.0005f));
  EXPECT_NEAR(sums[-1].item(), 5000000 * static_cast<double>(0.0005f), 0.1);
  const Tensor exact = cumsum(cast(full({5000000}, 0.0005f), f64));
  EXPECT_LE(reduce_max(abs(cast(sums, f64) - exact) / exact).item(), 1e-4);
}

TEST(RunningSums, OfPositiveNumbersNeverFall) {
  for (const std::int64_t n : {2049, 10000, 300000}) {
    const Tensor sums = cumsum(random::uniform({n}, {.seed = 3}));
    const Tensor before = slice_within(sums, 0, 0, n - 1), after = slice_within(sums, 0, 1, n - 1);
    EXPECT_EQ(reduce_all(after >= before).item(), 1) << n;
  }
}

// ---------------------------------------------------------------- the order, as plainly as it can be said

struct Way {
  bool exclusive, reverse;
};

/// One line, in the type that accumulates.
template <class C> std::vector<C> running(std::vector<C> x, Way way) {
  if (way.reverse) std::ranges::reverse(x);
  std::vector<C> y;
  C before = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += 2048) {
    C place = 0;
    for (std::size_t i = begin; i < std::min(begin + 2048, x.size()); ++i) {
      if (way.exclusive) y.push_back(before + place);
      place = place + x[i];
      if (!way.exclusive) y.push_back(before + place);
    }
    before = before + place;
  }
  if (way.reverse) std::ranges::reverse(y);
  return y;
}

/// [2, n, inner] along axis 1, line by line.
template <class T, class C = T> void expect_sums(std::int64_t n, std::int64_t inner, Way way) {
  const DType t = dtype_of<T>();
  const Tensor x = cast(random::uniform({2, n, inner}, {.low = -3, .high = 5, .seed = 2}), t);
  const auto from = x.to_vector<T>();
  const auto sums = cumsum(x, {.axis = 1, .exclusive = way.exclusive, .reverse = way.reverse}).to_vector<T>();
  for (std::int64_t line = 0; line < 2 * inner; ++line) {
    const auto at = [&](std::int64_t i) {
      return static_cast<std::size_t>((line / inner * n + i) * inner + line % inner);
    };
    std::vector<C> own;
    for (std::int64_t i = 0; i < n; ++i) own.push_back(static_cast<C>(from[at(i)]));
    const auto expected = running<C>(own, way);
    for (std::int64_t i = 0; i < n; ++i)
      ASSERT_EQ(sums[at(i)], static_cast<T>(expected[static_cast<std::size_t>(i)]))
          << t << " [2," << n << ',' << inner << "] line " << line << " element " << i;
  }
}

TEST(RunningSums, AreTakenInBlocks) {
  for (const Way way : {Way{false, false}, {true, false}, {false, true}, {true, true}}) {
    for (const std::int64_t n : {0, 1, 2047, 2048, 2049, 5000}) expect_sums<float>(n, 1, way);
    expect_sums<float>(4099, 3, way);
    expect_sums<float>(2100, 300, way);
    expect_sums<float>(2051, 1030, way);
    expect_sums<double>(4500, 2, way);
    expect_sums<std::int32_t>(4500, 2, way);
    expect_sums<half, float>(4500, 1, way);
    expect_sums<bfloat16, float>(4500, 5, way);
  }
}

/// A block whose own sums overflow, while the total sums so far do not.
TEST(RunningSums, StayInTheRangeThatTheyHaveThemselves) {
  const Tensor x = concat({full({2048}, -1e35f), full({2048}, 2e35f)}, 0);
  EXPECT_LE(max_abs_difference(cast(cumsum(x), f64), cumsum(cast(x, f64))), 1e-4 * 3e38);
}

TEST(RunningSums, PassOnInfinityAndNaN) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const double odd : {infinity, -infinity, nan}) {
    const Tensor x = concat({full({3000}, 1.0f), full({1}, odd), full({3000}, 1.0f)}, 0);
    const std::vector<float> sums = cumsum(x).to_vector<float>();
    EXPECT_EQ(sums[2999], 3000);
    for (std::size_t i = 3000; i < sums.size(); ++i)
      ASSERT_TRUE(std::isnan(odd) ? std::isnan(sums[i]) : sums[i] == static_cast<float>(odd)) << i << ' ' << odd;
  }
}

}  // namespace
}  // namespace gradus::long_sums_test
