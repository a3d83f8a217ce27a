/// The problems: each formula as in reference/make_reference.py.
#include "tests/fitting/problems.h"
#include <cmath>
#include <map>
#include <numbers>
#include "gradus/gradients/tape.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"
#include "gradus/ops/special.h"

namespace gradus {
namespace {

Tensor indices(std::int64_t n) { return cast(range(n, i64), f64); }

Tensor part(const Tensor& x, std::int64_t begin, std::int64_t end) { return slice(x, {begin}, {end - begin}); }

Tensor rosenbrock(const Tensor& x) {
  const std::int64_t n = x.shape()[0];
  const Tensor first = part(x, 0, n - 1), next = part(x, 1, n);
  return reduce_sum(100 * square(next - square(first)) + square(1 - first));
}

Tensor alternating(std::int64_t n) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(i % 2 == 0 ? -1.2 : 1.0);
  return tensor_of_numbers(values);
}

TestProblem logistic() {
  const Tensor row = reshape(indices(200), {200, 1}), column = reshape(indices(10), {1, 10});
  const Tensor features = sin(1.7 * row + 2.3 * column + 0.1 * row * column);
  const Tensor score = matvec(features, cos(indices(10))) + 0.5 * sin(5 * indices(200));
  const Tensor labels = cast(greater(score, 0), f64);
  const auto f = [=](const Tensor& w) {
    const Tensor z = matvec(features, part(w, 0, 10)) + w[10];
    return reduce_mean(softplus(z) - labels * z) + 0.005 * reduce_sum(square(w));
  };
  return {f, zeros({11}, f64)};
}

TestProblem process() {
  const Tensor x = linspace(0.0, 10.0, 60, f64);
  const Tensor y = sin(x) + 0.3 * cos(3 * x) + 0.1 * sin(37 * square(indices(60)));
  const auto f = [=](const Tensor& p) {
    const Tensor kernel = exp(2 * p[0]) * exp(-0.5 * square((expand_dims(x, 1) - x) / exp(p[1])));
    const Tensor factor = cholesky(kernel + exp(2 * p[2]) * eye(60, f64));
    const Tensor half = triangular_solve(factor, expand_dims(y, 1));
    return 0.5 * reduce_sum(square(half)) + reduce_sum(log(diag_part(factor))) + 30 * std::log(2 * std::numbers::pi);
  };
  return {f, constant({0.0, 0.0, -1.0}, f64)};
}

/// u'' = -pi^2 sin(pi x), u(0) = u(1) = 0, by a network of 10 units.
TestProblem pinn() {
  const Tensor places = reshape(linspace(0.0, 1.0, 21, f64), {21, 1});
  const auto f = [=](const Tensor& p) {
    const auto network = [&](const Tensor& x) {  // [n, 1] -> [n]
      return matvec(tanh(x * part(p, 0, 10) + part(p, 10, 20)), part(p, 20, 30)) + p[30];
    };
    GradientTape outer;
    outer.watch(places);
    GradientTape inner;
    inner.watch(places);
    const Tensor slope = inner.gradient(reduce_sum(network(places)), places);
    const Tensor bend = outer.gradient(reduce_sum(slope), places);
    const Tensor force = std::numbers::pi * std::numbers::pi * sin(std::numbers::pi * places);
    const Tensor ends = network(constant({{0.0}, {1.0}}, f64));
    return reduce_mean(square(bend + force)) + 100 * reduce_sum(square(ends));
  };
  return {f, sin(1.0 + 3 * indices(31))};
}

Tensor decay() {
  const Tensor t = linspace(0.0, 4.0, 40, f64);
  return 2.5 * exp(-1.3 * t) + 0.5 + 0.02 * sin(40 * square(indices(40)));
}

TestProblem curve(const Tensor& y) {
  const Tensor t = linspace(0.0, 4.0, 40, f64);
  return {[=](const Tensor& p) { return p[0] * exp(-p[1] * t) + p[2] - y; }, constant({1.0, 1.0, 0.0}, f64)};
}

Tensor decay_with_outliers() {
  std::vector<double> jumps(40);
  for (std::size_t i = 4; i < jumps.size(); i += 9) jumps[i] = 1.5;
  return decay() + tensor_of_numbers(jumps);
}

TestProblem rosenbrock_residuals() {
  const auto f = [](const Tensor& x) { return stack({10 * (x[1] - square(x[0])), 1 - x[0]}); };
  return {f, constant({-1.2, 1.0}, f64)};
}

TestProblem powell() {
  const auto f = [](const Tensor& x) {
    return stack({x[0] + 10 * x[1], std::sqrt(5.0) * (x[2] - x[3]), square(x[1] - 2 * x[2]),
                  std::sqrt(10.0) * square(x[0] - x[3])});
  };
  return {f, constant({3.0, -1.0, 0.0, 1.0}, f64)};
}

/// Points through cameras of a rotation vector and a shift each: [cameras, 6], [points, 3] -> [cameras, points, 2].
Tensor project(const Tensor& cameras, const Tensor& points) {
  const auto column = [](const Tensor& x, std::int64_t i, std::int64_t n) {
    return slice(x, {0, i}, {x.shape()[0], n});
  };
  const auto turn = [&](std::int64_t i) { return column(cameras, i, 1); };          // [cameras, 1]
  const auto at = [&](std::int64_t i) { return transpose(column(points, i, 1)); };  // [1, points]
  const Tensor square_of_angle = reduce_sum(square(column(cameras, 0, 3)), {.axis = {1}, .keepdims = true}) + 1e-30;
  const Tensor angle = sqrt(square_of_angle), cosine = cos(angle), sine = sin(angle) / angle;
  const Tensor rest = (1 - cosine) / square_of_angle;
  const Tensor inner = turn(0) * at(0) + turn(1) * at(1) + turn(2) * at(2);
  const auto turned = [&](std::int64_t i) {
    const std::int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    return at(i) * cosine + (turn(j) * at(k) - turn(k) * at(j)) * sine + turn(i) * inner * rest + turn(i + 3);
  };
  const Tensor depth = turned(2);
  return stack({turned(0) / depth, turned(1) / depth}, 2);
}

TestProblem bundle() {
  const Tensor c = indices(20), q = indices(40);
  const Tensor points = stack({sin(2.1 * q), cos(3.7 * q), sin(5.3 * q + 1)}, 1);
  const Tensor cameras = stack(
      {0.2 * sin(c), 0.6 * sin(0.5 * c + 1), 0.1 * cos(3 * c), 0.3 * cos(c), 0.3 * sin(2 * c), 6 + 0.5 * sin(3 * c)},
      1);
  const Tensor seen = project(cameras, points) + reshape(1e-3 * sin(7.0 * square(indices(1600))), {20, 40, 2});
  const Tensor x0 = concat(
      {reshape(cameras, {120}) + 0.05 * sin(11 * indices(120)), reshape(points, {120}) + 0.05 * sin(13 * indices(120))},
      0);
  const auto f = [=](const Tensor& x) {
    return project(reshape(part(x, 0, 120), {20, 6}), reshape(part(x, 120, 240), {40, 3})) - seen;
  };
  return {f, x0};
}

}  // namespace

TestProblem minimum_problem(const std::string& name) {
  if (name == "rosenbrock_2") return {rosenbrock, alternating(2)};
  if (name == "rosenbrock_20") return {rosenbrock, alternating(20)};
  if (name == "logistic") return logistic();
  return name == "process" ? process() : pinn();
}

TestProblem fit_problem(const std::string& name) {
  if (name == "curve") return curve(decay());
  if (name == "outliers") return curve(decay_with_outliers());
  if (name == "rosenbrock") return rosenbrock_residuals();
  return name == "powell" ? powell() : bundle();
}

}  // namespace gradus
