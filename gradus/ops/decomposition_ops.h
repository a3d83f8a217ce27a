/// The primitives of decompositions. A result of several arrays is one row of numbers, in the order that a comment
/// gives: its pieces are views. They are primitives since data decides how often values are iterated, and which rows
/// are exchanged. T is f32 or f64, and finite, or else all of the result is NaN.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/copy.h"

namespace gradus {

/// x: T[..., m, n] -> q: [m, k], r: [k, n]; k is n if `tall`, else m, and m if `full`.
struct Qr {
  static constexpr auto name = "qr";
  static constexpr auto library_kernel = "qr";
  static constexpr auto takes = Takes::floats;
  bool tall = true;  // m >= n
  bool full = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// x: T[..., n, n], of which the lower triangle is read -> with vectors v: [n, n], then values: [n].
struct Eigh {
  static constexpr auto name = "eigh";
  static constexpr auto library_kernel = "eigh";
  static constexpr auto takes = Takes::floats;
  bool vectors = true;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// x: T[..., m, n] -> with vectors u: [m, k], then s: [k], then with vectors v: [n, k]; k is n if `tall`, else m.
struct Svd {
  static constexpr auto name = "svd";
  static constexpr auto library_kernel = "svd";
  static constexpr auto takes = Takes::floats;
  bool tall = true;  // m >= n
  bool vectors = true;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// x: T[..., m, n] -> T[..., n, m]; singular values up to rcond times the largest one count as 0.
struct Pinv {
  static constexpr double by_sizes = -1;  // rcond: 10 max(m, n) epsilon
  static constexpr auto name = "pinv";
  static constexpr auto library_kernel = "pinv";
  static constexpr auto takes = Takes::floats;
  double rcond = 0;
  bool hermitian = false;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// x: T[..., n, n] -> l and u: [n, n], then the permutation: [n].
struct Lu {
  static constexpr auto name = "lu";
  static constexpr auto library_kernel = "lu";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};
/// x: T[..., n, n] -> the same.
struct MatrixExp {
  static constexpr auto name = "matrix_exp";
  static constexpr auto library_kernel = "matrix_exp";
  static constexpr auto takes = Takes::floats;
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
  int carries(Specs in, int operand, int along) const;
};

/// Arrays that stand one after the other in rows of numbers.
class ArraysOf {
 public:
  explicit ArraysOf(Tensor numbers) : numbers_(std::move(numbers)) {}
  Tensor vector(std::int64_t n);
  Tensor matrix(std::int64_t m, std::int64_t n);

 private:
  Tensor numbers_;
  std::int64_t done_ = 0;
};

/// L of both triangles of an LU decomposition.
Tensor unit_lower(const Tensor& lower_upper);

/// `op` of x. Plugins do not have these ops: what is on a device of theirs is computed by the processor, and brought
/// back.
template <class Op> Tensor on_processor(const Op& op, const Tensor& x) {
  const Placement chosen = DeviceScope::current();
  const Device there = chosen.is_named() ? chosen.device() : x.device();
  if (there.kind == DeviceKind::cpu) return apply(op, x);
  const auto here = [&] {
    const DeviceScope scope(cpu());
    return apply(op, x.to(cpu()));
  };
  return copy_to(here(), x.spec().device);
}

}  // namespace gradus
