/// Rows of the activations that are made of other ops: values as Keras defines them, and the slopes at their kinks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_activations {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double clip_of(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

Row activation(std::string name, std::function<Tensor(const Tensor&)> op, double (*reference)(double),
               std::vector<Slope> slopes, Operand domain = {-4, 4}) {
  Row row = elementwise(
      std::move(name), [op](In in) { return op(in[0]); }, {domain}, [reference](Scalars x) { return reference(x[0]); });
  row.covers = {};
  row.shapes = {{Shape{}}, {Shape{17}}, {Shape{3, 5}}, {Shape{0}}};
  row.slopes = std::move(slopes);
  row.magnitude = 4;
  row.specials = {{0}, {-0.0}, {1}, {-1}, {3}, {-3}, {100}, {-100}, {nan}};
  return row;
}

/// The unary function among the overloads.
std::function<Tensor(const Tensor&)> of(Tensor (*op)(const Tensor&)) { return op; }

Row called(std::string name, Row row) {
  row.called = std::move(name);
  return row;
}

std::vector<Row> bounded() {
  return {
      activation("relu6", relu6, [](double x) { return clip_of(x, 0, 6); },
                 {{{0}, {0}}, {{6}, {0}}, {{3}, {1}}, {{7}, {0}}, {{nan}, {0}}}),
      activation("hard_sigmoid", of(hard_sigmoid), [](double x) { return clip_of((x + 3) / 6, 0, 1); },
                 {{{-3}, {0}}, {{3}, {0}}, {{0}, {1.0 / 6}}, {{-inf}, {0}}}),
      called(
          "hard_sigmoid",
          activation(
              "hard_sigmoid as in ONNX", [](const Tensor& x) { return hard_sigmoid(x, {.alpha = 0.25, .beta = 0.5}); },
              [](double x) { return clip_of(0.25 * x + 0.5, 0, 1); }, {{{-2}, {0}}, {{2}, {0}}, {{1}, {0.25}}})),
      activation("hard_silu", hard_silu, [](double x) { return x * clip_of((x + 3) / 6, 0, 1); },
                 {{{-3}, {0}}, {{3}, {1}}, {{0}, {0.5}}, {{5}, {1}}}),
      activation("hard_swish", hard_swish, [](double x) { return x * clip_of((x + 3) / 6, 0, 1); }, {{{5}, {1}}}),
      activation("hard_tanh", hard_tanh, [](double x) { return clip_of(x, -1, 1); },
                 {{{-1}, {1}}, {{1}, {1}}, {{2}, {0}}}),
      activation("sparse_plus", sparse_plus, [](double x) { return x <= -1 ? 0
                                                                   : x < 1 ? (x + 1) * (x + 1) / 4
                                                                           : x; },
                 {{{-1}, {0}}, {{1}, {1}}, {{0}, {0.5}}}),
      activation("sparse_sigmoid", sparse_sigmoid, [](double x) { return clip_of((x + 1) / 2, 0, 1); },
                 {{{-1}, {0}}, {{1}, {0}}, {{0}, {0.5}}}),
  };
}

std::vector<Row> thresholds() {
  const auto hard = [](double x) { return std::abs(x) <= 0.5 ? 0 : x; };
  const auto soft = [](double x) { return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : x * 0; };
  return {
      activation("thresholded_relu", of(thresholded_relu), [](double x) { return x <= 1 ? 0 : x; },
                 {{{1}, {0}}, {{2}, {1}}}),
      activation(
          "threshold", [](const Tensor& x) { return threshold(x, 0.25, -2); },
          [](double x) { return x <= 0.25 ? -2 : x; }, {{{0.25}, {0}}, {{1}, {1}}}),
      activation("hard_shrink", of(hard_shrink), hard, {{{0.5}, {0}}, {{-0.5}, {0}}, {{0.75}, {1}}}),
      activation("soft_shrink", of(soft_shrink), soft, {{{0.5}, {0}}, {{-0.5}, {0}}, {{0.75}, {1}}}),
      called("shrink", activation(
                           "shrink as in ONNX", [](const Tensor& x) { return shrink(x, {.bias = 1.5, .lambd = 0.5}); },
                           [](double x) { return x > 0.5    ? x - 1.5
                                                 : x < -0.5 ? x + 1.5
                                                            : x * 0; }, {{{0.5}, {0}}})),
      activation("tanh_shrink", tanh_shrink, [](double x) { return x - std::tanh(x); }, {{{0}, {0}}}),
  };
}

std::vector<Row> smooth() {
  const auto celu_of = [](double x) { return x > 0 ? x : std::expm1(x); };
  Row mishes =
      activation("mish", mish, [](double x) { return x * std::tanh(softplus_of(x)); }, {{{0}, {0.6}}, {{100}, {1}}});
  mishes.covers = {"mish"};
  Row softsigns = activation("softsign", softsign, [](double x) { return x / (1 + std::abs(x)); },
                             {{{0}, {1}}, {{-1}, {0.25}}, {{inf}, {0}}, {{-inf}, {0}}});
  softsigns.covers = {"softsign"};
  return {
      std::move(mishes),
      activation("celu", of(celu), celu_of, {{{0}, {1}}, {{-1000}, {0}}, {{1000}, {1}}}),
      called("celu", activation(
                         "celu of alpha 2", [](const Tensor& x) { return celu(x, {.alpha = 2}); },
                         [](double x) { return x > 0 ? x : 2 * std::expm1(x / 2); }, {{{0}, {1}}})),
      called("elu", activation(
                        "elu of alpha 0.5", [](const Tensor& x) { return elu(x, {.alpha = 0.5}); },
                        [](double x) { return x > 0 ? x : 0.5 * std::expm1(x); }, {{{0}, {0.5}}, {{1000}, {1}}})),
      std::move(softsigns),
      activation("log_sigmoid", log_sigmoid, [](double x) { return -softplus_of(-x); },
                 {{{0}, {0.5}}, {{1000}, {0}}, {{-1000}, {1}}}),
      called("silu", activation(
                         "silu of beta 2", [](const Tensor& x) { return silu(x, {.beta = 2}); },
                         [](double x) { return x * sigmoid_of(2 * x); }, {{{0}, {0.5}}})),
      activation("swish", swish, [](double x) { return x * sigmoid_of(x); }, {{{0}, {0.5}}}),
      called("gelu", activation(
                         "gelu, approximate", [](const Tensor& x) { return gelu(x, {.approximate = true}); },
                         [](double x) {
                           return 0.5 * x *
                                  (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
                         },
                         {{{0}, {0.5}}, {{100}, {1}}})),
      activation("squareplus", of(squareplus),
                 [](double x) { return x < 0 ? 2 / (std::sqrt(x * x + 4) - x) : (x + std::sqrt(x * x + 4)) / 2; },
                 {{{0}, {0.5}}}),
      called("relu",
             activation(
                 "relu of Keras",
                 [](const Tensor& x) { return relu(x, {.negative_slope = 0.25, .max_value = 3, .threshold = 0.5}); },
                 [](double x) { return x > 0.5 ? std::min(x, 3.0) : 0.25 * (x - 0.5); },
                 {{{0.5}, {0.25}}, {{3}, {1}}, {{4}, {0}}, {{1}, {1}}})),
      activation("exponential", exponential, std::exp, {{{0}, {1}}}, {-2, 2}),
  };
}

/// Two operands, or along an axis.
std::vector<Row> of_several() {
  Row slopes = elementwise(
      "prelu", [](In in) { return prelu(in[0], in[1]); }, {{-3, 3, 0.1}, {}},
      [](Scalars x) { return x[0] > 0 ? x[0] : x[1] * x[0]; });
  slopes.covers = {};
  slopes.shapes = {{{17}, {17}}, {{3, 5}, {5}}, {{2, 3, 4}, {3, 1}}, {{0, 3}, {3}}};
  slopes.slopes = {{{0, 0.25}, {0.25, 0}}, {{2, 0.25}, {1, 0}}, {{-2, 0.25}, {0.25, -2}}};
  slopes.specials = {{1, 0.5}, {-1, 0.5}, {0, 3}, {inf, 1}, {nan, 1}};
  slopes.mistakes = {{[] { prelu(ones({3}), ones({2, 3})); }, "prelu"}};
  Row gated{.name = "glu", .apply = [](In in) { return glu(in[0], 1); }, .operands = {{}}};
  gated.shapes = {{{3, 4}}, {{2, 6, 3}}, {{0, 4}}};
  gated.reference = [](Arrays in) {
    const Shape& shape = in[0].shape;
    const std::int64_t inner = shape.rank() == 3 ? shape[2] : 1, half = shape[1] / 2;
    Array out{shape, {}};
    out.shape.set(1, half);
    for (std::int64_t flat = 0; flat < out.shape.size(); ++flat) {
      const std::int64_t row = flat / (half * inner), rest = flat % (half * inner);
      const auto at = static_cast<std::size_t>(2 * row * half * inner + rest);
      out.values.push_back(in[0].values[at] * sigmoid_of(in[0].values[at + static_cast<std::size_t>(half * inner)]));
    }
    return out;
  };
  gated.magnitude = 1;
  gated.mistakes = {{[] { glu(ones({2, 3})); }, "even"},
                    {[] { glu(ones({})); }, "axis"},
                    {[] { celu(ones({2}), {.alpha = 0}); }, "alpha"},
                    {[] { squareplus(ones({2}), {.b = 0}); }, "b must be positive"}};
  Row simplex{.name = "sparsemax", .apply = [](In in) { return sparsemax(in[0], 1); }, .operands = {{}}};
  simplex.shapes = {{{3, 4}}, {{2, 3, 2}}, {{3, 1}}};
  simplex.reference = [](Arrays in) {
    const Shape& shape = in[0].shape;
    const std::int64_t inner = shape.rank() == 3 ? shape[2] : 1;
    Array out = in[0];
    for (std::int64_t line = 0; line < shape[0] * inner; ++line) {
      const auto at = [&](std::int64_t k) {
        return static_cast<std::size_t>((line / inner * shape[1] + k) * inner + line % inner);
      };
      std::vector<double> sorted;
      for (std::int64_t k = 0; k < shape[1]; ++k) sorted.push_back(in[0].values[at(k)]);
      std::ranges::sort(sorted, std::greater<>());
      double sum = 0, t = 0;
      for (std::size_t k = 0; k < sorted.size(); ++k) {
        sum += sorted[k];
        const double next = (sum - 1) / static_cast<double>(k + 1);
        if (sorted[k] > next) t = next;
      }
      for (std::int64_t k = 0; k < shape[1]; ++k) out.values[at(k)] = std::max(in[0].values[at(k)] - t, 0.0);
    }
    return out;
  };
  simplex.magnitude = 4;
  return {std::move(slopes), std::move(gated), std::move(simplex)};
}

const bool registered = add_rows(bounded()) && add_rows(thresholds()) && add_rows(smooth()) && add_rows(of_several());

}  // namespace
}  // namespace gradus::rows::rows_activations
