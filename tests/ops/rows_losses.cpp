/// Rows of the losses that are made of other ops: values as Keras defines them, gradients by both arguments.
#include <cmath>
#include <numbers>
#include "gradus/nn/class_losses.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/ops/rows.h"

namespace gradus::rows::rows_losses {
namespace {

using Values = std::vector<double>;
using PerRow = std::function<double(const Values& y, const Values& p)>;

double mean_of(const Values& y, const Values& p, auto f) {
  double sum = 0;
  for (std::size_t k = 0; k < y.size(); ++k) sum += f(y[k], p[k]);
  return sum / static_cast<double>(y.size());
}
double sum_of(const Values& y, const Values& p, auto f) { return mean_of(y, p, f) * static_cast<double>(y.size()); }

/// A loss of rows of the last axis.
Row loss(std::string name, std::function<Tensor(const Tensor&, const Tensor&)> op, Operand y, Operand p,
         PerRow of_row) {
  Row row{.name = name, .apply = [op](In in) { return op(in[0], in[1]); }, .operands = {y, p}};
  row.shapes = {{{3, 5}, {3, 5}}, {{2, 2, 4}, {2, 2, 4}}, {{0, 3}, {0, 3}}};
  row.reference = [of_row](Arrays in) {
    Array out{in[0].shape, {}};
    const std::int64_t n = out.shape.back();
    out.shape.erase(-1);
    for (std::int64_t r = 0; r < out.shape.size(); ++r) {
      const auto cut = [&](const Values& v) { return Values(v.begin() + r * n, v.begin() + (r + 1) * n); };
      out.values.push_back(of_row(cut(in[0].values), cut(in[1].values)));
    }
    return out;
  };
  row.tolerance = 32, row.magnitude = 8, row.slack = 10;
  row.mistakes = {{[=] { op(ones({4}), ones({4, 1})); }, "shapes must agree"},
                  {[=] { op(ones({4, 2}), ones({4, 2}, i32)); }, "the prediction is i32[4,2]"}};
  return row;
}

double bce(double y, double p) { return -(y * std::log(p) + (1 - y) * std::log(1 - p)); }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
Values softmax_of(Values x) {
  double sum = 0;
  for (double& each : x) sum += each = std::exp(each);
  for (double& each : x) each /= sum;
  return x;
}

std::vector<Row> regressions() {
  const Operand any{}, apart{2.5, 4}, rate{0.2, 3};
  return {
      loss("mean_absolute_percentage_error", mean_absolute_percentage_error, apart, any,
           [](const Values& y, const Values& p) {
             return mean_of(y, p, [](double a, double b) { return 100 * std::abs(a - b) / std::abs(a); });
           }),
      loss("mean_squared_logarithmic_error", mean_squared_logarithmic_error, rate, rate,
           [](const Values& y, const Values& p) {
             return mean_of(y, p, [](double a, double b) { return std::pow(std::log1p(a) - std::log1p(b), 2); });
           }),
      loss("log_cosh", log_cosh, any, any,
           [](const Values& y, const Values& p) {
             return mean_of(y, p, [](double a, double b) { return std::log(std::cosh(b - a)); });
           }),
      loss(
          "huber", [](const Tensor& y, const Tensor& p) { return huber(y, p, {.delta = 0.5}); }, apart, any,
          [](const Values& y, const Values& p) {
            return mean_of(y, p, [](double a, double b) {
              const double e = std::abs(a - b);
              return e <= 0.5 ? e * e / 2 : 0.5 * (e - 0.25);
            });
          }),
      loss("hinge", hinge, any, any,
           [](const Values& y, const Values& p) {
             return mean_of(y, p, [](double a, double b) { return std::max(1 - a * b, 0.0); });
           }),
      loss("squared_hinge", squared_hinge, any, any,
           [](const Values& y, const Values& p) {
             return mean_of(y, p, [](double a, double b) { return std::pow(std::max(1 - a * b, 0.0), 2); });
           }),
      loss("categorical_hinge", categorical_hinge, any, any,
           [](const Values& y, const Values& p) {
             double most = -1e30;
             for (std::size_t k = 0; k < y.size(); ++k) most = std::max(most, (1 - y[k]) * p[k]);
             return std::max(most - sum_of(y, p, [](double a, double b) { return a * b; }) + 1, 0.0);
           }),
      loss("kl_divergence", kl_divergence, {0.1, 0.9}, {0.1, 0.9},
           [](const Values& y, const Values& p) {
             return sum_of(y, p, [](double a, double b) { return a * std::log(a / b); });
           }),
      loss("poisson", poisson, rate, rate,
           [](const Values& y, const Values& p) {
             return mean_of(y, p, [](double a, double b) { return b - a * std::log(b + 1e-7); });
           }),
      loss(
          "cosine_similarity", [](const Tensor& y, const Tensor& p) { return cosine_similarity(y, p); }, any, any,
          [](const Values& y, const Values& p) {
            const auto product = [](double a, double b) { return a * b; };
            return -sum_of(y, p, product) / std::sqrt(sum_of(y, y, product) * sum_of(p, p, product));
          }),
  };
}

std::vector<Row> of_classes() {
  const Operand share{0.1, 0.9}, logit{};
  const auto binary = [](double y, double p) {
    const double t = y * 0.9 + 0.05, q = t * p + (1 - t) * (1 - p);
    return (t * 0.3 + (1 - t) * 0.7) * std::pow(1 - q, 1.5) * bce(t, p);
  };
  const BinaryFocalOptions options{.apply_class_balancing = true, .alpha = 0.3, .gamma = 1.5, .label_smoothing = 0.1};
  const auto categorical = [](const Values& y, const Values& p) {
    return sum_of(y, p, [](double a, double b) { return -0.25 * std::pow(1 - b, 2) * a * std::log(b); });
  };
  return {
      loss(
          "binary_focal_crossentropy of probabilities",
          [=](const Tensor& y, const Tensor& p) {
            return binary_focal_crossentropy(y, p, from_probabilities, options);
          },
          share, share, [=](const Values& y, const Values& p) { return mean_of(y, p, binary); }),
      loss(
          "binary_focal_crossentropy of logits",
          [=](const Tensor& y, const Tensor& p) { return binary_focal_crossentropy(y, p, from_logits, options); },
          share, logit,
          [=](const Values& y, const Values& p) {
            return mean_of(y, p, [=](double a, double b) { return binary(a, sigmoid_of(b)); });
          }),
      loss(
          "categorical_focal_crossentropy of probabilities",
          [](const Tensor& y, const Tensor& p) { return categorical_focal_crossentropy(y, p, from_probabilities); },
          share, share,
          [=](const Values& y, Values p) {
            const double sum = sum_of(p, p, [](double a, double) { return a; });
            for (double& each : p) each /= sum;
            return categorical(y, p);
          }),
      loss(
          "categorical_focal_crossentropy of logits",
          [](const Tensor& y, const Tensor& p) { return categorical_focal_crossentropy(y, p, from_logits); }, share,
          logit, [=](const Values& y, const Values& p) { return categorical(y, softmax_of(p)); }),
      loss(
          "dice", [](const Tensor& y, const Tensor& p) { return dice(y, p, {.axis = {-1}}); }, share, share,
          [](const Values& y, const Values& p) {
            const double both = sum_of(y, p, [](double a, double b) { return a * b; });
            return 1 - 2 * both / (sum_of(y, p, [](double a, double b) { return a + b; }) + 1e-7);
          }),
      loss(
          "tversky",
          [](const Tensor& y, const Tensor& p) { return tversky(y, p, {.alpha = 0.3, .beta = 0.7, .axis = {-1}}); },
          share, share,
          [](const Values& y, const Values& p) {
            const double both = sum_of(y, p, [](double a, double b) { return a * b; });
            const double rest = sum_of(y, p, [](double a, double b) { return 0.3 * (1 - a) * b + 0.7 * a * (1 - b); });
            return 1 - both / (both + rest + 1e-7);
          }),
  };
}

/// The probability of the labels of a row: the sum over all paths of classes that become them once repetitions and
/// blanks (class 0) are left out.
double ctc_of(const Array& y, const Array& x, std::int64_t row) {
  const std::int64_t time = x.shape[1], classes = x.shape[2], length = y.shape[1];
  Values labels;
  for (std::int64_t k = 0; k < length; ++k) labels.push_back(y.values[static_cast<std::size_t>(row * length + k)]);
  std::vector<Values> p;
  for (std::int64_t t = 0; t < time; ++t) {
    const auto begin = x.values.begin() + (row * time + t) * classes;
    p.push_back(softmax_of(Values(begin, begin + classes)));
  }
  double total = 0;
  for (std::int64_t path = 0; path < std::pow(classes, time); ++path) {
    Values seen;
    double probability = 1;
    std::int64_t rest = path, before = 0;
    for (const Values& step : p) {
      const std::int64_t now = rest % classes;
      probability *= step[static_cast<std::size_t>(now)];
      if (now != 0 && now != before) seen.push_back(static_cast<double>(now));
      before = now, rest /= classes;
    }
    if (seen == labels) total += probability;
  }
  return -std::log(total);
}

Row ctc_row() {
  Row row{.name = "ctc", .apply = [](In in) { return ctc(in[0], in[1]); }};
  row.operands = {{.low = 1, .high = 2, .dtype = i32, .has_gradient = false}, {}};
  row.shapes = {{{1, 1}, {1, 1, 3}}, {{2, 2}, {2, 4, 3}}};
  row.reference = [](Arrays in) {
    Array out{{in[0].shape[0]}, {}};
    for (std::int64_t r = 0; r < out.shape[0]; ++r) out.values.push_back(ctc_of(in[0], in[1], r));
    return out;
  };
  row.tolerance = 32, row.magnitude = 8, row.slack = 10;
  row.mistakes = {{[] { ctc(ones({2, 2}, i32), ones({2, 5})); }, "[batch, time, classes]"},
                  {[] { ctc(ones({2}, i32), ones({2, 5, 3})); }, "integer labels"},
                  {[] { ctc(ones({2, 2}, i32), ones({2, 5, 3}), {.mask_index = 3}); }, "mask_index"}};
  return row;
}

const bool registered = add_rows(regressions()) && add_rows(of_classes()) && add_rows({ctc_row()});

}  // namespace
}  // namespace gradus::rows::rows_losses
