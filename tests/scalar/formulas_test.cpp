/// The recorded elementary functions against the long double functions of the C library: error in units in the last
/// place over dense and random arguments, and the values at zeros, infinities, NaN, and where results leave the range.
#include <gtest/gtest.h>
#include "tests/scalar/formula_checks.h"

namespace gradus::scalar::formulas_test {
namespace {

using Unary = Value (*)(const Value&);

long double sigmoid_reference(long double x) { return 1 / (1 + std::exp(-x)); }

const Function functions[] = {
    {"exp", exp, std::exp, -708, 710, 0.75, 0.75},
    {"expm1", expm1, std::expm1, -60, 710, 1.5, 1.8},
    {"sigmoid", sigmoid, sigmoid_reference, -700, 700, 2.2, 2.1},
    {"tanh", tanh, std::tanh, -25, 25, 1.5, 1.5},
    {"log", log, std::log, 0, 1e300, 0.8, 0.8},
    {"log1p", log1p, std::log1p, -1, 1e300, 0.8, 0.8},
    {"sin", sin, std::sin, -8e12, 8e12, 0.6, 0.8},
    {"cos", cos, std::cos, -8e12, 8e12, 0.6, 0.8},
    {"tan", tan, std::tan, -8e12, 8e12, 0.6, 2.1},
    {"erf", erf, std::erf, -7, 7, 1.2, 1.2},
};

TEST(Formulas, AreAccurate) {
  for (const Function& function : functions) {
    check_accuracy<float>(function, function.ulps_f32);
    check_accuracy<double>(function, function.ulps_f64);
  }
}

template <class T> void check_power() {
  const Recorded<T> power(pow);
  std::mt19937_64 random(11);
  const auto unit = [&] { return std::uniform_real_distribution<double>()(random); };
  double worst = 0;
  T worst_x = 0, worst_y = 0;
  std::vector<T> xs, ys;
  const double widest = std::is_same_v<T, float> ? 126 : 1020;
  for (int i = 0; i < 150000; ++i) {
    T x = static_cast<T>(i % 3 == 0 ? 0.5 + unit() : std::exp2((unit() * 2 - 1) * (i % 3 == 1 ? widest : 4)));
    T y = static_cast<T>((unit() - 0.5) * (i % 2 ? 10 : 2 * widest / (std::abs(std::log2(x)) + 1e-3)));
    if (i % 5 == 0) x = -x, y = std::nearbyint(y);
    if (std::abs(y) < std::numeric_limits<T>::min()) continue;
    xs.push_back(x);
    ys.push_back(y);
  }
  const std::vector<T> powers = power(xs, ys);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const long double x = xs[i], y = ys[i];
    const double error = ulps(powers[i], std::pow(x, y));
    if (error > worst) worst = error, worst_x = xs[i], worst_y = ys[i];
  }
  EXPECT_LE(worst, (std::is_same_v<T, float> ? 0.6 : 1.5)) << worst_x << " ^ " << worst_y;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double edges[] = {0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, 1e30, -1e30, inf, -inf, nan};
  for (double x : edges)
    for (double y : edges) {
      const T got = power({static_cast<T>(x)}, {static_cast<T>(y)}).front(),
              want = std::pow(static_cast<T>(x), static_cast<T>(y));
      EXPECT_TRUE(std::isnan(want)
                      ? std::isnan(got)
                      : ulps(got, static_cast<long double>(want)) <= 1 && std::signbit(got) == std::signbit(want))
          << x << " ^ " << y << " of " << name_of(dtype_of<T>()) << ": " << got << ", expected " << want;
    }
}

TEST(Formulas, PowerIsAccurateAndFollowsTheStandard) {
  check_power<float>();
  check_power<double>();
}

template <class T> void check_edges(const Function& function) {
  const Recorded<T> formula(function.formula);
  constexpr auto limits = std::numeric_limits<T>();
  for (T x : {T(0), T(-0.0), T(1), T(-1), limits.infinity(), -limits.infinity(), limits.quiet_NaN(), limits.max(),
              -limits.max(), limits.min(), -limits.min()}) {
    const bool circular = function.formula == static_cast<Unary>(sin) || function.formula == static_cast<Unary>(cos) ||
                          function.formula == static_cast<Unary>(tan);
    const T got = formula.at(x);
    if (circular && std::abs(x) == limits.max()) {
      EXPECT_TRUE(std::isfinite(got)) << function.name;
      continue;
    }
    const long double want = function.reference(x);
    EXPECT_LE(ulps(got, want), 2.5) << function.name << " of " << name_of(dtype_of<T>()) << " at " << x;
    if (want == 0) { EXPECT_EQ(std::signbit(got), std::signbit(want)) << function.name << " at " << x; }
  }
}

TEST(Formulas, HoldAtTheEdges) {
  for (const Function& function : functions) {
    check_edges<float>(function);
    check_edges<double>(function);
  }
}

/// Results close to the least normal and the greatest number are neither lost nor infinite.
TEST(Formulas, ExpReachesBothEndsOfTheRange) {
  const Recorded<float> single(exp);
  EXPECT_GE(single.at(-87.33f), std::numeric_limits<float>::min());
  EXPECT_LT(single.at(88.72283f), std::numeric_limits<float>::infinity());
  EXPECT_GT(single.at(88.7f), 3.3e38f);
  EXPECT_EQ(single.at(88.73f), std::numeric_limits<float>::infinity());
  const Recorded<double> wide(exp);
  EXPECT_GE(wide.at(-708.39), std::numeric_limits<double>::min());
  EXPECT_LT(wide.at(709.78), std::numeric_limits<double>::infinity());
  EXPECT_GT(wide.at(709.78), 1.79e308);
  EXPECT_EQ(wide.at(709.79), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace gradus::scalar::formulas_test
