/// Activations: any callable from Tensor to Tensor.
#pragma once
#include <functional>
#include "gradus/base/error.h"
#include "gradus/graph/tensor.h"

namespace gradus {

class Activation {
 public:
  Activation(Tensor (*f)(const Tensor&)) : f_(f) {}  // relu, tanh: an overloaded name
  Activation(Tensor (*f)(const Tensor&, int)) : f_([f](const Tensor& x) { return f(x, -1); }) {}  // softmax: last axis
  Activation(Tensor (*f)(const Tensor&, double)) : f_([f](const Tensor& x) { return f(x, 0.2); }) {}  // leaky_relu
  template <class F>
    requires std::is_invocable_r_v<Tensor, const F&, const Tensor&>
  Activation(F f) : f_(std::move(f)) {}
  Activation(const char*) = delete;         // activations are functions: relu
  Activation(const Activation&) = default;  // and no move: what is left would do nothing
  Activation& operator=(const Activation&) = default;
  Tensor operator()(const Tensor& x) const {
    require(static_cast<bool>(f_), "this activation is an empty function");
    return f_(x);
  }

  /// Whether it was made of this function.
  bool is(Tensor (*f)(const Tensor&)) const {
    const auto* held = f_.target<Tensor (*)(const Tensor&)>();
    return held && *held == f;
  }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

}  // namespace gradus
