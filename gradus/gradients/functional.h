/// Transforms of functions, without a tape in sight: gradients, and a function of one row applied to all. They compose,
/// run lazily and traced, and take lambdas, models and compiled functions alike.
#pragma once
#include <array>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include "gradus/gradients/tape.h"
#include "gradus/ops/shape.h"

namespace gradus {

template <class F>
concept TensorFunction = std::is_invocable_r_v<Tensor, F&, Tensor>;

struct LossAndGradients {
  Loss loss;
  Gradients gradients;
};

namespace detail {
using TensorMap = std::function<Tensor(const Tensor&)>;

std::pair<Tensor, std::function<Tensor(Tensor)>> vjp(const TensorMap& f, const Tensor& x);
std::pair<Tensor, Tensor> jvp(const TensorMap& f, const Tensor& x, const Tensor& tangent);
Tensor hessian_vector_product(const TensorMap& f, const Tensor& x, const Tensor& v);
Tensor jacobian(const TensorMap& f, const Tensor& x, JacobianOptions options);
Tensor batch_jacobian(const TensorMap& f, const Tensor& x, JacobianOptions options);
Tensor hessian(const TensorMap& f, const Tensor& x, JacobianOptions options);
Tensor vectorized_map(const TensorMap& f, const Tensor& xs);
}  // namespace detail

/// f(x) and its gradient by x, zeros where f does not depend on it; f must give a scalar.
template <TensorFunction F> std::pair<Tensor, Tensor> value_and_gradient(F&& f, const Tensor& x) {
  const Tensor at = as_argument(x);
  GradientTape tape;
  tape.watch(at);
  const Tensor y = f(at);
  return {y, tape.gradient(y, at, {.unconnected = Unconnected::zero})};
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
/// The gradient of f by x, zeros where f does not depend on it; f must give a scalar.
template <TensorFunction F> Tensor gradient(F&& f, const Tensor& x) { return value_and_gradient(f, x).second; }
/// Of f(x0, x1 ...), by each, zeros where f does not depend on one; f must give a scalar.
template <class F, std::size_t N> std::array<Tensor, N> gradient(F&& f, const Tensor (&x)[N]) {
  Tensor at[N];
  for (std::size_t i = 0; i < N; ++i) at[i] = as_argument(x[i]);
  GradientTape tape;
  for (const Tensor& each : at) tape.watch(each);
  const Tensor y = std::apply(f, std::to_array(at));
  return tape.gradient(y, at, {.unconnected = Unconnected::zero});
}

// What follows takes any f: T[x...] -> U[y...] with T, U floating types, and any x of T; else it is an
// InvalidArgument. Where f does not depend on its argument, derivatives are zeros. With max_bytes, which needs sizes
// that are known, matrices are computed in chunks of the same bits; a ResourceExhausted names the smallest that works.
// Gradients of every order: each result can be differentiated again.

/// Reverse mode: f(x), and the pullback, which takes a cotangent of the spec of f(x) to J' u, of the spec of x. f is
/// called once, however often the pullback is. `auto [y, pullback] = vjp(f, x);`
template <TensorFunction F> std::pair<Tensor, std::function<Tensor(Tensor)>> vjp(F&& f, const Tensor& x) {
  return detail::vjp([&](const Tensor& at) -> Tensor { return f(at); }, x);
}
/// Forward mode: f(x), and its derivative J v along a tangent of the spec of x.
template <TensorFunction F> std::pair<Tensor, Tensor> jvp(F&& f, const Tensor& x, const Tensor& tangent) {
  return detail::jvp([&](const Tensor& at) -> Tensor { return f(at); }, x, tangent);
}
/// H v of a scalar f, forward over reverse: about the cost of two gradients, and no matrix.
template <TensorFunction F> Tensor hessian_vector_product(F&& f, const Tensor& x, const Tensor& v) {
  return detail::hessian_vector_product([&](const Tensor& at) -> Tensor { return f(at); }, x, v);
}
/// All derivatives of f(x): U[y...] by x: T[x...], as [y..., x...]: a walk for each element of y, or of x if those are
/// fewer, all of them at once.
template <TensorFunction F> Tensor jacobian(F&& f, const Tensor& x, JacobianOptions options = {}) {
  return detail::jacobian([&](const Tensor& at) -> Tensor { return f(at); }, x, options);
}
/// The Jacobian of each example: f gives U[n, y...] of x: T[n, x...] example by example, and the result is [n, y...,
/// x...]. One walk serves an element of y, or of x if those are fewer, in all examples. That examples do not mix is
/// checked on the graph: an InvalidArgument names the op that mixes them. With max_bytes the batch is cut: f is called
/// for a part of it, and random ops in it draw other numbers.
template <TensorFunction F> Tensor batch_jacobian(F&& f, const Tensor& x, JacobianOptions options = {}) {
  return detail::batch_jacobian([&](const Tensor& at) -> Tensor { return f(at); }, x, options);
}
/// Second derivatives of a scalar f by x: T[x...], as [x..., x...].
template <TensorFunction F> Tensor hessian(F&& f, const Tensor& x, JacobianOptions options = {}) {
  return detail::hessian([&](const Tensor& at) -> Tensor { return f(at); }, x, options);
}

/// f of each row of axis 0, as one batched program: xs [n, x...], f: T[x...] -> U[y...] of any dtypes gives [n, y...].
/// `f` is called once. Random ops draw other numbers for each row. A C++ branch on what depends on the row, or
/// assigning a Variable, is an InvalidArgument.
template <TensorFunction F> Tensor vectorized_map(F&& f, const Tensor& xs) {
  return detail::vectorized_map([&](const Tensor& row) -> Tensor { return f(row); }, xs);
}

}  // namespace gradus
