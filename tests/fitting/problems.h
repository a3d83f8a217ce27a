/// The problems of reference/make_reference.py in C++, and what SciPy found on them.
#pragma once
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>
#include "gradus/fitting/least_squares.h"
#include "gradus/fitting/minimize.h"
#include "gradus/ops/constant.h"

namespace gradus {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// A run of scipy.optimize.minimize. Empty bounds: none. Empty x: the minimum is not a single point.
struct ReferenceMinimum {
  std::string problem;
  MinimizeMethod method;
  std::vector<double> low, high;
  double fun;
  std::vector<double> x;
  int nfev, nit;
};
/// A run of scipy.optimize.least_squares.
struct ReferenceFit {
  std::string problem;
  LeastSquaresMethod method;
  RobustLoss loss;
  double f_scale;
  bool jac_scale;
  std::vector<double> x0, low, high;
  double cost;
  std::vector<double> x, covariance;
  int nfev;
};

inline void PrintTo(const ReferenceMinimum& run, std::ostream* out) { *out << run.problem; }
inline void PrintTo(const ReferenceFit& run, std::ostream* out) { *out << run.problem; }

/// A function and the point where the runs begin.
struct TestProblem {
  std::function<Tensor(const Tensor&)> f;
  Tensor x0;
};
/// By its name in the reference.
TestProblem minimum_problem(const std::string& name);
TestProblem fit_problem(const std::string& name);

inline Tensor tensor_of_numbers(const std::vector<double>& values) {
  return from_values(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace gradus
