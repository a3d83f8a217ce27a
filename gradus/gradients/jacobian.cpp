/// The rows of the matrix, and the choice of the mode.
#include "gradus/gradients/jacobian.h"
#include "gradus/autodiff/examples_apart.h"
#include "gradus/autodiff/jvp.h"
#include "gradus/autodiff/vmap.h"
#include "gradus/gradients/chunks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_choice.h"

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

bool reverse_is_cheaper(const Shape& y, const Shape& x) {
  return SizeChoice::choose(estimated(y.size()) <= estimated(x.size()));
}

/// The spec of one example.
Spec example_of(const Tensor& batch) {
  Spec spec = batch.spec();
  spec.shape.erase(0);
  return spec;
}

}  // namespace

Tensor rows_of(std::string_view op, const std::function<Tensor(const Tensor&)>& linear, const Spec& from,
               const Spec& to, std::int64_t at_once) {
  const std::int64_t n = from.shape.size();
  const auto row = [&](In at) {
    const Tensor y = linear(unit(from, at[0]));
    return Tensors{y.defined() ? y : fill(to.shape, 0, to.dtype)};
  };
  const auto rows = [&](In, In which) { return vmap(row, which, which[0].shape()[0]); };
  const Tensor all = iota({n}, i64);
  return at_once == n ? rows({}, {&all, 1})[0] : scan_rows(op, rows, {}, {&all, 1}, at_once)[0];
}

namespace {

/// The elements of y, one walk back for each.
Tensor reverse_jacobian(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops,
                        std::size_t max_bytes) {
  const auto pull = [&](const Tensor& u) { return vjp(y, {&x, 1}, u, stops)[0]; };
  return within_budget(op, max_bytes, x.node()->sequence, y.shape().size(), [&](std::int64_t at_once) {
    return reshape(rows_of(op, pull, y.spec(), x.spec(), at_once), joined(y.shape(), x.shape()));
  });
}

/// The elements of x, one walk forward for each.
Tensor forward_jacobian(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops,
                        std::size_t max_bytes) {
  return within_budget(op, max_bytes, x.node()->sequence, x.shape().size(), [&](std::int64_t at_once) {
    const Tensor columns = rows_of(op, Pushforward(y, x, stops), x.spec(), y.spec(), at_once);
    return reshape(transpose(reshape(columns, {x.shape().size(), y.shape().size()})), joined(y.shape(), x.shape()));
  });
}

}  // namespace

/// Forward mode gives the transpose of the Jacobian, so its budget has to hold a second matrix; the mode does not
/// depend on the budget, since the bits would.
Tensor jacobian_of(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops, std::size_t max_bytes) {
  if (reverse_is_cheaper(y.shape(), x.shape())) return reverse_jacobian(op, y, x, stops, max_bytes);
  return forward_jacobian(op, y, x, stops, max_bytes);
}

Tensor batch_jacobian_of(std::string_view op, const Tensor& y, const Tensor& x, const Stops& stops,
                         std::size_t max_bytes) {
  require(x.shape().rank() > 0 && y.shape().rank() > 0 && x.shape()[0] == y.shape()[0], op, ": the result, ", y.spec(),
          ", and x, ", x.spec(), ", must have the same number of examples in dimension 0");
  require_examples_apart(op, y, x, stops);
  const Spec of_y = example_of(y), of_x = example_of(x);
  const std::int64_t n = x.shape()[0], ys = of_y.shape.size(), xs = of_x.shape.size();
  const Shape shape = joined(y.shape(), of_x.shape);
  const bool reverse = reverse_is_cheaper(of_y.shape, of_x.shape);
  return within_budget(op, max_bytes, x.node()->sequence, reverse ? ys : xs, [&](std::int64_t at_once) {
    if (reverse) {
      const auto pull = [&](const Tensor& u) { return vjp(y, {&x, 1}, repeat_rows(u, n), stops)[0]; };
      return reshape(transpose(reshape(rows_of(op, pull, of_y, x.spec(), at_once), {ys, n, xs}), {1, 0, 2}), shape);
    }
    const Pushforward push(y, x, stops);
    const auto push_all = [&](const Tensor& v) { return push(repeat_rows(v, n)); };
    return reshape(transpose(reshape(rows_of(op, push_all, of_x, y.spec(), at_once), {xs, n, ys}), {1, 2, 0}), shape);
  });
}

}  // namespace gradus
