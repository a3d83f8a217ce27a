/// Activations: any callable from Tensor to Tensor.
#pragma once
#include <functional>
#include "gradus/base/error.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// An activation function of a layer: any callable from Tensor to Tensor.
class Activation {
 public:
  Activation(Tensor (*f)(const Tensor&)) : f_(f) {}  // a function such as relu or tanh, also if its name is overloaded
  /// A function with an axis, such as softmax: it gets the last axis.
  Activation(Tensor (*f)(const Tensor&, int)) : f_([f](const Tensor& x) { return f(x, -1); }) {}
  /// A function with a number, such as leaky_relu: it gets 0.2.
  Activation(Tensor (*f)(const Tensor&, double)) : f_([f](const Tensor& x) { return f(x, 0.2); }) {}
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Tensor&>
  Activation(F f) : f_(std::move(f)) {}
  Activation(const char*) = delete;         // activations are functions: relu
  Activation(const Activation&) = default;  // and no move: it would leave an empty function behind
  Activation& operator=(const Activation&) = default;
  /// Applies the function. InvalidArgument for an empty one.
  Tensor operator()(const Tensor& x) const {
    require(static_cast<bool>(f_), "this activation is an empty function");
    return f_(x);
  }

  /// True if it was made from this function.
  bool is(Tensor (*f)(const Tensor&)) const {
    const auto* held = f_.target<Tensor (*)(const Tensor&)>();
    return held && *held == f;
  }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

}  // namespace gradus
