/// Gradients of functions, without a tape in sight.
#pragma once
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include "gradus/gradients/tape.h"

namespace gradus {

template <class F>
concept TensorFunction = std::is_invocable_r_v<Tensor, F&, Tensor>;

struct LossAndGradients {
  Loss loss;
  Gradients gradients;
};

/// f(x) and its gradient by x; f must give a scalar.
template <TensorFunction F> std::pair<Tensor, Tensor> value_and_gradient(F&& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  return {y, tape.gradient(y, x)};
}
/// loss() and its gradients by the sources.
template <class F>
  requires std::is_invocable_r_v<Loss, F&>
LossAndGradients value_and_gradient(F&& loss, const Variables& sources) {
  GradientTape tape;
  Loss value = loss();
  Gradients gradients = tape.gradient(value, sources);
  return {std::move(value), std::move(gradients)};
}
/// The gradient of f by x; f must give a scalar.
template <TensorFunction F> Tensor gradient(F&& f, const Tensor& x) { return value_and_gradient(f, x).second; }
/// Of f(x0, x1 ...), by each; f must give a scalar.
template <class F, std::size_t N> std::array<Tensor, N> gradient(F&& f, const Tensor (&x)[N]) {
  GradientTape tape;
  for (const Tensor& each : x) tape.watch(each);
  const Tensor y = std::apply(f, std::to_array(x));
  return tape.gradient(y, x);
}

}  // namespace gradus
