/// Schedules: a learning rate that is a number, or a function of the step, which counts updates from 0. A function is
/// computed inside the step's program, so it never retraces. In the options of those below a number that is not finite
/// is an InvalidArgument.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

class Schedule {
 public:
  Schedule(double constant) : constant_(constant) {}
  /// Of the step, an i64 scalar; made of ops; gives a floating scalar.
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor>
  Schedule(F f) : function_([f = std::move(f)](const Tensor& step) -> Tensor { return f(step); }) {}

  Schedule(const Schedule&) = default;  // and no move: what is left would be the rate 0
  Schedule& operator=(const Schedule&) = default;
  /// The rate at `step`; InvalidArgument as for at().
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
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate alpha warmup_steps warmup_target"),
                      Allowed::positive("decay_steps")};
  }
};
/// From initial_learning_rate in a straight line to warmup_target over warmup_steps, if there are any; then along half
/// a cosine to its alpha-th part over decay_steps (Loshchilov and Hutter 2017); then constant. InvalidArgument unless
/// decay_steps is positive, warmup_steps is not negative, and warmup_target is not 0 where there are warmup_steps.
struct CosineDecay : Schedule {
  explicit CosineDecay(CosineDecayOptions options);
};

struct CosineDecayRestartsOptions {
  double initial_learning_rate, first_decay_steps;
  double t_mul = 2;  // each period is so many times as long as the one before
  double m_mul = 1;  // and its wave so many times as high
  double alpha = 0;  // the share of initial_learning_rate on which the waves stand
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate alpha"),
                      Allowed::positive("first_decay_steps m_mul"), Allowed::at_least(1, "t_mul")};
  }
};
/// initial_learning_rate * ((1 - alpha) * wave + alpha), the wave half a cosine from 1 to 0, over and over (Loshchilov
/// and Hutter 2017). A step at which a period ends is the first of the next one. InvalidArgument unless
/// first_decay_steps and m_mul are positive and t_mul is at least 1.
struct CosineDecayRestarts : Schedule {
  explicit CosineDecayRestarts(CosineDecayRestartsOptions options);
};

struct PolynomialDecayOptions {
  double initial_learning_rate, decay_steps;
  double end_learning_rate = 1e-4;
  double power = 1;
  bool cycle = false;  // decay_steps is taken as often as the step needs, at least once; else the end stays
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate end_learning_rate"),
                      Allowed::positive("decay_steps power")};
  }
};
/// (initial_learning_rate - end_learning_rate) * (1 - step / decay_steps)^power + end_learning_rate. InvalidArgument
/// unless decay_steps and power are positive.
struct PolynomialDecay : Schedule {
  explicit PolynomialDecay(PolynomialDecayOptions options);
};

struct InverseTimeDecayOptions {
  double initial_learning_rate, decay_steps, decay_rate;
  bool staircase = false;  // only whole numbers of decay_steps count
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate decay_rate"), Allowed::positive("decay_steps")};
  }
};
/// initial_learning_rate / (1 + decay_rate * step / decay_steps). InvalidArgument unless decay_steps is positive and
/// decay_rate is not negative.
struct InverseTimeDecay : Schedule {
  explicit InverseTimeDecay(InverseTimeDecayOptions options);
};

struct OneCycleOptions {
  double max_learning_rate;
  std::int64_t total_steps;
  double pct_start = 0.3;         // the share of steps in which the rate rises
  bool linear = false;            // straight lines; else half cosines
  double div_factor = 25;         // the first rate is max_learning_rate / div_factor,
  double final_div_factor = 1e4;  // the last one that divided by this
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_learning_rate"),
                      Allowed::positive("total_steps div_factor final_div_factor"),
                      Allowed::share_below_one("pct_start")};
  }
};
/// Up to max_learning_rate at step pct_start * total_steps - 1 and down until step total_steps - 1, then constant
/// (Smith and Topin 2017; PyTorch's OneCycleLR without momentum and with two phases). InvalidArgument unless
/// total_steps, div_factor and final_div_factor are positive and pct_start is at least 0 and below 1.
struct OneCycle : Schedule {
  explicit OneCycle(OneCycleOptions options);
};

struct ExponentialDecayOptions {
  double initial_learning_rate, decay_steps, decay_rate;
  bool staircase = false;  // only whole numbers of decay_steps count
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate"), Allowed::positive("decay_steps decay_rate")};
  }
};
/// initial_learning_rate * decay_rate^(step / decay_steps). InvalidArgument unless decay_steps and decay_rate are
/// positive.
struct ExponentialDecay : Schedule {
  explicit ExponentialDecay(ExponentialDecayOptions options);
};

/// values[0] up to and including step boundaries[0], values[1] up to and including boundaries[1] ..., then the last.
/// InvalidArgument unless there is one value more than boundaries, and these rise.
struct PiecewiseConstantDecay : Schedule {
  PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<double> values);
};

}  // namespace gradus
