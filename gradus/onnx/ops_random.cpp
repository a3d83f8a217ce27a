/// ONNX's random ops. With a seed they always draw the same numbers. ONNX leaves it open which ones.
#include <bit>
#include "gradus/base/rooms.h"
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

/// ONNX's seeds are floats, of Dropout integers.
std::optional<std::uint64_t> seed_of(const Call& c) {
  if (!c.has_attribute("seed")) return {};
  return std::bit_cast<std::uint64_t>(c.number("seed"));
}

/// Numbers are drawn in f32 and f64; narrower types take rounded ones.
DType drawn_in(DType dtype) { return dtype == f64 ? f64 : f32; }

Tensor normal_of(const Call& c, const Shape& shape, DType dtype) {
  c.require(is_floating(dtype), "random numbers are floats, asked for ", dtype);
  return cast(
      random::normal(
          shape,
          {.mean = c.number("mean", 0), .stddev = c.number("scale", 1), .dtype = drawn_in(dtype), .seed = seed_of(c)}),
      dtype);
}
Tensor uniform_of(const Call& c, const Shape& shape, DType dtype) {
  c.require(is_floating(dtype), "random numbers are floats, asked for ", dtype);
  return cast(
      random::uniform(
          shape,
          {.low = c.number("low", 0), .high = c.number("high", 1), .dtype = drawn_in(dtype), .seed = seed_of(c)}),
      dtype);
}

Shape shape_attribute(const Call& c) {
  const std::vector<std::int64_t> extents = c.integers("shape");
  for (const std::int64_t extent : extents) c.require(extent >= 0, "attribute `shape` has an extent of ", extent);
  return Shape(std::span(extents));
}
DType dtype_like(const Call& c) { return c.dtype("dtype", is_floating(c[0].dtype()) ? c[0].dtype() : f32); }

/// 1 with the probability that the input says.
Tensor bernoulli(const Call& c) {
  const Tensor u = random::uniform(c[0].shape(), {.dtype = drawn_in(c[0].dtype()), .seed = seed_of(c)});
  return cast(u < cast(c[0], u.dtype()), c.dtype("dtype", c[0].dtype()));
}

/// Indices drawn by unnormalized log probabilities [examples, classes]: the largest of them after each got a Gumbel
/// number (Gumbel 1954).
Tensor multinomial(const Call& c) {
  c.require(c[0].shape().rank() == 2, "the input must be [examples, classes], it is ", c[0].spec());
  const std::int64_t samples = c.integer("sample_size", 1);
  c.require(samples > 0, "attribute `sample_size` is ", samples);
  const DType dtype = drawn_in(c[0].dtype());
  const Tensor logits = expand_dims(cast(c[0], dtype), 1);  // [examples, 1, classes]
  const Shape shape{c[0].shape()[0], samples, c[0].shape()[1]};
  const Tensor u = 1 - random::uniform(shape, {.dtype = dtype, .seed = seed_of(c)});  // (0, 1]
  return cast(argmax(logits - log(-log(u)), -1), c.dtype("dtype", i32));
}

/// In training, elements are 0 with probability `ratio` and the others scaled by 1 / (1 - ratio).
Results dropout(const Call& c) {
  const Tensor& x = c[0];
  const bool training = c.version() >= 12 && c.has(2) && c.integer_of(2) != 0;
  const DType mask_dtype = c.version() >= 10 ? boolean : x.dtype();
  if (!training) return {x, c.wants(1) ? cast(fill(x.shape(), 1, boolean), mask_dtype) : Tensor()};
  const double ratio = c.has(1) ? c.number_of(1) : 0.5;
  c.require(ratio >= 0 && ratio <= 1, "the ratio is ", ratio, ", it must lie in [0, 1)");
  std::optional<std::uint64_t> seed;
  if (c.has_attribute("seed")) seed = static_cast<std::uint64_t>(c.integer("seed"));
  const Tensor kept = random::uniform(x.shape(), {.dtype = f32, .seed = seed}) >= ratio;
  return {ratio == 1 ? zeros_like(x) : where(kept, x / (1 - ratio), 0), kept};
}

/// A row that must be computed again in every call of a trace.
Row drawing(Row row) {
  row.random = true;
  return row;
}

const Table random_ops_table{
    drawing({"Bernoulli", {15, 22}, bernoulli}),
    drawing({"Dropout", {7, 10, 12, 13, 22}, rounded_once(dropout), "", true, {1}}),
    drawing({"Multinomial", {7, 22}, multinomial}),
    drawing({"RandomNormal",
             {1, 22},
             [](const Call& c) { return normal_of(c, shape_attribute(c), c.dtype("dtype", f32)); }}),
    drawing({"RandomNormalLike", {1, 22}, [](const Call& c) { return normal_of(c, c[0].shape(), dtype_like(c)); }}),
    drawing({"RandomUniform",
             {1, 22},
             [](const Call& c) { return uniform_of(c, shape_attribute(c), c.dtype("dtype", f32)); }}),
    drawing({"RandomUniformLike", {1, 22}, [](const Call& c) { return uniform_of(c, c[0].shape(), dtype_like(c)); }}),
};

}  // namespace
}  // namespace gradus::onnx
