/// Transforms of functions, without an explicit tape: gradients, and functions of one row applied to all. They compose,
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

/// A callable that takes a Tensor and returns one.
template <class F>
concept TensorFunction = std::is_invocable_r_v<Tensor, F&, Tensor>;

/// A loss with its gradients.
struct LossAndGradients {
  Loss loss;            // loss of the batch
  Gradients gradients;  // gradients of the loss by the sources
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

/// f(x) and its gradient by x, zeros where f does not depend on it. f must give a scalar.
template <TensorFunction F> std::pair<Tensor, Tensor> value_and_gradient(F&& f, const Tensor& x) {
  const Tensor at = detail::as_argument(x);
  GradientTape tape;
  tape.watch(at);
  const Tensor y = f(at);
  return {y, tape.gradient(y, at, {.unconnected = Unconnected::zero})};
}
/// loss(), with its gradients by the sources.
template <class F>
  requires std::is_invocable_r_v<Loss, F&>
LossAndGradients value_and_gradient(F&& loss, const Variables& sources) {
  GradientTape tape;
  Loss value = loss();
  Gradients gradients = tape.gradient(value, sources);
  return {std::move(value), std::move(gradients)};
}
/// The gradient of f by x, zeros where f does not depend on it. f must give a scalar.
template <TensorFunction F> Tensor gradient(F&& f, const Tensor& x) { return value_and_gradient(f, x).second; }
/// The gradients of f(x0, x1 ...) by each argument, zeros where f does not depend on one. f must give a scalar.
template <class F, std::size_t N> std::array<Tensor, N> gradient(F&& f, const Tensor (&x)[N]) {
  Tensor at[N];
  for (std::size_t i = 0; i < N; ++i) at[i] = detail::as_argument(x[i]);
  GradientTape tape;
  for (const Tensor& each : at) tape.watch(each);
  const Tensor y = std::apply(f, std::to_array(at));
  return tape.gradient(y, at, {.unconnected = Unconnected::zero});
}

// The functions below take any f: T[x...] -> U[y...] with T, U floating types, and any x of T; else they throw an
// InvalidArgument. Where f does not depend on its argument, derivatives are zeros. With max_bytes, which needs known
// sizes, matrices are computed in chunks, with the same bits. A ResourceExhausted names the smallest budget that works.
// Gradients exist in every order: each result can be differentiated again.

/// Vector-Jacobian product (reverse mode): f(x), and the pullback. The pullback takes a cotangent u in the spec of f(x)
/// to J' u, in the spec of x. f is called once, however often the pullback is. `auto [y, pullback] = vjp(f, x);`
template <TensorFunction F> std::pair<Tensor, std::function<Tensor(Tensor)>> vjp(F&& f, const Tensor& x) {
  return detail::vjp([&](const Tensor& at) -> Tensor { return f(at); }, x);
}
/// Jacobian-vector product (forward mode): f(x), and its derivative J v along a tangent v in the spec of x.
template <TensorFunction F> std::pair<Tensor, Tensor> jvp(F&& f, const Tensor& x, const Tensor& tangent) {
  return detail::jvp([&](const Tensor& at) -> Tensor { return f(at); }, x, tangent);
}
/// Hessian-vector product H v of a scalar f, forward over reverse: about the cost of two gradients, without a matrix.
template <TensorFunction F> Tensor hessian_vector_product(F&& f, const Tensor& x, const Tensor& v) {
  return detail::hessian_vector_product([&](const Tensor& at) -> Tensor { return f(at); }, x, v);
}
/// The Jacobian of f(x): U[y...] by x: T[x...], as [y..., x...]. It takes one walk per element of y, or of x if those
/// are fewer, all of them at once.
template <TensorFunction F> Tensor jacobian(F&& f, const Tensor& x, JacobianOptions options = {}) {
  return detail::jacobian([&](const Tensor& at) -> Tensor { return f(at); }, x, options);
}
/// The Jacobian of each example. f gives U[n, y...] from x: T[n, x...] example by example; the result is [n, y...,
/// x...]. One walk per element of y, or of x if those are fewer, serves all examples. The graph is checked: an
/// InvalidArgument names an op that mixes examples. With max_bytes the batch is split: f is called for a part of it,
/// and random ops in it draw other numbers.
template <TensorFunction F> Tensor batch_jacobian(F&& f, const Tensor& x, JacobianOptions options = {}) {
  return detail::batch_jacobian([&](const Tensor& at) -> Tensor { return f(at); }, x, options);
}
/// The Hessian: second derivatives of a scalar f by x: T[x...], as [x..., x...].
template <TensorFunction F> Tensor hessian(F&& f, const Tensor& x, JacobianOptions options = {}) {
  return detail::hessian([&](const Tensor& at) -> Tensor { return f(at); }, x, options);
}

/// f applied to each row of axis 0, as one batched program: for xs [n, x...], f: T[x...] -> U[y...] of any dtypes gives
/// [n, y...]. `f` is called once. Random ops draw other numbers for each row. InvalidArgument for a C++ branch on a
/// value that depends on the row, and for assigning a Variable.
template <TensorFunction F> Tensor vectorized_map(F&& f, const Tensor& xs) {
  return detail::vectorized_map([&](const Tensor& row) -> Tensor { return f(row); }, xs);
}

}  // namespace gradus
