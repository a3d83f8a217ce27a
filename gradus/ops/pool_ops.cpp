/// The primitives of pooling: shapes, gradients, and batching as more examples.
#include "gradus/ops/pool_ops.h"
#include "gradus/graph/extents.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/widened.h"
#include "gradus/ops/window_geometry.h"

namespace gradus {
namespace {

const bool pools_have_extents = Extents::are<WindowArgmax>(&WindowArgmax::size) &&
                                Extents::are<WindowDeposit>(&WindowDeposit::size) &&
                                Extents::are<Patches>(&Patches::size) && Extents::are<Fold>(&Fold::size);

/// The number of spatial dimensions.
int spatial_rank(std::string_view op, const Spec& x, int dimensions_per_axis = 1) {
  const int rest = x.shape.rank() - 2;
  require(rest >= dimensions_per_axis && rest <= 3 * dimensions_per_axis && rest % dimensions_per_axis == 0, op,
          ": expected [batch, spatial..., channels] with one to three spatial dimensions, got ", x);
  return rest / dimensions_per_axis;
}

void check_size(std::string_view op, const Shape& size, int count) {
  require(size.rank() == count, op, ": a size of ", size.rank(), " dimensions, expected ", count);
  for (std::int64_t d : size)
    require(d >= 0 || dimension::symbols_in(d) > 0, op, ": size ", brackets(size), " is not known");
}

template <class Op> void check_geometry(const Op& op, int count) {
  check_window_attribute(op.name, "strides", op.strides, count, 1);
  check_window_attribute(op.name, "dilations", op.dilations, count, 1);
  if constexpr (requires { op.window; }) check_window_attribute(op.name, "windows", op.window, count, 1);
  if constexpr (requires { op.before; }) check_window_attribute(op.name, "paddings", op.before, count, 0);
  if constexpr (requires { op.size; }) check_size(op.name, op.size, count);
}

void check_operands(std::string_view op, Specs in, std::size_t expected) {
  require(in.size() == expected, op, ": expected ", expected, " operands, got ", in.size());
  require(in[0].dtype != boolean, op, ": expected numbers, got ", in[0]);
}

/// The operand of a sum; narrow floats are summed in f32.
void check_terms(std::string_view op, const Spec& x) {
  require(!is_narrow(x.dtype), op, ": sums of ", x, " are made in f32; cast it first");
}

/// A sum of parts of dy, in dy's dtype.
template <class Op, class... Others> Tensor summed(const Op& op, const Tensor& dy, const Others&... others) {
  return cast(apply(op, widened(dy), others...), dy.dtype());
}

void check_taps(std::string_view op, const Spec& taps, const Shape& shape) {
  require(taps.dtype == i32 && taps.shape == shape, op, ": taps are ", taps, ", expected ", Spec{i32, shape});
}

/// Rows as further examples: every operand gets them.
template <class Op> Tensor over_examples(const Op& op, In in, std::uint32_t mask, std::int64_t n) {
  Tensors merged;
  std::int64_t examples = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor x = has_rows(mask, i) ? in[i] : repeat_rows(in[i], n);
    Shape shape = x.shape();
    examples = shape[1];
    shape.set(1, dimension::multiply(shape[0], shape[1]));
    shape.erase(0);
    merged.push_back(reshape(x, shape));
  }
  const Tensor y = apply(op, In(merged));
  Shape shape = y.shape();
  shape.set(0, examples);
  shape.insert(0, n);
  return reshape(y, shape);
}

/// Examples and channels stay apart.
int outer_axes(const Spec& operand, int axis) { return axis == -1 || axis == -operand.shape.rank() ? axis : 0; }

Shape part_of_shape(const Shape& shape, int first, int count) {
  return Shape(std::span(shape.begin() + first, static_cast<std::size_t>(count)));
}

Shape joined(std::int64_t first, const Shape& a, const Shape& b, std::int64_t last) {
  Shape out{first};
  for (std::int64_t d : a) out.push_back(d);
  for (std::int64_t d : b) out.push_back(d);
  out.push_back(last);
  return out;
}

}  // namespace

Spec WindowArgmax::infer(Specs in) const {
  check_operands(name, in, 1);
  check_geometry(*this, spatial_rank(name, in[0]));
  return {i32, with_spatial(in[0].shape, size, in[0].shape[-1])};
}
Tensors WindowArgmax::vjp(In, const Tensor&, const Tensor&) const { return {}; }
Tensor WindowArgmax::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return over_examples(*this, in, mask, n);
}
int WindowArgmax::carries(Specs in, int, int axis) const { return outer_axes(in[0], axis); }

Spec WindowSelect::infer(Specs in) const {
  check_operands(name, in, 2);
  check_geometry(*this, spatial_rank(name, in[0]));
  spatial_rank(name, in[1]);
  check_taps(name, in[1], with_spatial(in[0].shape, spatial_of(in[1].shape), in[0].shape[-1]));
  return {in[0].dtype, in[1].shape};
}
Tensors WindowSelect::vjp(In in, const Tensor&, const Tensor& dy) const {
  return {summed(WindowDeposit{window, strides, dilations, before, spatial_of(in[0].shape())}, dy, in[1]), {}};
}
Tensor WindowSelect::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return over_examples(*this, in, mask, n);
}
int WindowSelect::carries(Specs in, int, int axis) const { return outer_axes(in[0], axis); }

Spec WindowDeposit::infer(Specs in) const {
  check_operands(name, in, 2);
  check_terms(name, in[0]);
  check_geometry(*this, spatial_rank(name, in[0]));
  check_taps(name, in[1], in[0].shape);
  return {in[0].dtype, with_spatial(in[0].shape, size, in[0].shape[-1])};
}
Tensors WindowDeposit::vjp(In in, const Tensor&, const Tensor& dx) const {
  return {apply(WindowSelect{window, strides, dilations, before}, dx, in[1]), {}};
}
Tensor WindowDeposit::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return over_examples(*this, in, mask, n);
}
int WindowDeposit::carries(Specs in, int, int axis) const { return outer_axes(in[0], axis); }

Spec Patches::infer(Specs in) const {
  require(in.size() == 1, name, ": expected 1 operand, got ", in.size());
  const int count = spatial_rank(name, in[0]);
  check_geometry(*this, count);
  for (int i = 0; i < count; ++i) {
    const std::int64_t input = in[0].shape[i + 1], reach = (window[i] - 1) * dilations[i] + 1;
    if (input < 0 || size[i] <= 0) continue;
    require<OutOfRange>(size[i] <= input && (size[i] - 1) * strides[i] + reach <= input, name, ": ", size[i],
                        " windows along spatial dimension ", i, " reach past the end of ", in[0]);
  }
  return {in[0].dtype, joined(in[0].shape[0], size, window, in[0].shape[-1])};
}

View Patches::view(const Shape& in, const Shape& out) const {
  const Shape dense = dense_strides(in);
  const int count = window.rank();
  View view{.strides = out};
  view.strides.set(0, dense[0]);
  view.strides.set(-1, 1);
  for (int i = 0; i < count; ++i) {
    view.strides.set(1 + i, dimension::multiply(dense[1 + i], strides[i]));
    view.strides.set(1 + count + i, dimension::multiply(dense[1 + i], dilations[i]));
  }
  return view;
}

Tensors Patches::vjp(In in, const Tensor&, const Tensor& dy) const {
  return {summed(Fold{strides, dilations, spatial_of(in[0].shape())}, dy)};
}
Tensor Patches::batch(In in, std::uint32_t mask, std::int64_t n) const { return over_examples(*this, in, mask, n); }

Spec Fold::infer(Specs in) const {
  check_operands(name, in, 1);
  check_terms(name, in[0]);
  const int count = spatial_rank(name, in[0], 2);
  check_geometry(*this, count);
  for (int i = 0; i < count; ++i)
    require(in[0].shape[1 + count + i] >= 1, name, ": windows must have known sizes of at least 1, got ", in[0]);
  return {in[0].dtype, with_spatial(in[0].shape, size, in[0].shape[-1])};
}
Tensors Fold::vjp(In in, const Tensor&, const Tensor& dy) const {
  const Shape& patches = in[0].shape();
  const int count = strides.rank();
  return {apply(Patches{part_of_shape(patches, 1 + count, count), strides, dilations, part_of_shape(patches, 1, count)},
                dy)};
}
Tensor Fold::batch(In in, std::uint32_t mask, std::int64_t n) const { return over_examples(*this, in, mask, n); }
int Fold::carries(Specs in, int, int axis) const {
  if (axis == -1) return -1;
  return axis == -in[0].shape.rank() ? -2 - strides.rank() : 0;
}

}  // namespace gradus
