/// Ops that choose by comparisons: NaN stays NaN, comes last in an order, is drawn by random draws, and is in no bin of
/// a histogram. Activations at infinities have their limits, and slopes that are numbers.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/gradus.h"

namespace gradus::choosing_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
using Numbers = std::vector<double>;
using Function = std::function<Tensor(const Tensor&)>;

Numbers numbers(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

struct Choice {
  const char* name;
  Function f;
};

const Choice choices[] = {
    {"hard_shrink", [](const Tensor& x) { return hard_shrink(x); }},
    {"soft_shrink", [](const Tensor& x) { return soft_shrink(x); }},
    {"shrink", [](const Tensor& x) { return shrink(x, {.bias = 0.25, .lambd = 0.5}); }},
    {"shrink below 0", [](const Tensor& x) { return shrink(x, {.bias = 1, .lambd = -1}); }},
    {"threshold", [](const Tensor& x) { return threshold(x, 0.5, 7); }},
    {"thresholded_relu", [](const Tensor& x) { return thresholded_relu(x); }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"relu of Keras", [](const Tensor& x) { return relu(x, {.max_value = 3, .threshold = 1}); }},
    {"relu6", relu6},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
    {"prelu", [](const Tensor& x) { return prelu(x, 0.5); }},
    {"elu", [](const Tensor& x) { return elu(x); }},
    {"selu", selu},
    {"celu", [](const Tensor& x) { return celu(x); }},
    {"hard_tanh", hard_tanh},
    {"hard_sigmoid", [](const Tensor& x) { return hard_sigmoid(x); }},
    {"hard_silu", hard_silu},
    {"sparse_plus", sparse_plus},
    {"sparse_sigmoid", sparse_sigmoid},
    {"squareplus", [](const Tensor& x) { return squareplus(x); }},
    {"clip_by_value", [](const Tensor& x) { return clip_by_value(x, -1, 1); }},
    {"maximum", [](const Tensor& x) { return maximum(x, 0); }},
    {"minimum", [](const Tensor& x) { return minimum(x, 0); }},
    {"sign", sign},
    {"abs", abs},
    {"heaviside", [](const Tensor& x) { return heaviside(x, 0.5); }},
    {"reduce_max", [](const Tensor& x) { return reduce_max(x); }},
    {"reduce_min", [](const Tensor& x) { return reduce_min(x); }},
    {"median", [](const Tensor& x) { return median(x); }},
};

TEST(Choosing, PassesNanOn) {
  for (const DType t : {f64, f32, f16, bf16})
    for (const Choice& choice : choices) {
      const Tensor x = constant({nan}, t);
      EXPECT_TRUE(std::isnan(numbers(choice.f(x))[0])) << choice.name << " of " << t;
      auto compiled = function([&](const Tensor& at) { return choice.f(at); });
      compiled(x);
      EXPECT_TRUE(std::isnan(numbers(compiled(x))[0])) << choice.name << " of " << t << " compiled";
    }
}

TEST(Choosing, SearchesWhereSortPutsNan) {
  for (const DType t : {f64, f32, f16, bf16}) {
    const Tensor sorted = sort(constant({nan, 2.0, inf, 1.0, nan, -inf}, t));
    const Tensor values = constant({nan, 2.0, inf, -inf, 5.0}, t);
    EXPECT_EQ(numbers(searchsorted(sorted, values)), (Numbers{4, 2, 3, 0, 3})) << t;
    EXPECT_EQ(numbers(searchsorted(sorted, values, Side::right)), (Numbers{6, 3, 4, 1, 3})) << t;
  }
  const Tensor rows = constant({{1.0f, 2.0f, float(nan)}, {1.0f, float(nan), float(nan)}});
  EXPECT_EQ(numbers(searchsorted(rows, full({2, 1}, nan, f32))), (Numbers{2, 1}));
}

/// At lengths about powers of two, in batches, for values between, at and beyond the elements, at sizes that vary.
TEST(Choosing, SearchesAsCountingDoes) {
  for (const Side side : {Side::left, Side::right}) {
    const auto compiled = function([&](Tensor a, Tensor v) { return searchsorted(a, v, side); });
    for (const std::int64_t n : {1, 2, 3, 7, 8, 9, 31, 32, 33, 100, 255, 256, 257}) {
      const Tensor rows = sort(random::integers({2, n}, {.high = 60, .seed = 1}));
      const Tensor values = random::integers({2, 50}, {.low = -3, .high = 63, .seed = 2});
      const Tensor all = expand_dims(rows, -2), each = expand_dims(values, -1);
      const Tensor counts = reduce_sum(cast(side == Side::left ? all < each : all <= each, i32), {.axis = {-1}});
      EXPECT_EQ(numbers(searchsorted(rows, values, side)), numbers(counts)) << n;
      EXPECT_EQ(numbers(searchsorted(rows[1], values[1], side)), numbers(counts[1])) << n;
      EXPECT_EQ(numbers(compiled(rows, values)), numbers(counts)) << n << " compiled";
    }
  }
  EXPECT_EQ(numbers(searchsorted(zeros({0}), ones({3}))), (Numbers{0, 0, 0}));
}

TEST(Choosing, DrawsNan) {
  EXPECT_EQ(numbers(random::categorical(constant({{0.0, nan, 3.0}, {5.0, 1.0, nan}}), 2, {.seed = 1})),
            (Numbers{1, 1, 2, 2}));
}

TEST(Choosing, CountsNanInNoPart) {
  EXPECT_EQ(numbers(histogram_fixed_width(constant({nan, 0.1, 0.9, -5.0, 7.0, nan}), 0, 1, 2)), (Numbers{2, 2}));
}

TEST(Choosing, AnInfiniteSideIsLongerThanNan) {
  const Numbers got = numbers(hypot(constant({inf, nan, nan, -inf, 3.0}), constant({nan, -inf, 1.0, 1.0, 4.0})));
  EXPECT_EQ((Numbers{got[0], got[1], got[3], got[4]}), (Numbers{inf, inf, inf, 5}));
  EXPECT_TRUE(std::isnan(got[2]));
}

TEST(Choosing, PolesOfTheBetaFunctionCancel) {
  const Tensor x = constant({{-1.0, 1.0}, {-3.0, 2.0}, {-1.0, 3.0}, {-2.0, -1.0}, {2.0, 3.0}});
  const Numbers got = numbers(lbeta(x));
  EXPECT_NEAR(got[0], 0, 1e-6);
  EXPECT_NEAR(got[1], std::log(1.0 / 6), 1e-6);  // B(-3, 2) = 1 / (-3 * -2)
  EXPECT_EQ(got[2], inf);
  EXPECT_EQ(got[3], inf);
  EXPECT_NEAR(got[4], std::log(1.0 / 12), 1e-6);
}

// ---------------------------------------------------------------- infinities

struct Limits {
  const char* name;
  Function f;
  double at_least, at_most, slope_at_least, slope_at_most;  // at x = -infinity and infinity
};

const Limits limits[] = {
    {"gelu", [](const Tensor& x) { return gelu(x); }, 0, inf, 0, 1},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x, {.approximate = true}); }, 0, inf, 0, 1},
    {"silu", [](const Tensor& x) { return silu(x); }, 0, inf, 0, 1},
    {"silu of beta 2", [](const Tensor& x) { return silu(x, {.beta = 2}); }, 0, inf, nan, nan},
    {"mish", mish, 0, inf, 0, 1},
    {"hard_silu", hard_silu, 0, inf, 0, 1},
    {"softsign", softsign, -1, 1, 0, 0},
    {"squareplus", [](const Tensor& x) { return squareplus(x); }, 0, inf, 0, 1},
    {"softplus", softplus, 0, inf, 0, 1},
    {"elu", [](const Tensor& x) { return elu(x); }, -1, inf, 0, 1},
    {"hard_tanh", hard_tanh, -1, 1, 0, 0},
    {"tanh", tanh, -1, 1, 0, 0},
    {"sigmoid", sigmoid, 0, 1, 0, 0},
    {"log_sigmoid", log_sigmoid, -inf, 0, 1, 0},
};

TEST(Choosing, ActivationsHaveTheirLimits) {
  for (const DType t : {f64, f32, f16, bf16})
    for (const Limits& of : limits) {
      const Tensor x = constant({-inf, inf}, t);
      EXPECT_EQ(numbers(of.f(x)), (Numbers{of.at_least, of.at_most})) << of.name << " of " << t;
      if (std::isnan(of.slope_at_least)) continue;  // the slope there is not promised
      const Tensor slope = gradient([&](const Tensor& at) { return reduce_sum(of.f(at)); }, x);
      EXPECT_EQ(numbers(slope), (Numbers{of.slope_at_least, of.slope_at_most})) << of.name << " of " << t << ": slope";
    }
}

}  // namespace
}  // namespace gradus::choosing_test
