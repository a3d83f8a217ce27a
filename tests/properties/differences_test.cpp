/// Gradients of first and second order of random programs against central differences; second order is symmetric.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "tests/properties/check.h"

namespace gradus::properties::differences_test {
namespace {

/// The sum of the products, and with absolute values the size that it might have.
struct Product {
  Tensor sum, size;
};
Product product(In a, In b) {
  Product result{fill({}, 0, f64), fill({}, 0, f64)};
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined()) continue;
    result.sum = result.sum + reduce_sum(a[i] * b[i]);
    result.size = result.size + reduce_sum(abs(a[i] * b[i]));
  }
  return result;
}

/// A program with its directions: `move` along which it is differentiated, `push` for the second order.
struct Probe {
  const Program& program;
  Weighted weighted{program};
  Tensors at = program.arguments();
  Tensors move = noise(at, program.seed + 1), push = noise(at, program.seed + 2);

  Tensors sources(const Tensors& arguments) const {
    Tensors result;
    for (const Tensor& x : arguments)
      if (is_floating(x.dtype())) result.push_back(x);
    return result;
  }
  Tensors directions(const Tensors& of) const {
    Tensors result;
    for (const Tensor& x : of)
      if (x.defined()) result.push_back(x);
    return result;
  }
  Tensors moved(double steps) const {
    Tensors result = at;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (move[i].defined()) result[i] = at[i] + move[i] * steps;
    return result;
  }
};

/// What is recorded at one point: all points are computed as one program.
struct Point {
  Tensor loss, pushed;
};
constexpr double step = 1e-5;

Point measure(const Probe& probe, double steps) {
  const Tensors arguments = probe.moved(steps * step), sources = probe.sources(arguments);
  const Tensor loss = probe.weighted(probe.program(arguments));
  return {loss, product(vjp(loss, sources), probe.directions(probe.push)).sum};
}

/// Compares a slope with differences of values at -2, -1, 0, 1, 2 steps.
Outcome compare(const std::string& what, double slope, double size, const std::array<double, 5>& values) {
  const double near = (values[3] - values[1]) / (2 * step), far = (values[4] - values[0]) / (4 * step);
  const double right = (values[3] - values[2]) / step, left = (values[2] - values[1]) / step;
  const double scale = 1 + size + std::abs(values[2]), spread = std::abs(near - far);
  if (!(spread <= 1e-4 * scale) || !(std::abs(right - left) <= 1e-3 * scale)) return unclear();
  if (std::abs(slope - near) <= 1e-6 * scale + 3 * spread) return holds();
  return fails(text(what, " is ", slope, ", differences give ", near));
}

Outcome differences(const Program& program) {
  const RecordingScope keep;
  const Probe probe{program};
  const Tensors sources = probe.sources(probe.at);
  const Tensors move = probe.directions(probe.move), push = probe.directions(probe.push);
  const Tensor loss = probe.weighted(program(probe.at));
  const Tensors gradients = vjp(loss, sources);
  const Product moved = product(gradients, move), pushed = product(gradients, push);
  const Product first = product(vjp(pushed.sum, sources), move), second = product(vjp(moved.sum, sources), push);
  std::array<Point, 5> points;
  for (int k = 0; k < 5; ++k) points[static_cast<std::size_t>(k)] = measure(probe, k - 2);
  std::array<double, 5> losses, pushes;
  for (std::size_t k = 0; k < 5; ++k) losses[k] = points[k].loss.item(), pushes[k] = points[k].pushed.item();

  const Outcome slope = compare("the gradient", moved.sum.item(), moved.size.item(), losses);
  if (slope.verdict != Outcome::Verdict::holds) return slope;
  const double size = first.size.item() + second.size.item();
  if (!(std::abs(first.sum.item() - second.sum.item()) <= 1e-8 * (1 + size)))
    return fails(text("second order is not symmetric: ", first.sum.item(), " and ", second.sum.item()));
  const Outcome curvature = compare("the second order", first.sum.item(), size + pushed.size.item(), pushes);
  return curvature.verdict == Outcome::Verdict::unclear ? holds() : curvature;
}

TEST(Programs, GradientsAreDifferences) {
  expect_clean(survey(differences, {.smooth = true}, wanted_programs(150), 1'000'000));
}

/// x^3 with a gradient that is wrong by `factor`, or that is right and constant.
struct WrongCube {
  static constexpr auto name = "wrong_cube";
  static constexpr auto takes = Takes::floats;
  bool frozen = false;
  auto emit(auto x) const { return x * x * x; }
  Tensors vjp(In in, const Tensor&, const Tensor& dy) const {
    const Tensor square = in[0] * in[0];
    return {dy * (frozen ? stop_gradient(square) * 3 : square * 2.9)};
  }
};

void expect_found(bool frozen, const std::string& as) {
  std::vector<rows::Row> rows = rows::all_rows();
  for (int k = 0; k < 3; ++k)
    rows.push_back(
        rows::elementwise("wrong_cube", [=](In in) { return apply(WrongCube{frozen}, in[0]); }, {{-2, 2}}, {}));
  const Census census = survey(differences, {.smooth = true}, 300, 1, rows);
  ASSERT_EQ(census.findings.size(), 3);
  for (const std::string& finding : census.findings) {
    const std::string least = finding.substr(finding.find("shrunk: "));
    EXPECT_NE(least.find(as), std::string::npos) << finding;
    EXPECT_NE(least.find("= wrong_cube"), std::string::npos) << finding;
    EXPECT_LE(std::ranges::count(least, '\n'), 5) << finding;  // an input, one or two ops
  }
}

TEST(Programs, AWrongGradientIsFoundAndItsProgramShrunk) { expect_found(false, "the gradient is"); }
TEST(Programs, AWrongSecondOrderIsFoundAndItsProgramShrunk) { expect_found(true, "the second order is"); }

}  // namespace
}  // namespace gradus::properties::differences_test
