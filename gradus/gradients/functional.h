/// Transforms of functions, without a tape in sight: gradients, and a function of one row applied to all. They compose,
/// run lazily and traced, and take lambdas, models and compiled functions alike.
#pragma once
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include "gradus/autodiff/vmap.h"
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

namespace detail {
Tensor vectorized_map(const TensorsFunction& f, const Tensor& xs);
}  // namespace detail

/// f of each row of axis 0, as one batched program: xs [n, x...], f: T[x...] -> U[y...] of any dtypes gives [n, y...].
/// `f` is called once. Random ops draw other numbers for each row. A C++ branch on what depends on the row, or
/// assigning a Variable, is an InvalidArgument.
template <TensorFunction F> Tensor vectorized_map(F&& f, const Tensor& xs) {
  return detail::vectorized_map([&](In row) { return Tensors{f(row[0])}; }, xs);
}

}  // namespace gradus
