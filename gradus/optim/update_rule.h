/// UpdateRule: one kind of optimizer: hyperparameters, slots, and the formulas of a step. Everything else (clipping,
/// decay, averages, counting, state) is part of Optimizer. A user's optimizer derives from both:
///
///   struct SignRule final : UpdateRule {
///     std::string_view name() const override { return "sign"; }
///     Shared share(const StepNumbers& step, std::span<const Tensor>) const override {
///       return {{step.learning_rate}, {}};
///     }
///     Updated update(const Tensor& w, const Tensor& g, std::span<const Tensor>,
///                    std::span<const Tensor> shared) const override {
///       return {w - shared[0] * sign(g), {}};
///     }
///   };
///   struct SignSGD : Optimizer {
///     explicit SignSGD(double rate) : Optimizer(std::make_shared<SignRule>(), {.learning_rate = rate}) {}
///   };
#pragma once
#include <span>
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The formulas of an optimizer. They are traced once for each kind of step, for variables of every shape, and must not
/// change afterwards: hyperparameters are const. `number(x)` makes an f64 scalar of a C++ number.
struct UpdateRule {
  /// The numbers of one step: f64 scalars.
  struct StepNumbers {
    Tensor learning_rate;  // that of the variable's group
    Tensor t;              // counts from 1
  };
  /// Values that a step computes once for all variables.
  struct Shared {
    std::vector<Tensor> numbers;  // for `update`: f64 scalars
    std::vector<Tensor> state;    // the next joint state; it must not depend on the learning rate
  };
  /// A variable and its slots after the step.
  struct Updated {
    Tensor variable;            // in the spec of the variable before
    std::vector<Tensor> slots;  // in the order of slots()
  };
  /// A tensor kept per variable, in its shape.
  struct Slot {
    std::string_view name;  // in saved files; it lives as long as the rule
    double initial = 0;     // first value of every element
  };

  virtual ~UpdateRule() = default;
  /// The name in messages and saved files, as "adam".
  virtual std::string_view name() const = 0;
  /// The slots of every variable; by default none.
  virtual std::vector<Slot> slots() const { return {}; }
  /// First values of the f64 numbers kept for all variables together; by default none.
  virtual std::vector<double> joint_state() const { return {}; }
  /// The part of a step that is the same for all variables. `joint_state`: an f64 scalar for each of joint_state().
  virtual Shared share(const StepNumbers& step, std::span<const Tensor> joint_state) const = 0;
  /// The step of one variable. `shared` holds share().numbers; all are of one type, f32 or f64. It is elementwise, so
  /// it is one kernel, unless is_elementwise() is false.
  virtual Updated update(const Tensor& variable, const Tensor& gradient, std::span<const Tensor> slots,
                         std::span<const Tensor> shared) const = 0;
  /// True if each element of a variable is updated by itself, so that single rows can be updated. If false, that holds
  /// only for the slots, and the variable is computed from them.
  virtual bool is_elementwise() const { return true; }
  /// For a rule that is not elementwise: the variable, computed from the slots after the step.
  virtual Tensor variable_after(const Tensor& variable, std::span<const Tensor> /*slots*/,
                                std::span<const Tensor> /*shared*/) const {
    return variable;
  }
  /// The parts that a gradient of 0 leaves unchanged, bit for bit: the variable, then the slots. Parts that are not
  /// listed change.
  virtual std::vector<bool> unmoved_by_zero() const { return {}; }

 protected:
  /// A number as an f64 scalar: numbers of a step are f64 until they meet a variable.
  static Tensor number(double value);
};

// For the rooms of the library.

namespace detail {
/// A number of a step: an f64 scalar.
Tensor number(double value);
}  // namespace detail

}  // namespace gradus
