/// ONNX's ops that rearrange elements, and tensors that are functions of an index.
#include <algorithm>
#include <numeric>
#include "gradus/base/rooms.h"
#include "gradus/onnx/row.h"
#include "gradus/ops/bitcast.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/shape.h"

namespace gradus::onnx {
namespace {

/// "constant" and so on, from opset 19 on "wrap" too.
PadMode mode_of(const Call& c) {
  const std::string name = c.word("mode", "constant");
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "edge") return PadMode::edge;
  c.require(name == "wrap" && c.version() >= 19, "there is no mode `", name, "`");
  return PadMode::wrap;
}

Tensor padded(const Call& c) {
  const int rank = c[0].shape().rank();
  const auto pads = c.version() >= 11 ? c.integers_of(1) : c.integers(c.version() == 1 ? "paddings" : "pads");
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has(3)) axes = c.axes(c.integers_of(3), rank);
  c.require(pads.size() == 2 * axes.size(), "there are ", pads.size(), " pads for ", axes.size(), " axes");
  Paddings all(static_cast<std::size_t>(rank), {0, 0});
  for (std::size_t i = 0; i < axes.size(); ++i)
    all[static_cast<std::size_t>(axes[i])] = {pads[i], pads[axes.size() + i]};
  const PadMode mode = mode_of(c);
  if (mode != PadMode::constant) return pad(c[0], all, mode);
  if (c.has(2)) return pad(c[0], all, c[2]);
  return pad(c[0], all, c.version() < 11 ? full({}, c.number("value", 0), c[0].dtype()) : zeros({}, c[0].dtype()));
}

/// x with each of `axes` cut or padded with zeros to its extent, at both ends alike, the odd one at the end.
Tensor centered(const Call& c) {
  const int rank = c[0].shape().rank();
  const auto wanted = c.integers_of(1);
  std::vector<std::int64_t> all(static_cast<std::size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int> axes = c.axes(c.integers("axes", all), rank);
  c.require(wanted.size() == axes.size(), "there are ", wanted.size(), " extents for ", axes.size(), " axes");
  Paddings paddings(static_cast<std::size_t>(rank), {0, 0});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t now = c[0].shape()[axes[i]];
    c.require(now >= 0 && wanted[i] >= 0, "an extent is not known, or negative");
    const std::int64_t more = wanted[i] - now, before = more / 2;
    paddings[static_cast<std::size_t>(axes[i])] = {before, more - before};
  }
  return pad(c[0], paddings, PadMode::constant);
}

/// `parts` pieces, all but the last of one size.
std::vector<std::int64_t> sizes_of_parts(const Call& c, std::int64_t n, std::int64_t parts) {
  c.require(parts > 0, "there are ", parts, " parts");
  c.require(n >= 0, "an extent that is not known cannot be split");
  const std::int64_t size = (n + parts - 1) / parts;
  std::vector<std::int64_t> sizes;
  for (std::int64_t k = 0; k < parts; ++k) sizes.push_back(std::clamp<std::int64_t>(n - k * size, 0, size));
  return sizes;
}

Results pieces(const Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c[0].shape().rank());
  if (const auto sizes = c.integers_of(1, "split")) return split(c[0], *sizes, axis);
  const std::int64_t n = c[0].shape()[axis],
                     parts = c.version() >= 18 ? c.integer("num_outputs", c.outputs()) : c.outputs();
  c.require(parts > 0 && parts <= 1 << 20, "there are ", parts, " parts");
  if (n < 0) return split(c[0], static_cast<int>(parts), axis);
  return split(c[0], sizes_of_parts(c, n, parts), axis);
}

Tensor tiled(const Call& c) {
  c.require(c.version() >= 6, "the first version of Tile was never in use");
  return tile(c[0], c.integers_of(1));
}

Tensor triangle(const Call& c) {
  const std::int64_t k = c.has(1) ? c.integer_of(1) : 0;
  return c.flag("upper", true) ? triu(c[0], k) : tril(c[0], k);
}

Tensor numbers(const Call& c) {
  const DType t = c[0].dtype();
  if (is_integer(t)) return range(c.integer_of(0), c.integer_of(1), c.integer_of(2), t);
  const Tensor values = range(c.number_of(0), c.number_of(1), c.number_of(2), t);
  // Their number is fixed; their values are start + index * delta, whose slopes hang on zeros.
  const auto slope_of = [](const Tensor& x) { return reshape(x - stop_gradient(x), {}); };
  return values + slope_of(c[0]) + cast(iota(values.shape()), t) * slope_of(c[2]);
}

Tensor diagonal(const Call& c) {
  const Shape& shape = c[0].shape();
  c.require(shape.rank() == 2, "the input is ", c[0].spec(), ", expected a matrix");
  return eye(shape[0], shape[1], c.dtype("dtype", c[0].dtype()), c.integer("k", 0));
}

BlockOptions blocks(const Call& c) {
  const std::string mode = c.word("mode", "DCR");
  c.require(mode == "DCR" || mode == "CRD", "mode `", mode, "` is neither DCR nor CRD");
  return {true, mode == "DCR"};
}

const Table layout_table{
    {"BitCast", {26}, [](const Call& c) { return bitcast(c[0], dtype_of_code(c.integer("to"))); }},
    {"CenterCropPad", {18}, centered},
    {"DepthToSpace",
     {1, 11, 13},
     [](const Call& c) { return depth_to_space(c[0], c.integer("blocksize"), blocks(c)); }},
    {"Det", {11, 22}, rounded_once([](const Call& c) { return det(c[0]); })},
    {"EyeLike", {9, 22}, diagonal},
    {"Pad", {1, 2, 11, 13, 18, 19, 21, 23, 24, 25}, padded},
    {"Range", {11, 27}, numbers, "", false, {0, 1, 2}},
    {"SpaceToDepth", {1, 13}, [](const Call& c) { return space_to_depth(c[0], c.integer("blocksize"), blocks(c)); }},
    {"Split", {1, 2, 11, 13, 18}, pieces},
    {"Tile", {1, 6, 13}, tiled},
    {"Trilu", {14}, triangle},
};

}  // namespace
}  // namespace gradus::onnx
