/// Convolutions by the primitives, and by matrix products where nothing overlaps.
#include "gradus/ops/conv.h"
#include <algorithm>
#include "gradus/ops/conv_ops.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/size_bounds.h"
#include "gradus/ops/widened.h"
#include "gradus/ops/window_geometry.h"
#include "gradus/tensor/derived_dimension.h"

namespace gradus {
namespace {

void check_operands(std::string_view op, const Tensor& x, const Tensor& filters, int spatial) {
  const int rank = x.shape().rank();
  if (spatial > 0)
    require(rank == spatial + 2, op, ": the input is ", x.spec(), ", expected ", spatial + 2,
            " dimensions: [batch, spatial..., channels]");
  require(rank >= 3 && rank <= 5, op, ": the input is ", x.spec(),
          ", expected [batch, spatial..., channels] with one to three spatial dimensions");
  require(filters.shape().rank() == rank, op, ": filters are ", filters.spec(), " for an input ", x.spec(),
          ", expected [kernel..., channels, filters]");
  require(x.dtype() == filters.dtype(), op, ": the input is ", x.spec(), ", filters are ", filters.spec(),
          ": their dtypes differ; cast one of them");
  require(is_floating(x.dtype()) || x.dtype() == i32 || x.dtype() == i64, op, ": the input is ", x.spec(),
          ", expected a float type, i32 or i64; cast it first");
  require(x.shape()[-1] >= 0, op, ": the channels of ", x.spec(), " must be known when tracing");
  for (std::int64_t d : filters.shape()) require(d >= 0, op, ": filters must have known sizes, got ", filters.spec());
}

Shape kernel_of(const Tensor& filters) { return Shape(std::span(filters.shape().begin(), filters.shape().end() - 2)); }

WindowOptions windows_of(const ConvolutionOptions& o) {
  return {.strides = o.strides, .dilations = o.dilations, .padding = o.padding, .paddings = o.paddings};
}

std::int64_t groups_of(std::string_view op, const Tensor& x, const Tensor& filters) {
  const std::int64_t channels = x.shape()[-1], taken = filters.shape()[-2], made = filters.shape()[-1];
  if (channels == taken) return 1;
  require(taken > 0 && channels % taken == 0, op, ": the input ", x.spec(), " has ", channels,
          " channels, which filters ", filters.spec(), " take ", taken, " at a time");
  const std::int64_t groups = channels / taken;
  require(groups > 0 && made % groups == 0, op, ": ", made, " filters cannot be divided among ", groups,
          " groups of channels: the input is ", x.spec(), ", filters are ", filters.spec());
  return groups;
}

/// Windows of one element, as many as there are elements: the filters mix channels alone.
bool is_pointwise(const Windows& w, const Shape& input) {
  for (int i = 0; i < w.kernel.rank(); ++i)
    if (w.kernel[i] != 1 || w.strides[i] != 1 || w.before[i] != 0 || w.size[i] != input[i]) return false;
  return true;
}

Tensor convolve(std::string_view op, const Tensor& x, const Tensor& filters, std::int64_t groups,
                const ConvolutionOptions& options) {
  const Windows w = windows_over(op, x.spec(), kernel_of(filters), windows_of(options));
  return in_computed_dtype(x, filters, [&](const Tensor& input, const Tensor& weights) {
    if (groups == 1 && is_pointwise(w, spatial_of(x.shape())))
      return matmul(input, reshape(weights, {weights.shape()[-2], weights.shape()[-1]}));
    const std::int64_t made = weights.shape()[-1];
    if (groups > 1 && groups == x.shape()[-1] && made > groups)  // each filter has a channel of its own
      return apply(Convolution{w.strides, w.dilations, w.before, w.size, made}, repeat(input, made / groups, -1),
                   weights);
    return apply(Convolution{w.strides, w.dilations, w.before, w.size, groups}, input, weights);
  });
}

Tensor convolve(std::string_view op, int spatial, const Tensor& x, const Tensor& filters,
                const ConvolutionOptions& options) {
  check_operands(op, x, filters, spatial);
  return convolve(op, x, filters, groups_of(op, x, filters), options);
}

Tensor convolve_depthwise(std::string_view op, int spatial, const Tensor& x, const Tensor& filter,
                          const ConvolutionOptions& options) {
  check_operands(op, x, filter, spatial);
  const std::int64_t channels = x.shape()[-1];
  require(channels > 0 && channels == filter.shape()[-2], op, ": the input ", x.spec(), " has ", channels,
          " channels, the filter ", filter.spec(), " is for ", filter.shape()[-2]);
  Shape shape = filter.shape();
  shape.set(-2, 1);
  shape.set(-1, channels * filter.shape()[-1]);
  return convolve(op, x, reshape(filter, shape), channels, options);
}

Tensor convolve_separably(std::string_view op, int spatial, const Tensor& x, const Tensor& depthwise_filter,
                          const Tensor& pointwise_filter, const ConvolutionOptions& options) {
  const Tensor y = convolve_depthwise(op, spatial, x, depthwise_filter, options);
  const Shape& pointwise = pointwise_filter.shape();
  for (int i = 0; i < pointwise.rank() - 2; ++i)
    require(pointwise[i] == 1, op, ": the pointwise filter is ", pointwise_filter.spec(),
            ", expected 1 in its spatial dimensions");
  require(pointwise.rank() == spatial + 2 && pointwise[-2] == y.shape()[-1], op, ": the pointwise filter is ",
          pointwise_filter.spec(), ", expected it to take ", y.shape()[-1], " channels");
  return convolve(op, spatial, y, pointwise_filter, {});
}

// ---------------------------------------------------------------- transposed

struct Output {
  std::int64_t size, before;
};

/// Along spatial dimension i.
Output output_of(std::string_view op, const Tensor& x, const Shape& kernel, const Shape& strides,
                 const Shape& dilations, const ConvolutionTransposeOptions& o, int i) {
  const std::int64_t input = x.shape()[i + 1], stride = strides[i], reach = (kernel[i] - 1) * dilations[i] + 1;
  const bool same = o.paddings.empty() && o.padding == Padding::same;
  const auto [before, after] =
      o.paddings.empty() ? std::array<std::int64_t, 2>{0, 0} : o.paddings[static_cast<std::size_t>(i)];
  const std::int64_t more =
      o.output_padding.empty() ? 0 : o.output_padding[o.output_padding.size() == 1 ? 0 : static_cast<std::size_t>(i)];
  if (!o.output_shape.empty()) {
    const std::int64_t size = o.output_shape[static_cast<std::size_t>(i)];
    require(input >= 0, op, ": an output_shape for an input ", x.spec(), " that is not known when tracing");
    const std::int64_t windows = same                            ? (size + stride - 1) / stride
                                 : size + before + after < reach ? 0
                                                                 : (size + before + after - reach) / stride + 1;
    require(windows == input, op, ": output_shape ", size, " of spatial dimension ", i, " belongs to ", windows,
            " windows, the input ", x.spec(), " has ", input);
    return {size, same ? same_before(size, windows, stride, reach) : before};
  }
  if (same && o.output_padding.empty()) {
    const std::int64_t size = dimension::multiply(input, stride);
    return {size, std::max<std::int64_t>(reach - stride, 0) / 2};
  }
  const std::int64_t cut = same ? 2 * (reach / 2) : before + after;  // Keras's rule beside output_padding
  std::int64_t tail = reach - stride;                                // what the last window has beyond its stride
  if (o.paddings.empty() && o.output_padding.empty()) tail = std::max<std::int64_t>(tail, 0);
  const std::int64_t size = dimension::add(dimension::multiply(input, stride), dimension::of_number(tail - cut + more));
  if (input >= 0) {
    require(size >= 0 || input == 0, op, ": paddings cut off more than there is of spatial dimension ", i, " of ",
            x.spec());
    const std::int64_t whole = std::max<std::int64_t>(size, 0);
    return {input == 0 ? 0 : whole, same ? std::max<std::int64_t>(cut - more, 0) / 2 : before};
  }
  if (tail - cut + more < 0)
    require_not_negative(size, [&] {
      return text(op, ": paddings cut off more than there is of spatial dimension ", i, " of ", x.spec());
    });
  return {size, same ? std::max<std::int64_t>(cut - more, 0) / 2 : before};
}

void check_options(std::string_view op, const ConvolutionTransposeOptions& o, const Shape& strides,
                   const Shape& dilations, int count) {
  require(o.paddings.empty() || std::ssize(o.paddings) == count, op, ": paddings of ", o.paddings.size(),
          " dimensions, expected ", count);
  for (const auto& [before, after] : o.paddings)
    require(before >= 0 && after >= 0 && std::max(before, after) < std::int64_t{1} << 31, op,
            ": paddings must not be negative or absurdly large, got {", before, ", ", after, "}");
  require(o.output_shape.empty() || std::ssize(o.output_shape) == count, op, ": an output_shape of ",
          o.output_shape.size(), " numbers, expected ", count, ": the spatial sizes");
  for (std::int64_t d : o.output_shape) require(d >= 0, op, ": output_shape must not be negative, got ", d);
  require(o.output_padding.size() <= 1 || std::ssize(o.output_padding) == count, op, ": ", o.output_padding.size(),
          " numbers of output_padding for ", count, " spatial dimensions");
  for (int i = 0; i < count && !o.output_padding.empty(); ++i) {
    const std::int64_t more = o.output_padding[o.output_padding.size() == 1 ? 0 : static_cast<std::size_t>(i)];
    require(more >= 0 && more < std::max(strides[i], dilations[i]), op,
            ": output_padding must be at least 0 and below the stride or the dilation, got ", more);
  }
}

Tensor convolve_transposed(std::string_view op, int spatial, const Tensor& x, const Tensor& filters,
                           const ConvolutionTransposeOptions& o) {
  check_operands(op, x, filters, spatial);
  const int count = x.shape().rank() - 2;
  const std::int64_t channels = x.shape()[-1];
  const Shape kernel = kernel_of(filters), strides = one_each(op, "strides", o.strides, count, 1),
              dilations = one_each(op, "dilations", o.dilations, count, 1);
  check_options(op, o, strides, dilations, count);
  require(filters.shape()[-1] == channels, op, ": the input ", x.spec(), " has ", channels, " channels, filters ",
          filters.spec(), " take ", filters.shape()[-1], ": they are [kernel..., output channels, input channels]");
  require(o.groups >= 1 && channels % o.groups == 0, op, ": ", channels, " channels of ", x.spec(), " in ", o.groups,
          " groups");
  Shape before, size;
  for (int i = 0; i < count; ++i) {
    require(kernel[i] >= 1, op, ": filters are ", filters.spec(), ", expected a kernel of at least 1");
    const Output output = output_of(op, x, kernel, strides, dilations, o, i);
    before.push_back(output.before);
    size.push_back(output.size);
  }
  return in_computed_dtype(x, filters, [&](const Tensor& input, const Tensor& weights) {
    return apply(TransposedConvolution{strides, dilations, before, size, o.groups}, input, transpose(weights));
  });
}

}  // namespace

Tensor convolution(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options) {
  return convolve("convolution", 0, x, filters, options);
}
Tensor conv1d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options) {
  return convolve("conv1d", 1, x, filters, options);
}
Tensor conv2d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options) {
  return convolve("conv2d", 2, x, filters, options);
}
Tensor conv3d(const Tensor& x, const Tensor& filters, const ConvolutionOptions& options) {
  return convolve("conv3d", 3, x, filters, options);
}

Tensor depthwise_conv1d(const Tensor& x, const Tensor& filter, const ConvolutionOptions& options) {
  return convolve_depthwise("depthwise_conv1d", 1, x, filter, options);
}
Tensor depthwise_conv2d(const Tensor& x, const Tensor& filter, const ConvolutionOptions& options) {
  return convolve_depthwise("depthwise_conv2d", 2, x, filter, options);
}
Tensor separable_conv1d(const Tensor& x, const Tensor& depthwise_filter, const Tensor& pointwise_filter,
                        const ConvolutionOptions& options) {
  return convolve_separably("separable_conv1d", 1, x, depthwise_filter, pointwise_filter, options);
}
Tensor separable_conv2d(const Tensor& x, const Tensor& depthwise_filter, const Tensor& pointwise_filter,
                        const ConvolutionOptions& options) {
  return convolve_separably("separable_conv2d", 2, x, depthwise_filter, pointwise_filter, options);
}

Tensor conv_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options) {
  return convolve_transposed("conv_transpose", 0, x, filters, options);
}
Tensor conv1d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options) {
  return convolve_transposed("conv1d_transpose", 1, x, filters, options);
}
Tensor conv2d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options) {
  return convolve_transposed("conv2d_transpose", 2, x, filters, options);
}
Tensor conv3d_transpose(const Tensor& x, const Tensor& filters, const ConvolutionTransposeOptions& options) {
  return convolve_transposed("conv3d_transpose", 3, x, filters, options);
}

}  // namespace gradus
