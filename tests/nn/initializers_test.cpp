/// Initializers against the limits and variances of their formulas.
#include "gradus/nn/initializers.h"
#include <gtest/gtest.h>
#include <cmath>
#include "gradus/ops/random_key.h"

namespace gradus::initializers_test {
namespace {

struct Row {
  const char* name;
  Tensor (*initializer)(const Shape&);
  double (*variance)(double fan_in, double fan_out);
  bool is_uniform;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

double of_both(double fan_in, double fan_out) { return 2 / (fan_in + fan_out); }
double twice(double fan_in, double) { return 2 / fan_in; }
double once(double fan_in, double) { return 1 / fan_in; }

const Row rows[] = {
    {"glorot_uniform", initializers::glorot_uniform, of_both, true},
    {"glorot_normal", initializers::glorot_normal, of_both, false},
    {"he_uniform", initializers::he_uniform, twice, true},
    {"he_normal", initializers::he_normal, twice, false},
    {"lecun_uniform", initializers::lecun_uniform, once, true},
    {"lecun_normal", initializers::lecun_normal, once, false},
};

struct Kernel {
  Shape shape;
  double fan_in, fan_out;
};
/// A matrix, and one whose receptive field counts in both.
const Kernel kernels[] = {{{300, 200}, 300, 200}, {{3, 5, 40, 100}, 600, 1500}};

class Initializers : public testing::TestWithParam<Row> {};

TEST_P(Initializers, HaveTheirLimitsAndVariances) {
  set_seed(5);
  for (const Kernel& kernel : kernels) {
    const Tensor drawn = GetParam().initializer(kernel.shape);
    ASSERT_EQ(drawn.spec(), (Spec{f32, kernel.shape}));
    double sum = 0, squares = 0, largest = 0;
    for (float x : drawn.to_vector<float>()) {
      sum += x, squares += static_cast<double>(x) * x;
      largest = std::max(largest, std::abs(static_cast<double>(x)));
    }
    const auto n = static_cast<double>(kernel.shape.size());
    const double variance = GetParam().variance(kernel.fan_in, kernel.fan_out), deviation = std::sqrt(variance);
    EXPECT_NEAR(sum / n / deviation, 0, 5 / std::sqrt(n));
    EXPECT_NEAR(squares / n / variance, 1, 0.03);
    // A uniform number lies within sqrt(3) deviations; a normal one was cut at two of what it was before.
    const double limit = GetParam().is_uniform ? std::sqrt(3) : 2 / 0.8796256610342398;
    EXPECT_LE(largest / deviation, limit * (1 + 1e-6));
    EXPECT_GT(largest / deviation, limit * 0.99);
  }
}
INSTANTIATE_TEST_SUITE_P(Rows, Initializers, testing::ValuesIn(rows), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace gradus::initializers_test
