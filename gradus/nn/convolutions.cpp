/// The formulas of the convolutional layers, and their variables.
#include "gradus/nn/convolutions.h"
#include <concepts>
#include "gradus/nn/cloned.h"
#include "gradus/nn/described.h"
#include "gradus/ops/conv.h"

namespace gradus {
namespace {

/// A layer's options, of any number of spatial dimensions.
struct Settings {
  std::string_view layer, kind;  // "Conv2D", "conv2d"
  std::int64_t filters;
  Sizes kernel, strides, dilations;
  Padding padding;
  std::int64_t groups, depth_multiplier;
  Activation activation;
  bool use_bias;
  Initializer kernel_initializer, bias_initializer;
  Regularizer kernel_regularizer, bias_regularizer, activity_regularizer, pointwise_regularizer;
  int rank() const { return static_cast<int>(kernel.size()) + 2; }
  bool kernel_by_channel() const { return layer.starts_with("Depthwise") || layer.starts_with("Separable"); }
};

void check_settings(const Settings& s) {
  require(s.filters > 0, s.layer, ": the number of filters must be positive, got ", s.filters);
  require(s.groups > 0 && s.filters % s.groups == 0, s.layer, ": ", s.filters, " filters cannot be divided among ",
          s.groups, " groups");
  require(s.depth_multiplier > 0, s.layer, ": depth_multiplier must be positive, got ", s.depth_multiplier);
  for (const auto& [what, sizes] :
       {std::pair{"kernel", &s.kernel}, {"strides", &s.strides}, {"dilation", &s.dilations}})
    for (std::int64_t size : *sizes) require(size > 0, s.layer, ": ", what, " must be positive, got ", size);
}

Shape kernel_shape(const Sizes& sizes, std::int64_t a, std::int64_t b) {
  Shape shape{std::span(sizes)};
  shape.push_back(a);
  shape.push_back(b);
  return shape;
}

struct WindowLayer : Layer, Described {
  explicit WindowLayer(Settings s) : settings(std::move(s)) {
    check_settings(settings);
    set_activity_regularizer(settings.activity_regularizer);
  }
  std::string_view kind() const override { return settings.kind; }
  bool mixes_places(const Shape&) const override { return settings.kernel[0] != 1 || settings.strides[0] != 1; }
  LayerConfig config() const override {
    const bool transposed = settings.layer.ends_with("Transpose");
    if (transposed && settings.groups > 1) return {};
    LayerConfig made{
        std::string(settings.layer),
        {{"kernel_size", settings.kernel},
         {"strides", for_each_dimension(settings.strides)},
         {"padding", std::string(settings.padding == Padding::same ? "same" : "valid")},
         {"dilation_rate", for_each_dimension(settings.dilations)},
         {"activation", settings.activation},
         {"use_bias", settings.use_bias},
         {settings.kernel_by_channel() ? "depthwise_regularizer" : "kernel_regularizer", settings.kernel_regularizer},
         {"pointwise_regularizer", settings.pointwise_regularizer},
         {"bias_regularizer", settings.bias_regularizer},
         {"activity_regularizer", settings.activity_regularizer}}};
    if (!settings.layer.starts_with("Depthwise")) made.options.push_back({"filters", settings.filters});
    if (settings.kernel_by_channel()) made.options.push_back({"depth_multiplier", settings.depth_multiplier});
    else if (!transposed) made.options.push_back({"groups", settings.groups});
    return made;
  }

 protected:
  Sizes for_each_dimension(const Sizes& sizes) const {
    return sizes.size() == 1 ? Sizes(settings.kernel.size(), sizes[0]) : sizes;
  }
  /// The channels of the input; a mistake if it is none.
  std::int64_t channels_of(const Spec& input) const {
    require(input.shape.rank() == settings.rank(), settings.layer, ": the input is ", input, ", expected ",
            settings.rank(), " dimensions: [batch, ", settings.rank() == 3 ? "steps" : "spatial sizes",
            ", channels]; add a dimension with reshape");
    require(input.shape.back() > 0, settings.layer, ": the channels of the input must be known, got ", input);
    require(is_floating(input.dtype), settings.layer, ": the input is ", input, ", expected a float type; cast it");
    return input.shape.back();
  }
  void add_kernel(const std::string& name, const Shape& shape, DType t, const Regularizer& regularizer) {
    add_variable(name, cast(settings.kernel_initializer(shape), t), regularizer);
  }
  void add_kernel(const Shape& shape, DType t) { add_kernel("kernel", shape, t, settings.kernel_regularizer); }
  void add_bias(std::int64_t n, DType t) {
    if (settings.use_bias) add_variable("bias", cast(settings.bias_initializer({n}), t), settings.bias_regularizer);
  }
  /// With the bias, which is the last variable, and the activation.
  Tensor finished(const Tensor& y) const {
    return settings.activation(settings.use_bias ? y + parameter(own_count() - 1) : y);
  }
  /// An input of another number of channels than it was built for.
  void check_channels(const Tensor& x) const {
    const std::int64_t channels = channels_of(x.spec()), expected = input()->shape.back();
    require(channels == expected, settings.layer, " ", name(), ": the input is ", x.spec(), ", expected ", expected,
            " channels");
  }
  /// The kernel moves over the places of the output.
  std::int64_t multiplications() const override { return input() ? places_of(output_of(*input()).shape) : 1; }
  void set_output_channels(std::int64_t n) override { settings.filters = n; }
  /// With the bias, which every layer here has last.
  ChannelFlow flow_of(ChannelFlow::Kind kind, std::vector<ChannelFlow::Axes> of_kernels) const {
    ChannelFlow flow{.kind = kind, .axes = std::move(of_kernels), .activation = settings.activation};
    if (!settings.use_bias) return flow;
    flow.axes.push_back({.outputs = 0, .shifts = true});
    flow.shift = variable(own_count() - 1);
    return flow;
  }
  ConvolutionOptions options() const {
    return {.strides = settings.strides, .padding = settings.padding, .dilations = settings.dilations};
  }
  Settings settings;
};

template <class Self> struct ClonedWindow : WindowLayer {
  using WindowLayer::WindowLayer;
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Self>(static_cast<const Self&>(*this)); }
};

struct ConvolutionLayer final : ClonedWindow<ConvolutionLayer> {
  using ClonedWindow::ClonedWindow;
  void build(const Spec& input) override {
    const std::int64_t channels = channels_of(input);
    require(channels % settings.groups == 0, settings.layer, ": ", channels, " channels of ", input,
            " cannot be divided among ", settings.groups, " groups");
    add_kernel(kernel_shape(settings.kernel, channels / settings.groups, settings.filters), input.dtype);
    add_bias(settings.filters, input.dtype);
  }
  Tensor call(const Tensor& x) const override {
    check_channels(x);
    return finished(convolution(x, parameter(0), options()));
  }
  ChannelFlow channel_flow() const override {
    if (settings.groups != 1) return {};
    return flow_of(ChannelFlow::Kind::mixed, {{.inputs = settings.rank() - 2, .outputs = settings.rank() - 1}});
  }
};

struct TransposedLayer final : ClonedWindow<TransposedLayer> {
  using ClonedWindow::ClonedWindow;
  void build(const Spec& input) override {
    const std::int64_t channels = channels_of(input);
    require(channels % settings.groups == 0, settings.layer, ": ", channels, " channels of ", input,
            " cannot be divided among ", settings.groups, " groups");
    add_kernel(kernel_shape(settings.kernel, settings.filters / settings.groups, channels), input.dtype);
    add_bias(settings.filters, input.dtype);
  }
  Tensor call(const Tensor& x) const override {
    check_channels(x);
    return finished(conv_transpose(x, parameter(0),
                                   {.strides = settings.strides,
                                    .padding = settings.padding,
                                    .dilations = settings.dilations,
                                    .groups = settings.groups}));
  }
  /// Over those of the input.
  std::int64_t multiplications() const override { return Layer::multiplications(); }
  ChannelFlow channel_flow() const override {
    if (settings.groups != 1) return {};
    return flow_of(ChannelFlow::Kind::mixed, {{.inputs = settings.rank() - 1, .outputs = settings.rank() - 2}});
  }
};

struct DepthwiseLayer final : ClonedWindow<DepthwiseLayer> {
  using ClonedWindow::ClonedWindow;
  void build(const Spec& input) override {
    const std::int64_t channels = channels_of(input);
    add_kernel(kernel_shape(settings.kernel, channels, settings.depth_multiplier), input.dtype);
    add_bias(channels * settings.depth_multiplier, input.dtype);
  }
  Tensor call(const Tensor& x) const override {
    check_channels(x);
    const Tensor kernel = parameter(0);
    return finished(settings.rank() == 3 ? depthwise_conv1d(x, kernel, options())
                                         : depthwise_conv2d(x, kernel, options()));
  }
  Variables kernels() const override { return {}; }
  ChannelFlow channel_flow() const override {
    ChannelFlow flow = flow_of(ChannelFlow::Kind::apart, {{.inputs = settings.rank() - 2}});
    flow.repeats = settings.depth_multiplier;
    return flow;
  }
  void set_output_channels(std::int64_t) override {}
};

struct SeparableLayer final : ClonedWindow<SeparableLayer> {
  using ClonedWindow::ClonedWindow;
  void build(const Spec& input) override {
    const std::int64_t channels = channels_of(input);
    add_kernel("depthwise_kernel", kernel_shape(settings.kernel, channels, settings.depth_multiplier), input.dtype,
               settings.kernel_regularizer);
    add_kernel("pointwise_kernel",
               kernel_shape(Sizes(settings.kernel.size(), 1), channels * settings.depth_multiplier, settings.filters),
               input.dtype, settings.pointwise_regularizer);
    add_bias(settings.filters, input.dtype);
  }
  Tensor call(const Tensor& x) const override {
    check_channels(x);
    const Tensor depthwise = parameter(0), pointwise = parameter(1);
    return finished(settings.rank() == 3 ? separable_conv1d(x, depthwise, pointwise, options())
                                         : separable_conv2d(x, depthwise, pointwise, options()));
  }
  ChannelFlow channel_flow() const override {
    if (settings.depth_multiplier != 1) return {};
    const int inputs = settings.rank() - 2;
    return flow_of(ChannelFlow::Kind::mixed, {{.inputs = inputs}, {.inputs = inputs, .outputs = inputs + 1}});
  }
};

template <class Size>
Settings settings_of(std::string_view layer, std::string_view kind, std::int64_t filters, const Sizes& kernel,
                     const ConvOptionsOf<Size>& o) {
  return {.layer = layer,
          .kind = kind,
          .filters = filters,
          .kernel = kernel,
          .strides = o.strides,
          .dilations = o.dilation,
          .padding = o.padding,
          .groups = o.groups,
          .depth_multiplier = o.depth_multiplier,
          .activation = o.activation,
          .use_bias = o.use_bias,
          .kernel_initializer = o.kernel_initializer,
          .bias_initializer = o.bias_initializer,
          .kernel_regularizer = o.kernel_regularizer,
          .bias_regularizer = o.bias_regularizer,
          .activity_regularizer = o.activity_regularizer,
          .pointwise_regularizer = o.pointwise_regularizer};
}

/// A layer that takes no depth_multiplier, or one that takes no groups.
template <class L, class Size>
std::shared_ptr<Layer> full(std::string_view layer, std::string_view kind, std::int64_t filters, const Sizes& kernel,
                            const ConvOptionsOf<Size>& options) {
  check_options(layer, options);
  require(options.depth_multiplier == 1, layer, ": depth_multiplier is for depthwise layers");
  require(!options.pointwise_regularizer, layer, ": pointwise_regularizer is for separable layers");
  return named(std::make_shared<L>(settings_of(layer, kind, filters, kernel, options)), options.name);
}
template <class L, class Size>
std::shared_ptr<Layer> by_channel(std::string_view layer, std::string_view kind, std::int64_t filters,
                                  const Sizes& kernel, const ConvOptionsOf<Size>& options) {
  check_options(layer, options);
  require(options.groups == 1, layer, ": it has no groups: each channel is one");
  require(!options.pointwise_regularizer || (std::same_as<L, SeparableLayer>), layer,
          ": pointwise_regularizer is for separable layers");
  return named(std::make_shared<L>(settings_of(layer, kind, filters, kernel, options)), options.name);
}

}  // namespace

Conv1D::Conv1D(std::int64_t filters, Single kernel, Conv1DOptions options)
    : Module(full<ConvolutionLayer>("Conv1D", "conv1d", filters, kernel, options)) {}
Conv2D::Conv2D(std::int64_t filters, Pair kernel, ConvOptions options)
    : Module(full<ConvolutionLayer>("Conv2D", "conv2d", filters, kernel, options)) {}
Conv3D::Conv3D(std::int64_t filters, Triple kernel, Conv3DOptions options)
    : Module(full<ConvolutionLayer>("Conv3D", "conv3d", filters, kernel, options)) {}

Conv1DTranspose::Conv1DTranspose(std::int64_t filters, Single kernel, Conv1DOptions options)
    : Module(full<TransposedLayer>("Conv1DTranspose", "conv1d_transpose", filters, kernel, options)) {}
Conv2DTranspose::Conv2DTranspose(std::int64_t filters, Pair kernel, ConvOptions options)
    : Module(full<TransposedLayer>("Conv2DTranspose", "conv2d_transpose", filters, kernel, options)) {}
Conv3DTranspose::Conv3DTranspose(std::int64_t filters, Triple kernel, Conv3DOptions options)
    : Module(full<TransposedLayer>("Conv3DTranspose", "conv3d_transpose", filters, kernel, options)) {}

DepthwiseConv1D::DepthwiseConv1D(Single kernel, Conv1DOptions options)
    : Module(by_channel<DepthwiseLayer>("DepthwiseConv1D", "depthwise_conv1d", 1, kernel, options)) {}
DepthwiseConv2D::DepthwiseConv2D(Pair kernel, ConvOptions options)
    : Module(by_channel<DepthwiseLayer>("DepthwiseConv2D", "depthwise_conv2d", 1, kernel, options)) {}

SeparableConv1D::SeparableConv1D(std::int64_t filters, Single kernel, Conv1DOptions options)
    : Module(by_channel<SeparableLayer>("SeparableConv1D", "separable_conv1d", filters, kernel, options)) {}
SeparableConv2D::SeparableConv2D(std::int64_t filters, Pair kernel, ConvOptions options)
    : Module(by_channel<SeparableLayer>("SeparableConv2D", "separable_conv2d", filters, kernel, options)) {}

}  // namespace gradus
