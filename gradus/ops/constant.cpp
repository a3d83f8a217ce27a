/// Leaves made from numbers, and the op that stands for a constant in rules and traces.
#include "gradus/ops/constant.h"
#include "gradus/ops/number_or_tensor.h"
#include <cmath>
#include <cstring>
#include "gradus/graph/context.h"
#include "gradus/graph/copy.h"
#include "gradus/graph/extents.h"
#include "gradus/ops/extent_op.h"
#include "gradus/ops/known_values.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// A scalar of one value.
struct Fill {
  static constexpr auto name = "fill";
  scalar::Literal value = {};
  DType dtype = f32;
  Spec infer(Specs in) const {
    require(in.empty(), name, ": expected no operands, got ", in.size());
    return {dtype, {}};
  }
  scalar::Value emit_index(const scalar::Value& i) const {
    return {i.code(), i.code()->add({.op = scalar::Opcode::constant, .type = dtype, .bits = value.bits_as(dtype)})};
  }
  scalar::Real emit_index(const scalar::Real&) const { return scalar::wrapped(value.real(), dtype); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

/// A whole number, as a count of elements is: extent() makes it a fill where the dimension is known.
bool is_count(const Fill& fill) {
  return fill.dtype != boolean && fill.value.is_integral() && !fill.value.is_huge() &&
         static_cast<std::int64_t>(fill.value.bits_as(i64)) >= 0;
}

const bool constants_have_extents =
    Extents::are<Fill>({.get =
                            [](const void* op, std::vector<std::int64_t>& numbers) {
                              const Fill& fill = *static_cast<const Fill*>(op);
                              if (is_count(fill)) numbers.push_back(static_cast<std::int64_t>(fill.value.bits_as(i64)));
                            },
                        .with =
                            [](const void* op, std::span<const std::int64_t> numbers) {
                              const DType t = static_cast<const Fill*>(op)->dtype;
                              return numbers[0] >= 0 ? AnyOp::of(Fill{numbers[0], t}) : extent_op(numbers[0], t);
                            }});

void print_literal(std::ostream& out, const scalar::Literal& value) {
  if (value.is_huge()) out << value.bits_as(u64);
  else if (value.is_integral()) out << static_cast<std::int64_t>(value.bits_as(i64));
  else out << value.real();
}

void check_fits(std::string_view op, const scalar::Literal& value, DType t) {
  if (value.fits(t)) [[likely]]
    return;
  TextStream number;
  print_literal(number, value);
  throw OutOfRange(text(op, ": the number ", number.str(), " cannot be held by ", t, "; name another dtype"));
}

Tensor leaf(const Spec& spec, auto&& write) {
  Ref<Buffer> buffer = Buffer::allocate(bytes_of(spec));
  write(static_cast<char*>(buffer->data()));
  const Tensor made = Tensor::of_buffer(spec, std::move(buffer));
  const Tensor here = Context::current() ? Context::current()->literal(made) : made;
  return DeviceScope::current().is_named() ? copy_to(here, DeviceScope::current()) : here;
}

}  // namespace

namespace detail {

Tensor from_literals(std::span<const scalar::Literal> values, const Shape& shape, DType dtype) {
  for (const scalar::Literal& value : values) check_fits("constant", value, dtype);
  return leaf({dtype, shape}, [&](char* to) {
    for (const scalar::Literal& value : values) {
      const std::uint64_t bits = value.bits_as(dtype);
      std::memcpy(to, &bits, static_cast<std::size_t>(size_of(dtype)));
      to += size_of(dtype);
    }
  });
}

Tensor from_bytes(const void* values, std::size_t count, const Spec& spec) {
  require(!spec.shape.is_symbolic() && spec.shape.size() >= 0, "from_values: shape ", spec.shape, " is not known");
  require(static_cast<std::int64_t>(count) == spec.shape.size(), "from_values: shape ", spec.shape, " has ",
          spec.shape.size(), " elements, got ", count, " values");
  return leaf(spec, [&](char* to) {
    if (count) std::memcpy(to, values, static_cast<std::size_t>(bytes_of(spec)));
  });
}

void fail_ragged(std::size_t row, std::size_t expected, std::size_t given) {
  throw InvalidArgument(
      text("constant: row ", row, " has ", given, " values, row 0 has ", expected, "; rows must have the same length"));
}

}  // namespace detail

std::optional<double> known_fill(const Tensor& x) {
  const Fill* fill = x.node()->op ? x.node()->op.as<Fill>() : nullptr;
  return fill ? std::optional(fill->value.real()) : std::nullopt;
}

Tensor detail::fill(const Shape& shape, scalar::Literal value, DType dtype) {
  return broadcast_to(apply(Fill{value, dtype}), shape);
}

Tensor detail::scalar_like(const Tensor& x, Scalar value, std::string_view op) {
  const scalar::Literal& literal = value.literal();
  const DType t = x.dtype();
  require(is_floating(t) || literal.is_integral(), op, ": the floating number ", literal.real(),
          " stands beside a tensor ", x.spec(),
          "; write an integer, or cast the tensor to a floating type first: cast(x, f32)");
  check_fits(op, literal, t);
  if (Context::current()) return apply(Fill{literal, t});
  return detail::from_literals({&literal, 1}, {}, t);
}

const Tensor& NumberOrTensor::tensor(std::string_view op) const {
  require(!is_number(), op, ": all of its operands are numbers; make one of them a tensor, as in constant(0.5)");
  return *tensor_;
}
Tensor NumberOrTensor::beside(const Tensor& x, std::string_view op) const {
  return is_number() ? scalar_like(x, number_, op) : *tensor_;
}

Tensor zeros(const Shape& shape, DType dtype) { return fill(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return fill(shape, 1, dtype); }
Tensor full(const Shape& shape, Scalar value, DType dtype) {
  check_fits("full", value.literal(), dtype);
  if (Context::current()) return fill(shape, value.literal(), dtype);
  return broadcast_to(detail::from_literals({&value.literal(), 1}, {}, dtype), shape);
}
Tensor zeros_like(const Tensor& x) { return fill_like(x, 0); }
Tensor ones_like(const Tensor& x) { return fill_like(x, 1); }

}  // namespace gradus
