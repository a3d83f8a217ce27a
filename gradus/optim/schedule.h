/// Schedules: a learning rate that is a number, or a function of the step, which counts updates from 0. A function is
/// computed inside the step's program, so it never retraces.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

class Schedule {
 public:
  Schedule(double constant) : constant_(constant) {}
  /// Of the step, an i64 scalar; made of ops; gives a floating scalar.
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor>
  Schedule(F f) : function_([f = std::move(f)](const Tensor& step) -> Tensor { return f(step); }) {}

  double operator()(std::int64_t step) const;

  // For the rooms of the library.
  bool is_constant() const { return !function_; }
  double constant() const { return constant_; }
  /// The rate at `step` as an f64 scalar. InvalidArgument if the function gives anything but a floating scalar.
  Tensor at(const Tensor& step) const;

 private:
  double constant_ = 0;
  std::function<Tensor(const Tensor&)> function_;
};

struct CosineDecayOptions {
  double initial_learning_rate, decay_steps;
  double alpha = 0;  // the share that is left in the end
  double warmup_steps = 0;
  double warmup_target = 0;
};
/// From initial_learning_rate in a straight line to warmup_target over warmup_steps, if there are any; then along half
/// a cosine to its alpha-th part over decay_steps (Loshchilov and Hutter 2017); then constant.
struct CosineDecay : Schedule {
  explicit CosineDecay(CosineDecayOptions options);
};

struct ExponentialDecayOptions {
  double initial_learning_rate, decay_steps, decay_rate;
  bool staircase = false;  // only whole numbers of decay_steps count
};
/// initial_learning_rate * decay_rate^(step / decay_steps)
struct ExponentialDecay : Schedule {
  explicit ExponentialDecay(ExponentialDecayOptions options);
};

/// values[0] up to and including step boundaries[0], values[1] up to and including boundaries[1] ..., then the last.
struct PiecewiseConstantDecay : Schedule {
  PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<double> values);
};

}  // namespace gradus
