/// Schedules: a learning rate that is a number, or a function of the step, which counts updates from 0. A function is
/// computed inside the step's program, so it never retraces. A number in the options below that is not finite is an
/// InvalidArgument.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// A learning rate: a number, or a function of the step.
class Schedule {
 public:
  Schedule(double constant) : constant_(constant) {}
  /// A function of the step, an i64 scalar. It consists of ops and gives a floating scalar.
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, Tensor>
  Schedule(F f) : function_([f = std::move(f)](const Tensor& step) -> Tensor { return f(step); }) {}

  Schedule(const Schedule&) = default;  // and no move: it would leave the rate 0 behind
  Schedule& operator=(const Schedule&) = default;
  /// The rate at `step`. InvalidArgument as for at().
  double operator()(std::int64_t step) const;

  // For the rooms of the library.
  /// True for a number.
  bool is_constant() const { return !function_; }
  /// The number.
  double constant() const { return constant_; }
  /// The rate at `step` as an f64 scalar. InvalidArgument if the function gives anything but a floating scalar.
  Tensor at(const Tensor& step) const;
  /// A text that is equal for equal schedules: "0.001", "CosineDecay(initial_learning_rate 0.1, ...)"; for another
  /// function, its rates at some steps. It draws no random numbers.
  std::string description() const;

 protected:
  /// A function with a description.
  Schedule(std::string description, std::function<Tensor(const Tensor&)> f)
      : description_(std::move(description)), function_(std::move(f)) {}

 private:
  double constant_ = 0;
  std::string description_;  // of a function; empty: unknown
  std::function<Tensor(const Tensor&)> function_;
};

/// A number of steps: any number, whole or not.
class Steps {
 public:
  constexpr Steps() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr Steps(Number steps) : steps_(static_cast<double>(steps)) {}
  /// The number.
  constexpr operator double() const { return steps_; }

  // For the rooms of the library.
  constexpr bool is_constant() const { return true; }
  constexpr double constant() const { return steps_; }

 private:
  double steps_ = 0;
};

/// Options of CosineDecay.
struct CosineDecayOptions {
  double initial_learning_rate;  // rate at step 0
  Steps decay_steps;             // steps of the decay
  double alpha = 0;              // share of the rate that is left at the end
  Steps warmup_steps = 0;        // steps of the warmup; 0: none
  double warmup_target = 0;      // rate at the end of the warmup
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate alpha warmup_steps warmup_target"),
                      Allowed::positive("decay_steps")};
  }
};
/// Cosine decay with optional warmup (Loshchilov and Hutter 2017). Linear from initial_learning_rate to warmup_target
/// over warmup_steps, if there are any. Then half a cosine down to alpha times that rate over decay_steps, then
/// constant. InvalidArgument unless decay_steps is positive, warmup_steps is not negative, and warmup_target is not 0
/// if there are warmup_steps.
struct CosineDecay : Schedule {
  explicit CosineDecay(CosineDecayOptions options);
};

/// Options of CosineDecayRestarts.
struct CosineDecayRestartsOptions {
  double initial_learning_rate;  // rate at step 0
  Steps first_decay_steps;       // steps of the first period
  double t_mul = 2;              // factor on the length from period to period
  double m_mul = 1;              // factor on the height of the wave from period to period
  double alpha = 0;              // least share of initial_learning_rate
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate alpha"),
                      Allowed::positive("first_decay_steps m_mul"), Allowed::at_least(1, "t_mul")};
  }
};
/// Cosine decay with restarts (Loshchilov and Hutter 2017): initial_learning_rate * ((1 - alpha) * wave + alpha), where
/// each period of the wave is half a cosine from 1 to 0. A step at which a period ends is the first of the next one.
/// InvalidArgument unless first_decay_steps and m_mul are positive and t_mul is at least 1.
struct CosineDecayRestarts : Schedule {
  explicit CosineDecayRestarts(CosineDecayRestartsOptions options);
};

/// Options of PolynomialDecay.
struct PolynomialDecayOptions {
  double initial_learning_rate;     // rate at step 0
  Steps decay_steps;                // steps of the decay
  double end_learning_rate = 1e-4;  // rate at the end
  double power = 1;                 // exponent; 1: linear
  bool cycle = false;               // extend decay_steps to the next multiple of it; else the rate stays at the end
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate end_learning_rate"),
                      Allowed::positive("decay_steps power")};
  }
};
/// Polynomial decay: (initial_learning_rate - end_learning_rate) * (1 - step / decay_steps)^power + end_learning_rate.
/// InvalidArgument unless decay_steps and power are positive.
struct PolynomialDecay : Schedule {
  explicit PolynomialDecay(PolynomialDecayOptions options);
};

/// Options of InverseTimeDecay.
struct InverseTimeDecayOptions {
  double initial_learning_rate;  // term of the formula
  Steps decay_steps;             // term of the formula
  double decay_rate;             // term of the formula
  bool staircase = false;        // count whole multiples of decay_steps only
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate decay_rate"), Allowed::positive("decay_steps")};
  }
};
/// Inverse time decay: initial_learning_rate / (1 + decay_rate * step / decay_steps). InvalidArgument unless
/// decay_steps is positive and decay_rate is not negative.
struct InverseTimeDecay : Schedule {
  explicit InverseTimeDecay(InverseTimeDecayOptions options);
};

/// Options of OneCycle.
struct OneCycleOptions {
  double max_learning_rate;       // highest rate
  std::int64_t total_steps;       // steps of the whole cycle
  double pct_start = 0.3;         // share of steps in which the rate rises
  bool linear = false;            // straight lines; else half cosines
  double div_factor = 25;         // the first rate is max_learning_rate divided by this
  double final_div_factor = 1e4;  // the last rate is the first one divided by this
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("max_learning_rate"),
                      Allowed::positive("total_steps div_factor final_div_factor"),
                      Allowed::share_below_one("pct_start")};
  }
};
/// One-cycle policy (Smith and Topin 2017): up to max_learning_rate at step pct_start * total_steps - 1, down until
/// step total_steps - 1, then constant. It is PyTorch's OneCycleLR without momentum and with two phases.
/// InvalidArgument unless total_steps, div_factor and final_div_factor are positive and pct_start is at least 0 and
/// below 1.
struct OneCycle : Schedule {
  explicit OneCycle(OneCycleOptions options);
};

/// Options of ExponentialDecay.
struct ExponentialDecayOptions {
  double initial_learning_rate;  // term of the formula
  Steps decay_steps;             // term of the formula
  double decay_rate;             // term of the formula
  bool staircase = false;        // count whole multiples of decay_steps only
  static constexpr auto ranges() {
    return std::array{Allowed::not_negative("initial_learning_rate"), Allowed::positive("decay_steps decay_rate")};
  }
};
/// Exponential decay: initial_learning_rate * decay_rate^(step / decay_steps). InvalidArgument unless decay_steps and
/// decay_rate are positive.
struct ExponentialDecay : Schedule {
  explicit ExponentialDecay(ExponentialDecayOptions options);
};

/// Piecewise constant rates: values[0] up to and including step boundaries[0], values[1] up to and including
/// boundaries[1] ..., then the last. InvalidArgument unless there is one value more than boundaries, and these rise.
struct PiecewiseConstantDecay : Schedule {
  PiecewiseConstantDecay(std::vector<std::int64_t> boundaries, std::vector<double> values);
};

}  // namespace gradus
