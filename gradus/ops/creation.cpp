/// Tensors made from numbers alone.
#include "gradus/ops/creation.h"
#include "gradus/graph/context.h"
#include "gradus/graph/extents.h"
#include "gradus/ops/checks.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/shape.h"

namespace gradus {

/// The flat row-major index.
struct Iota {
  static constexpr auto name = "iota";
  Shape shape = {};
  DType dtype = i64;
  auto emit_index(auto i) const { return convert(i, dtype); }
  Spec infer(Specs in) const {
    require(in.empty(), name, ": expected no operands, got ", in.size());
    require(shape.size() != any_size && dtype != boolean, name, ": expected a known shape and a number type, got ",
            Spec{dtype, shape});
    return {dtype, shape};
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

namespace {

const bool creation_has_extents = Extents::are<Iota>(&Iota::shape);

bool is_size(std::int64_t n) { return n >= 0 || (dimension::is_symbolic(n) && Context::current()); }

}  // namespace

Tensor detail::iota(const Shape& shape, DType dtype) { return apply(Iota{shape, dtype}); }

Tensor range(std::int64_t n, DType dtype) {
  require(is_size(n), "range: ", n, " is no number of elements");
  require(dtype != boolean, "range: expected a number type, got bool");
  require<OutOfRange>(n <= 0 || scalar::Literal(n - 1).fits(dtype), "range: ", dtype, " does not hold numbers to ",
                      n - 1, "; use ", n - 1 <= std::numeric_limits<std::int32_t>::max() ? i32 : i64);
  if (n < 0) require_held("range", dtype, dimension::subtract(n, 1));
  return iota({n}, dtype);
}

Tensor linspace(double first, double last, std::int64_t n, DType dtype) {
  require(is_floating(dtype), "linspace: expected a floating type, got ", dtype);
  require(n > 0, "linspace: expected at least one number, got ", n);
  std::vector<double> values = host_numbers("linspace", n);
  for (std::int64_t i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] =
        i == 0       ? first
        : i == n - 1 ? last
                     : first + (last - first) * (static_cast<double>(i) / static_cast<double>(n - 1));
  return cast(from_values(values, {n}), dtype);
}

Tensor eye(std::int64_t n, DType dtype) {
  require(is_size(n), "eye: ", n, " is no number of rows");
  return cast(equal(reshape(iota({n}, i32), {n, 1}), reshape(iota({n}, i32), {1, n})), dtype);
}

Tensor one_hot(const Tensor& labels, std::int64_t classes, DType dtype) {
  require(is_size(classes), "one_hot: ", classes, " is no number of classes");
  const Tensor column = expand_dims(as_indices("one_hot", labels), -1);
  Shape along;
  for (int i = 1; i < column.shape().rank(); ++i) along.push_back(1);
  along.push_back(classes);
  return cast(equal(column, reshape(iota({classes}, column.dtype()), along)), dtype);
}

}  // namespace gradus
