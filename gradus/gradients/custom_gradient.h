/// Custom gradients, and gradient checkpointing: functions that determine how they are differentiated.
#pragma once
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include "gradus/gradients/functional.h"
#include "gradus/ops/call.h"

namespace gradus {

namespace detail {

template <class R> Tensors as_tensors(R&& result) {
  if constexpr (std::is_convertible_v<R, Tensor>) return {std::forward<R>(result)};
  else return std::apply([](auto&&... part) { return Tensors{Tensor(part)...}; }, std::forward<R>(result));
}

/// The call f(in[0], in[1], ...).
template <class F, std::size_t... i> decltype(auto) apply_to(F& f, In in, std::index_sequence<i...>) {
  return f(in[i]...);
}

}  // namespace detail

/// A differentiable function of N tensors; made by custom_gradient.
template <class F> class CustomGradient {
 public:
  /// A function of f's kind; use custom_gradient to make one.
  explicit CustomGradient(F f) : f_(std::move(f)) {}

  /// f(x...), with the custom gradient.
  template <std::convertible_to<Tensor>... T>
    requires(sizeof...(T) > 0) && std::invocable<const F&, const T&...>
  Tensor operator()(const T&... x) const {
    const std::array<Tensor, sizeof...(T)> arguments{Tensor(x)...};
    return detail::with_gradient(arguments, [this](In in) {
      auto made = detail::apply_to(f_, in, std::make_index_sequence<sizeof...(T)>());
      return detail::WithPullback{Tensor(std::move(made.first)), [pullback = std::move(made.second)](const Tensor& dy) {
                                    return detail::as_tensors(pullback(dy));
                                  }};
    });
  }

 private:
  F f_;
};

/// A function with a custom gradient. f(x...) gives pair{y, pullback}. pullback(dy), with dy of the spec of y, gives
/// the gradient by x, or an array or tuple of one per x, each in the spec of its x. Both are traced when the function
/// is applied. The pullback may use whatever f computed, and can itself be differentiated. Tensors and Variables that f
/// captures have their ordinary gradient. An empty Tensor stands for a gradient of zeros. InvalidArgument if a gradient
/// is missing, too many or of another spec.
template <class F> CustomGradient<F> custom_gradient(F f) { return CustomGradient<F>(std::move(f)); }

/// A function that keeps no intermediate values alive for its gradient; made by recompute_grad.
template <class F> class RecomputeGrad {
 public:
  explicit RecomputeGrad(F f) : f_(std::move(f)) {}
  /// f(x), which is computed again for its gradient.
  Tensor operator()(const Tensor& x) const {
    return detail::recomputed("recompute_grad", {&x, 1}, [this](In in) { return Tensors{Tensor(f_(in[0]))}; })[0];
  }

 private:
  mutable F f_;
};

/// Gradient checkpointing: f, with a gradient that computes f again instead of keeping its activations. It trades time
/// for memory, with the same bits. f must not assign Variables (InvalidArgument).
template <TensorFunction F> RecomputeGrad<F> recompute_grad(F f) { return RecomputeGrad<F>(std::move(f)); }

}  // namespace gradus
