/// ONNX's convolutions and pooling. Channels are first there, last here, so inputs and results are transposed.
#include "gradus/onnx/row.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/deform_conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

/// [N, C, spatial...] -> [N, spatial..., C]
Tensor channels_last(const Tensor& x) {
  std::vector<int> order{0};
  for (int i = 2; i < x.shape().rank(); ++i) order.push_back(i);
  order.push_back(1);
  return transpose(x, order);
}

Tensor channels_first(const Tensor& x) {
  std::vector<int> order{0, x.shape().rank() - 1};
  for (int i = 1; i + 1 < x.shape().rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

/// [a, b, kernel...] -> [kernel..., b, a]
Tensor kernel_first(const Tensor& w) {
  std::vector<int> order;
  for (int i = 2; i < w.shape().rank(); ++i) order.push_back(i);
  order.insert(order.end(), {1, 0});
  return transpose(w, order);
}

void require_spatial(const Call& c, const Tensor& x) {
  c.require(x.shape().rank() >= 3 && x.shape().rank() <= 5, "the input is ", x.spec(),
            ", expected [N, C, spatial...] with one to three spatial dimensions");
}

/// An attribute of one number a spatial dimension.
Integers spatial_numbers(const Call& c, std::string_view name, int count, std::int64_t otherwise, std::int64_t least) {
  const Integers given = c.integers(name, Integers(static_cast<std::size_t>(count), otherwise));
  c.require(std::ssize(given) == count, name, " has ", given.size(), " numbers, expected ", count);
  for (std::int64_t each : given)
    c.require(each >= least && each < std::int64_t{1} << 31, name, ": ", each, ", expected at least ", least);
  return given;
}

struct Geometry {
  Integers kernel, strides, dilations;
  std::int64_t reach(std::size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

Geometry geometry_of(const Call& c, const Tensor& x, Integers kernel) {
  const int count = x.shape().rank() - 2;
  c.require(std::ssize(kernel) == count, "a kernel of ", kernel.size(), " dimensions for ", x.spec());
  for (std::int64_t k : kernel) c.require(k >= 1 && k < std::int64_t{1} << 31, "a kernel of size ", k);
  return {std::move(kernel), spatial_numbers(c, "strides", count, 1, 1), spatial_numbers(c, "dilations", count, 1, 1)};
}

constexpr std::int64_t most = std::int64_t{1} << 31;

/// `pads`: all that stand before, then all that stand after.
Paddings explicit_pads(const Call& c, std::size_t count) {
  const Integers pads = c.integers("pads", Integers(2 * count, 0));
  c.require(pads.size() == 2 * count, "pads has ", pads.size(), " numbers, expected ", 2 * count);
  for (std::int64_t each : pads) c.require(each >= 0 && each < most, "pads: ", each, ", expected at least 0");
  Paddings paddings;
  for (std::size_t i = 0; i < count; ++i) paddings.push_back({pads[i], pads[count + i]});
  return paddings;
}

/// `pads` or what auto_pad makes of them: SAME_UPPER has the odd one at the end, SAME_LOWER at the beginning.
Paddings paddings_of(const Call& c, const Tensor& x, const Geometry& g) {
  const std::size_t count = g.kernel.size();
  const std::string automatic = c.word("auto_pad", "NOTSET");
  if (automatic == "NOTSET") return explicit_pads(c, count);
  Paddings paddings(count, {0, 0});
  if (automatic == "VALID") return paddings;
  c.require(automatic == "SAME_UPPER" || automatic == "SAME_LOWER", "auto_pad is ", automatic,
            ", expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t size = x.shape()[static_cast<int>(i) + 2];
    const std::int64_t steps =
        dimension::multiply(dimension::subtract(dimension::ceil_divide(size, g.strides[i]), 1), g.strides[i]);
    const std::int64_t total = dimension::maximum(dimension::subtract(dimension::add(steps, g.reach(i)), size), 0);
    const std::int64_t less = dimension::floor_divide(total, 2), more = dimension::subtract(total, less);
    if (automatic == "SAME_UPPER") paddings[i] = {less, more};
    else paddings[i] = {more, less};
  }
  return paddings;
}

Integers kernel_of_weights(const Call& c, const Tensor& w) {
  c.require(w.shape().rank() >= 3, "weights are ", w.spec());
  Integers kernel(w.shape().begin() + 2, w.shape().end());
  if (c.has_attribute("kernel_shape"))
    c.require(c.integers("kernel_shape") == kernel, "kernel_shape differs from the weights, ", w.spec());
  return kernel;
}

/// A bias for each channel, of channels last.
Tensor with_bias(const Call& c, const Tensor& y, int input) {
  if (!c.has(input)) return y;
  c.require(c[input].shape() == Shape{y.shape()[-1]}, "the bias is ", c[input].spec(), ", expected ", y.shape()[-1],
            " numbers");
  return y + c[input];
}

Results convolve(const Call& c) {
  const Tensor &x = c[0], &w = c[1];
  require_spatial(c, x);
  c.require(w.shape().rank() == x.shape().rank(), "the input is ", x.spec(), ", weights are ", w.spec());
  const Geometry g = geometry_of(c, x, kernel_of_weights(c, w));
  const std::int64_t groups = c.integer("group", 1);
  c.require(groups >= 1 && w.shape()[1] >= 0 && dimension::multiply(w.shape()[1], groups) == x.shape()[1], "the input ",
            x.spec(), " does not have the channels of ", groups, " groups of weights ", w.spec());
  const Tensor y = convolution(channels_last(x), kernel_first(w),
                               {.strides = g.strides, .paddings = paddings_of(c, x, g), .dilations = g.dilations});
  return channels_first(with_bias(c, y, 2));
}

/// Weights are [C, F/groups, kernel...]. output_shape decides the paddings.
Results convolve_transposed(const Call& c) {
  const Tensor &x = c[0], &w = c[1];
  require_spatial(c, x);
  c.require(w.shape().rank() == x.shape().rank(), "the input is ", x.spec(), ", weights are ", w.spec());
  const Geometry g = geometry_of(c, x, kernel_of_weights(c, w));
  const int count = x.shape().rank() - 2;
  const Integers more = spatial_numbers(c, "output_padding", count, 0, 0);
  Integers shape = c.integers("output_shape", {});
  if (std::ssize(shape) == count + 2) shape.erase(shape.begin(), shape.begin() + 2);
  c.require(shape.empty() || std::ssize(shape) == count, "output_shape has ", shape.size(), " numbers");
  const std::string automatic = c.word("auto_pad", "NOTSET");
  for (std::int64_t each : shape) c.require(each >= 0 && each < most, "output_shape: ", each);
  const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  Paddings paddings = explicit_pads(c, g.kernel.size());
  Integers size;
  for (std::size_t i = 0; i < g.kernel.size(); ++i) {
    const std::int64_t input = x.shape()[static_cast<int>(i) + 2];
    c.require(input >= 0 && input < most, "the size of ", x.spec(), " is not known when tracing, or absurd");
    const std::int64_t whole = g.strides[i] * (input - 1) + more[i] + g.reach(i);
    size.push_back(!shape.empty() ? shape[i] : same ? input * g.strides[i] : whole - paddings[i][0] - paddings[i][1]);
    c.require(size[i] >= 0, "a result of size ", size[i]);
    if (shape.empty() && !same) continue;
    const std::int64_t total = std::max<std::int64_t>(whole - size[i], 0), less = total / 2;
    if (automatic == "SAME_UPPER") paddings[i] = {less, total - less};
    else paddings[i] = {total - less, less};
  }
  const Tensor y = conv_transpose(channels_last(x), kernel_first(w),
                                  {.strides = g.strides,
                                   .paddings = paddings,
                                   .dilations = g.dilations,
                                   .output_shape = size,
                                   .groups = c.integer("group", 1)});
  return channels_first(with_bias(c, y, 2));
}

/// By the formulas of the specification auto_pad decides how many windows there are, and ceil_mode changes nothing:
/// VALID has ceil((size - reach + 1) / stride) of them, which is floor((size - reach) / stride) + 1, SAME ceil(size /
/// stride).
PoolingOptions pooling_options(const Call& c, const Tensor& x, const Geometry& g) {
  return {.strides = g.strides,
          .paddings = paddings_of(c, x, g),
          .dilations = g.dilations,
          .ceil_mode = c.flag("ceil_mode") && c.word("auto_pad", "NOTSET") == "NOTSET",
          .count_include_pad = c.flag("count_include_pad")};
}

Geometry pooling_geometry(const Call& c) {
  require_spatial(c, c[0]);
  return geometry_of(c, c[0], c.integers("kernel_shape"));
}

Results average_pool(const Call& c) {
  const Geometry g = pooling_geometry(c);
  return channels_first(avg_pool(channels_last(c[0]), g.kernel, pooling_options(c, c[0], g)));
}

Results lp_pool_of(const Call& c) {
  const Geometry g = pooling_geometry(c);
  const double p = c.version() >= 2 ? static_cast<double>(c.integer("p", 2)) : c.number("p", 2);
  return channels_first(lp_pool(channels_last(c[0]), g.kernel, p, pooling_options(c, c[0], g)));
}

/// Indices there count through the whole tensor, channels first; storage_order 1 is column-major in space.
Tensor onnx_indices(const Call& c, const Tensor& argmax, const Shape& input) {
  const std::int64_t channels = input[1], spatial = Shape(std::span(input.begin() + 2, input.end())).size();
  const Tensor first = channels_first(argmax);  // [N, C, ...] of position * channels + channel
  Tensor position = floor_divide(first, extent(channels, i64));
  if (c.integer("storage_order", 0) != 0 && input.rank() == 4) {
    const Tensor columns = extent(input[3], i64), row = floor_divide(position, columns),
                 column = mod(position, columns);
    position = column * extent(input[2], i64) + row;
  }
  Shape plane{input[0], channels};
  for (int i = 2; i < input.rank(); ++i) plane.push_back(1);
  const Tensor planes = reshape(range(dimension::multiply(input[0], channels), i64), plane);
  return position + planes * extent(spatial, i64);
}

Results max_pool_of(const Call& c) {
  const Geometry g = pooling_geometry(c);
  const PoolingOptions options = pooling_options(c, c[0], g);
  const Tensor x = channels_last(c[0]);
  if (!c.wants(1)) return channels_first(max_pool(x, g.kernel, options));
  const MaxPoolWithArgmax pooled = max_pool_with_argmax(x, g.kernel, options);
  return {channels_first(pooled.output), onnx_indices(c, pooled.argmax, c[0].shape())};
}

/// Zeros, to which x is added at the flat positions `places`.
Tensor scattered(const Tensor& x, const Tensor& places, const Shape& shape) {
  const Tensor within = check_range(reshape(places, {-1}), shape.size(), false);
  return reshape(apply(ScatterAdd{-1, shape.size()}, within, reshape(x, {-1})), shape);
}

/// Indices belong to a tensor of the size that the attributes give; output_shape may be larger, by zeros at the ends.
Results max_unpool_of(const Call& c) {
  const Tensor& x = c[0];
  const Geometry g = pooling_geometry(c);
  const Paddings paddings = paddings_of(c, x, g);
  c.require(c[1].shape() == x.shape() && is_integer(c[1].dtype()), "indices are ", c[1].spec(), " for ", x.spec());
  Shape whole = x.shape();
  for (std::size_t i = 0; i < g.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    const std::int64_t last = dimension::multiply(dimension::subtract(whole[axis], 1), g.strides[i]);
    whole.set(axis, dimension::add(last, dimension::of_number(g.kernel[i] - paddings[i][0] - paddings[i][1])));
    c.require(whole[axis] >= 0 || dimension::symbols_in(whole[axis]) > 0, "a result of ", brackets(whole));
  }
  const Tensor y = scattered(x, cast(c[1], i64), whole);
  if (!c.has(2)) return y;
  const Shape wanted = c.shape_of(2);
  c.require(wanted.rank() == whole.rank(), "output_shape is ", brackets(wanted), " for ", x.spec());
  std::vector<std::array<std::int64_t, 2>> more;
  for (int i = 0; i < whole.rank(); ++i) {
    more.push_back({0, dimension::subtract(wanted[i], whole[i])});
    c.require(more.back()[1] >= 0, "output_shape ", brackets(wanted), " is smaller than what is unpooled, ",
              brackets(whole));
  }
  return pad(y, more);
}

/// (sum |x|^p)^(1/p) over all of space, and its like: ONNX keeps the dimensions.
template <class F> RowFunction over_space(const F& f) {
  return rounded_once([f](const Call& c) -> Results {
    const Tensor& x = c[0];
    c.require(x.shape().rank() >= 3, "the input is ", x.spec(), ", expected [N, C, spatial...]");
    std::vector<int> axes;
    for (int i = 2; i < x.shape().rank(); ++i) axes.push_back(i);
    return f(c, x, ReduceOptions{.axis = axes, .keepdims = true});
  });
}

Tensor lp_norm(const Call& c, const Tensor& x, const ReduceOptions&) {
  const double p = c.version() >= 2 ? static_cast<double>(c.integer("p", 2)) : c.number("p", 2);
  require_spatial(c, x);
  Shape shape{x.shape()[0], x.shape()[1]};
  for (int i = 2; i < x.shape().rank(); ++i) shape.push_back(1);
  return reshape(global_lp_pool(channels_last(x), p), shape);
}

/// [N, C * taps, windows] -> [N, C, image...]: channels are outside of taps there.
Results column_to_image(const Call& c) {
  const Tensor& x = c[0];
  const Integers image = c.integers_of(1), block = c.integers_of(2);
  const int count = static_cast<int>(image.size());
  c.require(count >= 1 && count <= 3 && block.size() == image.size(), "an image of ", image.size(),
            " dimensions and blocks of ", block.size(), ", expected one to three of both");
  c.require(x.shape().rank() == 3, "the input is ", x.spec(), ", expected [N, C * taps, windows]");
  const Integers strides = spatial_numbers(c, "strides", count, 1, 1),
                 dilations = spatial_numbers(c, "dilations", count, 1, 1);
  const Paddings paddings = explicit_pads(c, image.size());
  Shape apart{x.shape()[0], 1}, windows;
  std::int64_t taps = 1;
  for (std::size_t i = 0; i < image.size(); ++i) {
    c.require(block[i] >= 1 && block[i] < std::int64_t{1} << 20 && image[i] >= 0 && image[i] < most, "blocks of ",
              block[i], " in an image of ", image[i]);
    const std::int64_t room = image[i] + paddings[i][0] + paddings[i][1] - (block[i] - 1) * dilations[i] - 1;
    c.require(room >= 0, "blocks do not fit into an image of ", image[i]);
    windows.push_back(room / strides[i] + 1);
    taps = dimension::multiply(taps, block[i]);
  }
  const auto channels = dimension::divide(x.shape()[1], taps);
  c.require(channels.has_value() && windows.size() == x.shape()[2], "the input ", x.spec(), " does not have ", taps,
            " taps of ", brackets(windows), " windows");
  // [N, C, taps, windows] -> [N, windows, taps, C]
  const Tensor patches = transpose(reshape(x, {x.shape()[0], *channels, taps, x.shape()[2]}), {0, 3, 2, 1});
  Shape grid{x.shape()[0]};
  for (std::int64_t d : windows) grid.push_back(d);
  grid.push_back(x.shape()[1]);
  return channels_first(fold_patches(reshape(patches, grid), image, block,
                                     {.strides = strides, .paddings = paddings, .rates = dilations}));
}

/// [N, A, spatial...] of offsets or masks; offsets come as (rows, columns) pairs there and here.
Results convolve_deformed(const Call& c) {
  const Tensor &x = c[0], &w = c[1];
  c.require(x.shape().rank() == 4 && w.shape().rank() == 4, "the input is ", x.spec(), ", weights are ", w.spec(),
            ", expected two spatial dimensions");
  const Geometry g = geometry_of(c, x, kernel_of_weights(c, w));
  const Tensor mask = c.has(4) ? channels_last(c[4]) : Tensor();
  const Tensor y = deform_conv2d(channels_last(x), kernel_first(w), channels_last(c[2]), mask,
                                 {.strides = g.strides,
                                  .paddings = paddings_of(c, x, g),
                                  .dilations = g.dilations,
                                  .offset_groups = c.integer("offset_group", 1)});
  return channels_first(with_bias(c, y, 3));
}

/// A depthwise convolution over what came before and the input; its last positions are the state of the next call.
Results convolve_with_state(const Call& c) {
  const Tensor &x = c[0], &w = c[1];
  c.require(x.shape().rank() == 3 && w.shape().rank() == 3 && w.shape()[2] >= 1 && w.shape()[0] == x.shape()[1] &&
                w.shape()[1] == 1,
            "the input is ", x.spec(), ", weights are ", w.spec(), ", expected [N, C, length] and [C, 1, k]");
  const std::int64_t kept = w.shape()[2] - 1;
  const Tensor past = c.has(3) ? c[3] : fill({x.shape()[0], x.shape()[1], kept}, 0, x.dtype());
  c.require(past.shape() == Shape{x.shape()[0], x.shape()[1], kept}, "the past state is ", past.spec(), " for kernels ",
            w.spec());
  const Tensor whole = concat({past, x}, 2);
  const Tensor y = with_bias(c, depthwise_conv1d(channels_last(whole), transpose(w, {2, 0, 1})), 2);
  const std::string activation = c.word("activation", "none");
  c.require(activation == "none" || activation == "silu" || activation == "swish", "activation is ", activation);
  const Tensor state = slice_within(whole, 2, dimension::subtract(whole.shape()[2], kept), kept);
  return {channels_first(activation == "none" ? y : silu(y)), state};
}

const Table table{
    {"AveragePool", {1, 7, 10, 11, 19, 22}, rounded_once(average_pool)},
    {"CausalConvWithState", {27}, rounded_once(convolve_with_state)},
    {"Col2Im", {18}, rounded_once(column_to_image)},
    {"Conv", {1, 11, 22}, rounded_once(convolve)},
    {"ConvTranspose", {1, 11, 22}, rounded_once(convolve_transposed)},
    {"DeformConv", {19, 22}, rounded_once(convolve_deformed)},
    {"GlobalAveragePool", {1, 22}, over_space([](const Call&, const Tensor& x, const ReduceOptions& o) {
       return reduce_mean(x, o);
     })},
    {"GlobalLpPool", {1, 2, 22}, over_space(lp_norm)},
    {"GlobalMaxPool", {1, 22}, over_space([](const Call&, const Tensor& x, const ReduceOptions& o) {
       return reduce_max(x, o);
     })},
    {"LpPool", {1, 2, 11, 18, 22}, rounded_once(lp_pool_of)},
    {"MaxPool", {1, 8, 10, 11, 12, 22}, max_pool_of},
    {"MaxUnpool", {9, 11, 22}, max_unpool_of},
};

}  // namespace
}  // namespace gradus::onnx
