/// The primitives of incomplete gamma and beta functions and of Hurwitz's zeta function. They are library kernels,
/// since the number of terms of an element depends on its value.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// a, x -> the derivative of order `order` by a of P(a, x), or with `upper` of 1 - P(a, x).
struct Igamma {
  static constexpr auto name = "igamma";
  static constexpr auto library_kernel = "igamma";
  int order = 0;       // order of the derivative by a
  bool upper = false;  // take 1 - P(a, x)
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs, int, int along) const { return along; }
};

/// a, b, x -> the derivative of these orders by a and b.
struct Betainc {
  static constexpr auto name = "betainc";
  static constexpr auto library_kernel = "betainc";
  int order_a = 0, order_b = 0;  // orders of the derivatives by a and b
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs, int, int along) const { return along; }
};

/// x, q -> the derivative of order `order` by x.
struct Zeta {
  static constexpr auto name = "zeta";
  static constexpr auto library_kernel = "zeta";
  int order = 0;  // order of the derivative by x
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs, int, int along) const { return along; }
};

}  // namespace gradus
