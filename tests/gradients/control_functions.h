/// Functions with branches and loops, for tests.
#pragma once
#include "gradus/gradus.h"

namespace gradus {

/// y = |x| by a branch.
inline Tensor magnitude(const Tensor& x) {
  return cond(reduce_sum(x) > 0, [&] { return x * x; }, [&] { return -x * 3; });
}
/// Newton's iteration for the square root of x, until it is near; never more than 20 times.
inline Tensor root(const Tensor& x, WhileOptions options = {}) {
  const auto far = [&](Tensor y, Tensor n) { return logical_and(reduce_any(abs(y * y - x) > 1e-9), n < 20); };
  const auto step = [&](Tensor y, Tensor n) { return std::tuple{(y + x / y) / 2, n + 1}; };
  return std::get<0>(while_loop(far, step, std::tuple{x, constant(0)}, options));
}
/// A recurrent network: h = tanh(h w + x); gives the last h and the sum of all.
inline Tensor recurrent(const Tensor& h0, const Tensor& w, const Tensor& xs) {
  const auto [last, all] = scan(
      [&](Tensor h, Tensor x) {
        const Tensor next = tanh(reshape(matmul(reshape(h, {1, -1}), w), {-1}) + x);
        return std::pair{next, next * x};
      },
      h0, xs);
  return reduce_sum(last * last) + reduce_sum(all);
}
inline Tensor recurrent_unrolled(Tensor h, const Tensor& w, const Tensor& xs) {
  std::vector<Tensor> all;
  for (const Tensor& x : unstack(xs)) {
    h = tanh(reshape(matmul(reshape(h, {1, -1}), w), {-1}) + x);
    all.push_back(h * x);
  }
  return reduce_sum(h * h) + reduce_sum(stack(all));
}

/// Second derivatives along a direction: gradients of the sum of gradients.
template <class F> Tensor second_order(F f, const Tensor& x) {
  return gradient([&](Tensor t) { return reduce_sum(square(gradient(f, t))); }, x);
}

}  // namespace gradus
