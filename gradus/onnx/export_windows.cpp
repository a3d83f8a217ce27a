#include "gradus/onnx/export_windows.h"
#include <algorithm>
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/pool_ops.h"

namespace gradus::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

Integers listed(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::string reordered(GraphWriter& out, const std::string& x, const Integers& order) {
  return out.node("Transpose", {x}, {GraphWriter::integers("perm", order)});
}
std::string channels_first(GraphWriter& out, const std::string& x, int spatial) {
  Integers order{0, spatial + 1};
  for (int i = 1; i <= spatial; ++i) order.push_back(i);
  return reordered(out, x, order);
}
std::string channels_last(GraphWriter& out, const std::string& x, int spatial) {
  Integers order{0};
  for (int i = 2; i < spatial + 2; ++i) order.push_back(i);
  order.push_back(1);
  return reordered(out, x, order);
}

/// [kernel..., a, b] -> [b, a, kernel...], or [a, b, kernel...].
std::string kernel_last(GraphWriter& out, const std::string& w, int spatial, bool exchanged) {
  Integers order{spatial + (exchanged ? 1 : 0), spatial + (exchanged ? 0 : 1)};
  for (int i = 0; i < spatial; ++i) order.push_back(i);
  return reordered(out, w, order);
}

/// Windows over `input` as ONNX counts them: padding before, then after, each dimension. All of them fit, and fewer
/// elements than a stride may remain behind the last one.
Integers pads_of(const Shape& input, const Shape& window, const Shape& strides, const Shape& dilations,
                 const Shape& before, const Shape& size) {
  const int spatial = window.rank();
  Integers pads = listed(before);
  for (int i = 0; i < spatial; ++i) {
    const std::int64_t extent = input[i + 1];
    require(extent >= 0 && size[i] >= 0,
            "export_onnx: windows over an image whose size is open; fix all but the batch");
    const std::int64_t after = (size[i] - 1) * strides[i] + (window[i] - 1) * dilations[i] + 1 - before[i] - extent;
    require(after > -strides[i], "export_onnx: windows that end before the image does have no form in ONNX");
    pads.push_back(std::max<std::int64_t>(after, 0));
  }
  return pads;
}

std::vector<Attribute> geometry(const Shape& window, const Shape& strides, const Shape& dilations, Integers pads) {
  return {GraphWriter::integers("kernel_shape", listed(window)), GraphWriter::integers("strides", listed(strides)),
          GraphWriter::integers("dilations", listed(dilations)), GraphWriter::integers("pads", std::move(pads))};
}

Shape kernel_of(const Shape& weights) {
  return Shape(std::span(weights.begin(), static_cast<std::size_t>(weights.rank() - 2)));
}

std::string write_convolution(GraphWriter& out, const Convolution& op, const Shape& x, const Shape& w,
                              const std::vector<std::string>& in) {
  const Shape kernel = kernel_of(w);
  auto attributes =
      geometry(kernel, op.strides, op.dilations, pads_of(x, kernel, op.strides, op.dilations, op.before, op.size));
  attributes.push_back(GraphWriter::integer("group", op.groups));
  const int spatial = kernel.rank();
  const std::string y = out.node("Conv", {channels_first(out, in[0], spatial), kernel_last(out, in[1], spatial, true)},
                                 std::move(attributes));
  return channels_last(out, y, spatial);
}

std::string write_transposed(GraphWriter& out, const TransposedConvolution& op, const Shape& y, const Shape& w,
                             const std::vector<std::string>& in) {
  const Shape kernel = kernel_of(w);
  const int spatial = kernel.rank();
  Integers pads = listed(op.before), more;
  for (int i = 0; i < spatial; ++i) {
    require(y[i + 1] >= 0 && op.size[i] >= 0,
            "export_onnx: a transposed convolution of an open size; fix all but the batch");
    const std::int64_t whole = (y[i + 1] - 1) * op.strides[i] + (kernel[i] - 1) * op.dilations[i] + 1;
    const std::int64_t after = whole - op.before[i] - op.size[i];
    pads.push_back(std::max<std::int64_t>(after, 0));
    more.push_back(std::max<std::int64_t>(-after, 0));
  }
  auto attributes = geometry(kernel, op.strides, op.dilations, std::move(pads));
  attributes.push_back(GraphWriter::integers("output_padding", more));
  attributes.push_back(GraphWriter::integer("group", op.groups));
  const std::string x =
      out.node("ConvTranspose", {channels_first(out, in[0], spatial), kernel_last(out, in[1], spatial, false)},
               std::move(attributes));
  return channels_last(out, x, spatial);
}

/// The largest element of each window: reading what window_argmax of the same tensor chose.
std::string write_max_pool(GraphWriter& out, const Graph& graph, const Value& v, const WindowSelect& op,
                           const std::vector<std::string>& in) {
  const Value& taps = graph[v.in[1]];
  const auto* chosen = taps.op ? taps.op.as<WindowArgmax>() : nullptr;
  require(chosen && taps.in[0] == v.in[0],
          "export_onnx: the op window_select has a form in ONNX as a part of max pooling alone");
  const int spatial = op.window.rank();
  const Shape& x = graph[v.in[0]].spec.shape;
  const std::string y = out.node("MaxPool", {channels_first(out, in[0], spatial)},
                                 geometry(op.window, op.strides, op.dilations,
                                          pads_of(x, op.window, op.strides, op.dilations, op.before, chosen->size)));
  return channels_last(out, y, spatial);
}

/// [n, in..., C] -> [n, size..., window..., C]: a gather along each spatial dimension, by [size, window] indices.
std::string write_patches(GraphWriter& out, const Patches& op, std::string x) {
  const int spatial = op.window.rank();
  Integers order{0};
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < spatial; ++i) order.push_back(1 + 2 * i + part);
  order.push_back(1 + 2 * spatial);
  for (int i = 0; i < spatial; ++i) {
    require(op.size[i] >= 0, "export_onnx: patches of an image whose size is open; fix all but the batch");
    Integers indices;
    for (std::int64_t o = 0; o < op.size[i]; ++o)
      for (std::int64_t k = 0; k < op.window[i]; ++k) indices.push_back(o * op.strides[i] + k * op.dilations[i]);
    const std::string places = out.reshape(out.integers(indices), {op.size[i], op.window[i]});
    x = out.node("Gather", {x, places}, {GraphWriter::integer("axis", 1 + 2 * i)});
  }
  return reordered(out, x, order);
}

}  // namespace

std::string write_windows(GraphWriter& out, const Graph& graph, const Value& v, const std::vector<std::string>& in) {
  for (const int operand : v.in)
    require(!graph[operand].op || !graph[operand].op.as<WindowArgmax>() || v.op.as<WindowSelect>(),
            "export_onnx: the op window_argmax has a form in ONNX as a part of max pooling alone");
  const auto shape = [&](std::size_t i) { return graph[v.in[i]].spec.shape; };
  if (v.op.as<WindowArgmax>()) return "window_argmax";  // a part of the pooling that reads it
  if (const auto* op = v.op.as<WindowSelect>()) return write_max_pool(out, graph, v, *op, in);
  if (const auto* op = v.op.as<Convolution>()) return write_convolution(out, *op, shape(0), shape(1), in);
  if (const auto* op = v.op.as<TransposedConvolution>()) return write_transposed(out, *op, shape(0), shape(1), in);
  if (const auto* op = v.op.as<Patches>()) return write_patches(out, *op, in[0]);
  return {};
}

}  // namespace gradus::onnx
