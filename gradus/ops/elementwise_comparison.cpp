/// Comparisons, logic, choice, and casts between dtypes.
#include <cmath>
#include <cstring>
#include "gradus/ops/elementwise_parts.h"
#include "gradus/ops/reduce.h"

namespace gradus {
namespace {

struct Less {
  static constexpr auto name = "less";
  static constexpr auto result = boolean;
  auto emit(auto a, auto b) const { return a < b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct LessEqual {
  static constexpr auto name = "less_equal";
  static constexpr auto result = boolean;
  auto emit(auto a, auto b) const { return a <= b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct Equal {
  static constexpr auto name = "equal";
  static constexpr auto result = boolean;
  static constexpr auto takes = Takes::anything;
  auto emit(auto a, auto b) const { return a == b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct NotEqual {
  static constexpr auto name = "not_equal";
  static constexpr auto result = boolean;
  static constexpr auto takes = Takes::anything;
  auto emit(auto a, auto b) const { return !(a == b); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct LogicalAnd {
  static constexpr auto name = "logical_and";
  static constexpr auto takes = Takes::booleans;
  auto emit(auto a, auto b) const { return a & b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct LogicalOr {
  static constexpr auto name = "logical_or";
  static constexpr auto takes = Takes::booleans;
  auto emit(auto a, auto b) const { return a | b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct LogicalXor {
  static constexpr auto name = "logical_xor";
  static constexpr auto takes = Takes::booleans;
  auto emit(auto a, auto b) const { return a ^ b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(2); }
};

struct LogicalNot {
  static constexpr auto name = "logical_not";
  static constexpr auto takes = Takes::booleans;
  auto emit(auto x) const { return !x; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

struct IsFinite {
  static constexpr auto name = "is_finite";
  static constexpr auto result = boolean;
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return abs(x) < std::numeric_limits<double>::infinity(); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

struct IsNan {
  static constexpr auto name = "is_nan";
  static constexpr auto result = boolean;
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return !(x == x); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

struct AllFinite {
  static constexpr auto name = "all_finite";
  Tensor expand(In in) const { return reduce_all(is_finite(in[0])); }
};

struct Where {
  static constexpr auto name = "where";
  static constexpr auto takes = Takes::anything;
  auto emit(auto condition, auto a, auto b) const { return select(condition, a, b); }
  Spec infer(Specs in) const {
    require(in.size() == 3, name, ": expected 3 operands, got ", in.size());
    require(in[0].dtype == boolean, name, ": the condition must be bool, got ", in[0],
            "; compare it, such as not_equal(x, 0)");
    return detail::infer_elementwise(name, takes, in[2].dtype, in);
  }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y)) return none(3);
    const Tensor zero = zeros_like(dy);
    return {{}, where(in[0], dy, zero), where(in[0], zero, dy)};
  }
};

struct Cast {
  static constexpr auto name = "cast";
  static constexpr auto takes = Takes::anything;
  DType to = f32;
  DType result(Specs) const { return to; }
  auto emit(auto x) const { return convert(x, to); }
  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const {
    if (!has_gradient(y) || !has_gradient(in[0])) return none(1);
    return {cast(dy, in[0].dtype())};
  }
};

struct StopGradient {
  static constexpr auto name = "stop_gradient";
  static constexpr auto takes = Takes::anything;
  auto emit(auto x) const { return x; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return none(1); }
};

/// a > b is b < a, with errors that name the operands in the user's order.
template <class T> Tensor swapped(const T& op, const Tensor& a, const Tensor& b, std::string_view name) {
  check_same_dtype(name, a, b);
  require(a.dtype() != boolean, name, ": expected a number type, got ", a.spec(), "; cast it first");
  return broadcasting(op, b, a, name);
}

}  // namespace

Tensor operator<(const Tensor& a, const Tensor& b) { return broadcasting(Less{}, a, b); }
Tensor operator<(const Tensor& a, Scalar b) { return a < scalar_like(a, b, "less"); }
Tensor operator<(Scalar a, const Tensor& b) { return scalar_like(b, a, "less") < b; }
Tensor operator>(const Tensor& a, const Tensor& b) { return swapped(Less{}, a, b, "greater"); }
Tensor operator>(const Tensor& a, Scalar b) { return a > scalar_like(a, b, "greater"); }
Tensor operator>(Scalar a, const Tensor& b) { return scalar_like(b, a, "greater") > b; }
Tensor operator<=(const Tensor& a, const Tensor& b) { return broadcasting(LessEqual{}, a, b); }
Tensor operator<=(const Tensor& a, Scalar b) { return a <= scalar_like(a, b, "less_equal"); }
Tensor operator<=(Scalar a, const Tensor& b) { return scalar_like(b, a, "less_equal") <= b; }
Tensor operator>=(const Tensor& a, const Tensor& b) { return swapped(LessEqual{}, a, b, "greater_equal"); }
Tensor operator>=(const Tensor& a, Scalar b) { return a >= scalar_like(a, b, "greater_equal"); }
Tensor operator>=(Scalar a, const Tensor& b) { return scalar_like(b, a, "greater_equal") >= b; }
Tensor equal(const Tensor& a, const Tensor& b) { return broadcasting(Equal{}, a, b); }
Tensor equal(const Tensor& a, Scalar b) { return equal(a, scalar_like(a, b, Equal::name)); }
Tensor equal(Scalar a, const Tensor& b) { return equal(scalar_like(b, a, Equal::name), b); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return broadcasting(NotEqual{}, a, b); }
Tensor not_equal(const Tensor& a, Scalar b) { return not_equal(a, scalar_like(a, b, NotEqual::name)); }
Tensor not_equal(Scalar a, const Tensor& b) { return not_equal(scalar_like(b, a, NotEqual::name), b); }

Tensor logical_and(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(LogicalAnd{}, a, b); }
Tensor logical_or(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(LogicalOr{}, a, b); }
Tensor logical_xor(const NumberOrTensor& a, const NumberOrTensor& b) { return broadcasting(LogicalXor{}, a, b); }
Tensor logical_not(const Tensor& x) { return apply(LogicalNot{}, x); }
Tensor is_finite(const Tensor& x) { return apply(IsFinite{}, x); }
Tensor is_nan(const Tensor& x) { return apply(IsNan{}, x); }
Tensor all_finite(const Tensor& x) { return apply(AllFinite{}, x); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_same_dtype(Where::name, a, b);
  if (condition.shape() == a.shape() && a.shape() == b.shape()) return apply(Where{}, condition, a, b);
  const Shape shape =
      broadcast_shape(condition.shape(), broadcast_shape(a.shape(), b.shape(), Where::name), Where::name);
  return apply(Where{}, broadcast_to(condition, shape), broadcast_to(a, shape), broadcast_to(b, shape));
}
Tensor where(const Tensor& condition, const Tensor& a, Scalar b) {
  return where(condition, a, scalar_like(a, b, Where::name));
}
Tensor where(const Tensor& condition, Scalar a, const Tensor& b) {
  return where(condition, scalar_like(b, a, Where::name), b);
}

Tensor cast(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : apply(Cast{dtype}, x); }
Tensor stop_gradient(const Tensor& x) { return apply(StopGradient{}, x); }

double max_abs_difference(const Tensor& a, const Tensor& b) {
  require(a.spec() == b.spec(), "max_abs_difference: a is ", a.spec(), ", b is ", b.spec(), "; they must agree");
  const void *x = a.host(), *y = b.host();
  return with_type(a.dtype(), [&]<class T>(T) {
    double most = 0;
    for (std::int64_t i = 0; i < a.shape().size(); ++i) {
      const double p = static_cast<double>(static_cast<const T*>(x)[i]);
      const double q = static_cast<double>(static_cast<const T*>(y)[i]);
      const double difference = p == q ? 0 : std::abs(p - q);  // also of equal infinities
      if (!(difference <= most)) most = difference;
      if (std::isnan(most)) break;
    }
    return most;
  });
}

bool bitwise_equal(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.host(), b.host(), static_cast<std::size_t>(bytes_of(a.spec()))) == 0;
}

}  // namespace gradus
