/// UpdateRule: what one kind of optimizer is: hyperparameters, slots, and the formulas of a step. All else (clipping,
/// decay, counting, state) is the Optimizer's.
#pragma once
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The numbers of one step: f64 scalars.
struct StepNumbers {
  Tensor learning_rate;
  Tensor t;  // counts from 1
};

/// What a step computes once for all variables: numbers for `update`, and the next joint state.
struct Shared {
  Tensors numbers;  // f64 scalars
  Tensors state;
};

/// A variable and its slots after the step.
struct Updated {
  Tensor variable;
  Tensors slots;
};

struct UpdateRule {
  virtual ~UpdateRule() = default;
  virtual std::string_view name() const = 0;
  /// Names of the tensors kept for every variable, of its spec; they start at 0.
  virtual std::vector<std::string_view> slots() const { return {}; }
  /// First values of the f64 numbers kept for all variables together.
  virtual std::vector<double> joint_state() const { return {}; }
  virtual Shared share(const StepNumbers& step, In joint_state) const = 0;
  /// `shared` holds share().numbers in the variable's dtype. All elementwise, so that it is one kernel.
  virtual Updated update(const Tensor& variable, const Tensor& gradient, In slots, In shared) const = 0;
};

}  // namespace gradus
