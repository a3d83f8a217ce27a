/// The rows, and which mode makes them.
#include "gradus/gradients/jacobian.h"
#include "gradus/autodiff/jvp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/index.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// The tensor of spec `spec` that is 1 at the element of flat index `at`, and 0 elsewhere.
Tensor unit(const Spec& spec, const Tensor& at) {
  return cast(equal(iota(spec.shape, i64), broadcast_to(at, spec.shape)), spec.dtype);
}

/// A size as a number; one that is not known when tracing counts as large.
std::int64_t estimated(std::int64_t size) {
  const std::vector<std::int64_t> guesses(static_cast<std::size_t>(dimension::symbols_in(size)), 1024);
  return dimension::evaluate(size, guesses);
}

Shape joined(Shape a, const Shape& b) {
  for (std::int64_t d : b) a.push_back(d);
  return a;
}

}  // namespace

Tensor rows_of(const std::function<Tensor(const Tensor&)>& linear, const Spec& from, const Spec& to) {
  const std::int64_t n = from.shape.size();
  const Tensor which = iota({n}, i64);
  const auto row = [&](In at) {
    const Tensor y = linear(unit(from, at[0]));
    return Tensors{y.defined() ? y : fill(to.shape, 0, to.dtype)};
  };
  return vmap(row, {&which, 1}, n)[0];
}

Tensor jacobian_of(const Tensor& y, const Tensor& x, const Stops& stops) {
  const Shape shape = joined(y.shape(), x.shape());
  if (estimated(y.shape().size()) <= estimated(x.shape().size())) {
    const auto pull = [&](const Tensor& u) { return vjp(y, {&x, 1}, u, stops)[0]; };
    return reshape(rows_of(pull, y.spec(), x.spec()), shape);
  }
  const Pushforward push(y, x, stops);
  const Tensor columns = rows_of(push, x.spec(), y.spec());
  return reshape(transpose(reshape(columns, {x.shape().size(), y.shape().size()})), shape);
}

}  // namespace gradus
