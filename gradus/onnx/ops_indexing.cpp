/// ONNX's ops that index by data, sort, and select.
#include <algorithm>
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"

namespace gradus::onnx {
namespace {

Tensor gathered(const Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c[0].shape().rank());
  return gather(c[0], wrapped_indices(c[1], c[0].shape()[axis]), axis, 0);
}

Tensor gathered_elements(const Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c[0].shape().rank());
  return gather_elements(c[0], wrapped_indices(c[1], c[0].shape()[axis]), axis);
}

/// Positions in dimensions of x from `first` on, of which negative numbers count from the end.
Tensor positions(const Call& c, int first) {
  const Tensor& indices = c[1];
  c.require(indices.shape().rank() > 0, "the indices are a scalar");
  const std::int64_t depth = indices.shape().back();
  c.require(depth >= 1 && first >= 0 && first + depth <= c[0].shape().rank(), "positions of ",
            dimension::to_text(depth), " numbers do not fit ", c[0].spec());
  Tensors extents;
  for (int i = 0; i < static_cast<int>(depth); ++i) extents.push_back(extent(c[0].shape()[first + i], indices.dtype()));
  return where(indices < 0, indices + stack(extents), indices);
}

Tensor gathered_nd(const Call& c) {
  const auto batch_dims = static_cast<int>(std::clamp<std::int64_t>(c.integer("batch_dims", 0), -1, Shape::max_rank));
  return gather_nd(c[0], positions(c, batch_dims), batch_dims);
}

Reduction reduction_of(const Call& c) {
  const std::string name = c.word("reduction", "none");
  constexpr std::string_view names[] = {"none", "add", "mul", "min", "max"};
  const auto found = std::ranges::find(names, name);
  c.require(found != std::end(names), "reduction `", name, "` is none of none, add, mul, min, max");
  return static_cast<Reduction>(found - std::begin(names));
}

Tensor scattered_elements(const Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c[0].shape().rank());
  return scatter_elements(c[0], wrapped_indices(c[1], c[0].shape()[axis]), c[2], axis, reduction_of(c));
}

Tensor scattered_nd(const Call& c) { return tensor_scatter_nd(c[0], positions(c, 0), c[2], reduction_of(c)); }

/// A cache with `update` written from position write_indices[b] on in row b.
Tensor written(const Call& c) {
  const Tensor &cache = c[0], &update = c[1];
  const int rank = cache.shape().rank(), axis = c.axis(c.integer("axis", -2), rank);
  c.require(axis > 0 && update.shape().rank() == rank, "the update ", update.spec(), " does not fit the cache ",
            cache.spec(), " along axis ", axis);
  const std::string mode = c.word("mode", "linear");
  c.require(mode == "linear" || mode == "circular", "mode `", mode, "` is neither linear nor circular");
  Tensor at = iota_along(rank, axis, update.shape()[axis], i64);
  if (c.has(2)) {
    Shape rows{c[2].shape().size()};
    while (rows.rank() < rank) rows.push_back(1);
    at = at + reshape(cast(c[2], i64), rows);
  }
  if (mode == "circular") at = mod(at, extent(cache.shape()[axis], i64));
  return scatter_elements(cache, broadcast_to(at, update.shape()), update, axis, Reduction::none);
}

Results largest(const Call& c) {
  const std::int64_t k = c.version() >= 10 ? c.integer_of(1) : c.integer("k");
  const int axis = c.axis(c.integer("axis", -1), c[0].shape().rank());
  const TopK found = top_k(c[0], k, {axis, c.flag("largest", true)});
  return {found.values, cast(found.indices, i64)};
}

Tensor hot(const Call& c) {
  const auto depth = static_cast<std::int64_t>(c.number_of(1));
  c.require(depth >= 0, "the depth is ", depth);
  const Tensor values = c[2];
  c.require(values.shape() == Shape{2}, "the values are ", values.spec(), ", expected [off, on]");
  const Tensor labels = is_integer(c[0].dtype()) ? c[0] : cast(c[0], i64);
  const int axis = c.axis(c.integer("axis", -1), labels.shape().rank() + 1);
  return one_hot(labels, depth, values[1], values[0], {axis, true});
}

Results unique_elements(const Call& c) {
  UniqueOptions options{.sorted = c.flag("sorted", true)};
  if (c.has_attribute("axis")) options.axis = c.axis(c.integer("axis"), c[0].shape().rank());
  const Unique found = unique(c[0], options);
  const auto flat = [](const Tensor& x) { return cast(reshape(x, {x.shape().size()}), i64); };
  return {found.values, flat(found.indices), flat(found.index), flat(found.count)};
}

Tensor compressed(const Call& c) {
  if (!c.has_attribute("axis")) return compress(c[0], c[1]);
  return compress(c[0], c[1], c.axis(c.integer("axis"), c[0].shape().rank()));
}

Tensor reversed_sequences(const Call& c) {
  const int rank = c[0].shape().rank();
  const int batch_axis = c.axis(c.integer("batch_axis", 1), rank), time_axis = c.axis(c.integer("time_axis", 0), rank);
  return reverse_sequence(c[0], c[1], time_axis, batch_axis);
}

const Table indexing_table{
    {"Compress", {9, 11}, compressed},
    {"Gather", {1, 11, 13}, gathered},
    {"GatherElements", {11, 13}, gathered_elements},
    {"GatherND", {11, 12, 13}, gathered_nd},
    {"NonZero", {9, 13}, [](const Call& c) { return nonzero(c[0]); }},
    {"OneHot", {9, 11}, hot, "", false, {1}},
    {"ReverseSequence", {10}, reversed_sequences},
    {"Scatter", {9, 11}, scattered_elements},
    {"ScatterElements", {11, 13, 16, 18}, scattered_elements},
    {"ScatterND", {11, 13, 16, 18}, scattered_nd},
    {"TensorScatter", {24}, written},
    {"TopK", {1, 10, 11, 24}, largest},
    {"Unique", {11}, unique_elements},
};

}  // namespace
}  // namespace gradus::onnx
