/// What rows cannot say of elementwise ops: integers at their limits, zero cotangents through masks and twice, numbers
/// beside tensors as data, compound assignment, comparisons on the host.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/function.h"
#include "gradus/function/traced_function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus::elementwise_test {
namespace {

template <class T> struct IntegerCase {
  T a, b, quotient, floored, remainder;
};

template <class T> void check_integers(const std::vector<IntegerCase<T>>& cases) {
  for (const auto& c : cases) {
    const Tensor a = constant(c.a), b = constant(c.b);
    EXPECT_EQ((a / b).to_vector<T>()[0], c.quotient) << c.a << " / " << c.b;
    EXPECT_EQ(floor_divide(a, b).to_vector<T>()[0], c.floored) << c.a << " floor_divide " << c.b;
    EXPECT_EQ(mod(a, b).to_vector<T>()[0], c.remainder) << c.a << " mod " << c.b;
  }
}

TEST(Elementwise, IntegerDivisionNeverTraps) {
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  check_integers<std::int32_t>({{7, 2, 3, 3, 1},
                                {-7, 2, -3, -4, 1},
                                {7, -2, -3, -4, -1},
                                {-7, -2, 3, 3, -1},
                                {5, 0, 0, 0, 5},
                                {-5, 0, 0, 0, -5},
                                {least, -1, least, least, 0},
                                {least, 3, -715827882, -715827883, 1}});
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  check_integers<std::int64_t>({{lowest, -1, lowest, lowest, 0}, {lowest, 0, 0, 0, lowest}, {-9, 4, -2, -3, 3}});
  check_integers<std::uint8_t>({{200, 7, 28, 28, 4}, {9, 0, 0, 0, 9}});
}

struct FloatCase {
  double a, b, remainder;
};

/// The remainder of a small number of the other sign is rounded to the divisor, also if the quotient is subnormal.
TEST(Elementwise, RemaindersAreThoseOfNumpy) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<FloatCase> cases{{-1e-20, 1, 1},        {1e-20, -1, -1}, {1e-20, 1, 1e-20}, {-1e-30, 1e30, 1e30},
                                     {1e-30, -1e30, -1e30}, {-4, 2, 0},      {4, -2, -0.0},     {-0.0, 3, 0},
                                     {0, -3, -0.0},         {7, -4, -1},     {-7, 4, 1},        {-1, inf, inf},
                                     {1, -inf, -inf},       {1, inf, 1},     {-3, -inf, -3},    {inf, 2, nan},
                                     {2, 0, nan},           {nan, 1, nan},   {1, nan, nan},     {0x1p100, 3, 1}};
  for (const DType t : {f32, f64}) {
    std::vector<double> a, b, want;
    for (const FloatCase& c : cases) a.push_back(c.a), b.push_back(c.b), want.push_back(c.remainder);
    const auto n = std::ssize(a);
    const Tensor x = cast(from_values(a, {n}), t), y = cast(from_values(b, {n}), t);
    const Tensor expected = cast(from_values(want, {n}), t), lazily = mod(x, y);
    auto compiled = function([](const Tensor& p, const Tensor& q) { return mod(p, q); });
    compiled(x, y);
    for (const Tensor& got : {lazily, compiled(x, y)}) {
      const auto is = cast(got, f64).to_vector<double>(), should = cast(expected, f64).to_vector<double>();
      for (std::size_t i = 0; i < is.size(); ++i) {
        EXPECT_TRUE(is[i] == should[i] || (std::isnan(is[i]) && std::isnan(should[i])))
            << t << ": mod(" << a[i] << ", " << b[i] << ") is " << is[i] << ", expected " << should[i];
        EXPECT_TRUE(is[i] != 0 || std::signbit(is[i]) == std::signbit(should[i])) << t << ' ' << a[i] << ' ' << b[i];
      }
    }
  }
}

TEST(Elementwise, IntegersWrapAround) {
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min(), most = -(least + 1);
  const Tensor x = constant({least, most});
  EXPECT_EQ((x + 1).to_vector<std::int32_t>(), (std::vector<std::int32_t>{least + 1, least}));
  EXPECT_EQ((-x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{least, -most}));
  EXPECT_EQ(abs(x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{least, most}));
  EXPECT_EQ((x * 2).to_vector<std::int32_t>(), (std::vector<std::int32_t>{0, -2}));
  EXPECT_EQ(pow(constant(3), 21).item(), static_cast<std::int32_t>(10460353203LL - 2 * 4294967296LL));
}

TEST(Elementwise, CastsSaturateAndWrap) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = from_values(std::vector<double>{-1e30, -1.9, 1.9, 300, 1e30, inf, -inf, nan}, {8});
  EXPECT_EQ(cast(x, i32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{INT32_MIN, -1, 1, 300, INT32_MAX, INT32_MAX, INT32_MIN, 0}));
  EXPECT_EQ(cast(x, u8).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0, 0, 1, 255, 255, 255, 0, 0}));
  EXPECT_EQ(cast(x, i64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{INT64_MIN, -1, 1, 300, INT64_MAX, INT64_MAX, INT64_MIN, 0}));
  EXPECT_EQ(cast(constant({-1, 256, 511}), u8).to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{255, 0, 255}));
}

/// A branch that is masked out adds nothing to the gradient, whatever it would be.
TEST(Elementwise, MaskedBranchesStayMasked) {
  const Tensor x = constant({0.0, -1.0, 4.0});
  const Tensor zero = zeros_like(x);
  const std::vector<std::function<Tensor(const Tensor&)>> branches{
      [](const Tensor& t) { return sqrt(t); },     [](const Tensor& t) { return log(t); },
      [](const Tensor& t) { return rsqrt(t); },    [](const Tensor& t) { return 1 / (t * t * (t + 1)); },
      [](const Tensor& t) { return pow(t, 0.5); }, [](const Tensor& t) { return pow(t, -1); }};
  for (const auto& branch : branches) {
    const Tensor y = where(x > zero, branch(x), zero);
    const std::vector<float> dx = vjp(y, Tensors{x})[0].to_vector<float>();
    EXPECT_EQ(dx[0], 0);
    EXPECT_EQ(dx[1], 0);
    EXPECT_NE(dx[2], 0);
  }
}

/// The rule for zero cotangents must not hide that a gradient is linear in its cotangent: the derivative by a cotangent
/// that is zero is the slope.
TEST(Elementwise, GradientsDifferentiateByAZeroCotangent) {
  const RecordingScope keep;
  const Tensor x = constant({0.25, 4.0}), g = zeros({2});
  for (const auto& [y, slope] : std::vector<std::pair<Tensor, std::vector<float>>>{
           {sqrt(x), {1, 0.25}}, {log(x), {4, 0.25}}, {1 / x, {-16, -0.0625}}, {pow(x, 0.5), {1, 0.25}}}) {
    const Tensor dx = vjp(y, Tensors{x}, g)[0];
    const std::vector<float> got = vjp(dx, Tensors{g})[0].to_vector<float>();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_FLOAT_EQ(got[i], slope[i]);
  }
}

TEST(Elementwise, NumbersInATraceAndOutsideAgree) {
  const Tensor x = constant({1.5, -2.25, 1e-3});
  const auto f = [](const Tensor& t) { return clip_by_value(3 * t - 0.1, -1, 2) / 7 + leaky_relu(t, 0.3); };
  TracedFunction traced({}, nullptr, 0);
  const Called called = traced.call(Tensors{x}, {}, [&](In in) { return Called{{f(in[0])}, {}}; });
  EXPECT_TRUE(bitwise_equal(f(x), called.tensors[0]));
}

TEST(Elementwise, CompoundAssignmentRebinds) {
  Tensor x = constant({1.0, 2.0});
  const Tensor before = x;
  x += x;
  x *= 3;
  x -= constant({1.0, 2.0});
  x /= 5;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2}));
  x += 1, x -= 0.5, x *= x, x /= x;
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(before.to_vector<float>(), (std::vector<float>{1, 2}));
}

TEST(Elementwise, AnOperandUsedTwiceGetsBothGradients) {
  const RecordingScope keep;
  const Tensor x = constant({3.0, -2.0});
  const Tensor a = x * x, b = x * x;
  EXPECT_EQ(vjp(a * b, Tensors{a})[0].to_vector<float>(), (std::vector<float>{9, 4}));
  EXPECT_EQ(vjp(a * a, Tensors{a})[0].to_vector<float>(), (std::vector<float>{18, 8}));
}

TEST(Elementwise, HostComparisons) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = constant({1.0, 2.0, 3.0});
  EXPECT_EQ(max_abs_difference(x, x + constant({0.0, 0.5, -1.0})), 1);
  EXPECT_TRUE(std::isnan(max_abs_difference(x, constant({1.0f, nan, 9.0f}))));
  EXPECT_EQ(max_abs_difference(constant({inf}), constant({inf})), 0);
  EXPECT_EQ(max_abs_difference(zeros({0}), zeros({0})), 0);
  EXPECT_THROW(max_abs_difference(x, ones({2})), InvalidArgument);
  EXPECT_THROW(max_abs_difference(x, ones({3}, f64)), InvalidArgument);
  EXPECT_TRUE(bitwise_equal(x, x * 1));
  EXPECT_TRUE(bitwise_equal(constant({nan}), constant({nan})));
  EXPECT_FALSE(bitwise_equal(constant({0.0}), constant({-0.0})));
  EXPECT_FALSE(bitwise_equal(x, ones({2})));
}

/// Extremely large arguments give values in range, never garbage.
TEST(Elementwise, CircularFunctionsOfHugeNumbersStayInRange) {
  for (DType t : {f32, f64}) {
    const Tensor x = cast(from_values(std::vector<double>{1e15, -1e20, 3e38, -3e38, 8e12}, {5}), t);
    for (const Tensor& y : {sin(x), cos(x)})
      for (double v : cast(y, f64).to_vector<double>()) EXPECT_LE(std::abs(v), 1);
  }
}

}  // namespace
}  // namespace gradus::elementwise_test
