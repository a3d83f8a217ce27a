/// UpdateRule: one kind of optimizer: hyperparameters, slots, and the formulas of a step. Everything else (clipping,
/// decay, averages, counting, state) is part of Optimizer.
#pragma once
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A number of a step: numbers are f64 until they meet a variable.
Tensor number(double value);

/// The numbers of one step: f64 scalars.
struct StepNumbers {
  Tensor learning_rate;
  Tensor t;  // counts from 1
};

/// Values that a step computes once for all variables: numbers for `update`, and the next joint state.
struct Shared {
  Tensors numbers;  // f64 scalars
  Tensors state;    // does not depend on the learning rate
};

/// A variable and its slots after the step.
struct Updated {
  Tensor variable;
  Tensors slots;
};

/// A tensor kept per variable, in its shape.
struct Slot {
  std::string_view name;
  double initial = 0;
};

/// The formulas of an optimizer.
struct UpdateRule {
  virtual ~UpdateRule() = default;
  virtual std::string_view name() const = 0;
  /// The slots of every variable.
  virtual std::vector<Slot> slots() const { return {}; }
  /// First values of the f64 numbers kept for all variables together.
  virtual std::vector<double> joint_state() const { return {}; }
  virtual Shared share(const StepNumbers& step, In joint_state) const = 0;
  /// The step of one variable. `shared` holds share().numbers; all are of one type, f32 or f64. It is elementwise, so
  /// it is one kernel, unless is_elementwise() is false.
  virtual Updated update(const Tensor& variable, const Tensor& gradient, In slots, In shared) const = 0;
  /// True if elements of a variable are updated each by itself, so that single rows may be. If not, that holds for the
  /// slots alone, and the variable follows from them.
  virtual bool is_elementwise() const { return true; }
  /// For a rule that is not elementwise: the variable, computed from the slots after the step.
  virtual Tensor variable_after(const Tensor& variable, In /*slots*/, In /*shared*/) const { return variable; }
  /// The parts that a gradient of 0 leaves unchanged, bit for bit: the variable, then the slots. Those that are not
  /// listed change.
  virtual std::vector<bool> unmoved_by_zero() const { return {}; }
};

}  // namespace gradus
