/// A layer of Keras is a row of the table: its class, and the way to make it.
#include "gradus/train/keras_layers.h"
#include <algorithm>
#include <set>
#include "gradus/nn/activity_regularization.h"
#include "gradus/nn/augmentation.h"
#include "gradus/nn/category_encoding.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/described.h"
#include "gradus/nn/einsum_dense.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/feature_normalization.h"
#include "gradus/nn/function_layer.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/noise.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/preprocessing.h"
#include "gradus/nn/rearranging.h"

namespace gradus {
namespace {

using Json = nlohmann::json;
using Make = MakeKerasLayer;

// Weights come from the file: nothing is drawn for them first.
const Initializer no_draw = initializers::zeros;

template <class Size> Size size_from(const Sizes& s) {
  if constexpr (std::same_as<Size, Single>) return s[0];
  else if constexpr (std::same_as<Size, Pair>) return {s[0], s[1]};
  else return {s[0], s[1], s[2]};
}
template <class Size> constexpr std::size_t rank_of = std::same_as<Size, Single> ? 1 : std::same_as<Size, Pair> ? 2 : 3;

template <class Size> ConvOptionsOf<Size> convolution_options(KerasOptions& o, bool by_channel) {
  constexpr std::size_t n = rank_of<Size>;
  return {.strides = size_from<Size>(o.sizes("strides", n, 1)),
          .padding = o.padding(),
          .dilation = size_from<Size>(o.sizes("dilation_rate", n, 1)),
          .groups = o.integer("groups", 1),
          .activation = o.activation("activation", "linear"),
          .use_bias = o.flag("use_bias", true),
          .kernel_initializer = no_draw,
          .depth_multiplier = o.integer("depth_multiplier", 1),
          .kernel_regularizer = o.regularizer(by_channel ? "depthwise_regularizer" : "kernel_regularizer"),
          .bias_regularizer = o.regularizer("bias_regularizer"),
          .activity_regularizer = o.regularizer("activity_regularizer"),
          .pointwise_regularizer = o.regularizer("pointwise_regularizer")};
}
template <class L, class Size, bool by_channel = false> Make convolution_of() {
  return [](KerasOptions& o) {
    const auto filters = o.integer("filters");
    return L(filters, size_from<Size>(o.sizes("kernel_size", rank_of<Size>, 1)),
             convolution_options<Size>(o, by_channel));
  };
}
template <class L, class Size> Make depthwise_of() {
  return [](KerasOptions& o) {
    return L(size_from<Size>(o.sizes("kernel_size", rank_of<Size>, 1)), convolution_options<Size>(o, true));
  };
}
template <class L, class Size> Make pooling_of() {
  return [](KerasOptions& o) {
    const Sizes window = o.sizes("pool_size", rank_of<Size>, 2);
    PoolOptionsOf<Size> options{.padding = o.padding()};
    if (o.has("strides")) options.strides = size_from<Size>(o.sizes("strides", rank_of<Size>, 2));
    return L(size_from<Size>(window), options);
  };
}
template <class L> Make global_pooling() {
  return [](KerasOptions& o) { return L(o.flag("keepdims", false)); };
}
template <class L, class Size> Make adaptive_pooling() {
  return [](KerasOptions& o) { return L(size_from<Size>(o.sizes("output_size", rank_of<Size>, 1))); };
}
/// So much before and after each dimension; of three dimensions as much on both sides.
template <class L, class Size> Make by_sides(const char* name) {
  return [name](KerasOptions& o) {
    constexpr std::size_t n = rank_of<Size>;
    const auto sides = o.both_sides(name, n);
    if constexpr (n == 1) {
      return L(sides[0]);
    } else if constexpr (n == 2) {
      return L(sides[0], sides[1]);
    } else {
      for (const auto& [before, after] : sides)
        if (before != after) o.problem("option `", name, "`: expected as much before as after");
      return L(Size(sides[0][0], sides[1][0], sides[2][0]));
    }
  };
}
template <class L> Make of_rate(const char* name) {
  return [name](KerasOptions& o) { return L(o.number(name, 0)); };
}
template <class L> Make of_nothing() {
  return [](KerasOptions&) { return L(); };
}

ResizeMethod interpolation(KerasOptions& o, const std::string& otherwise) {
  const std::string said = o.word("interpolation", otherwise);
  for (const ResizeMethod method : {ResizeMethod::bilinear, ResizeMethod::nearest, ResizeMethod::bicubic,
                                    ResizeMethod::lanczos3, ResizeMethod::lanczos5})
    if (name_of(method) == said) return method;
  o.problem("option `interpolation` is ", said, "; expected bilinear, nearest, bicubic, lanczos3 or lanczos5");
  return ResizeMethod::nearest;
}

Module embedding(KerasOptions& o) {
  const auto rows = o.integer("input_dim"), width = o.integer("output_dim");
  return Embedding(rows, width,
                   {.embeddings_initializer = no_draw,
                    .mask_zero = o.flag("mask_zero", false),
                    .embeddings_regularizer = o.regularizer("embeddings_regularizer"),
                    .activity_regularizer = o.regularizer("activity_regularizer")});
}

Module batch_normalization(KerasOptions& o) {
  if (o.axis("axis", -1) != -1) o.problem("option `axis`: expected -1, the last");
  return BatchNormalization({.momentum = o.number("momentum", 0.99),
                             .epsilon = o.number("epsilon", 1e-3),
                             .center = o.flag("center", true),
                             .scale = o.flag("scale", true),
                             .synchronized = o.flag("synchronized", false),
                             .beta_regularizer = o.regularizer("beta_regularizer"),
                             .gamma_regularizer = o.regularizer("gamma_regularizer")});
}
Module layer_normalization(KerasOptions& o) {
  return LayerNormalization({.epsilon = o.number("epsilon", 1e-3),
                             .center = o.flag("center", true),
                             .scale = o.flag("scale", true),
                             .axis = o.axes("axis", {-1}),
                             .beta_regularizer = o.regularizer("beta_regularizer"),
                             .gamma_regularizer = o.regularizer("gamma_regularizer")});
}
Module group_normalization(KerasOptions& o) {
  return GroupNormalization(o.integer("groups", 32), {.axis = o.axis("axis", -1),
                                                      .epsilon = o.number("epsilon", 1e-3),
                                                      .center = o.flag("center", true),
                                                      .scale = o.flag("scale", true),
                                                      .beta_regularizer = o.regularizer("beta_regularizer"),
                                                      .gamma_regularizer = o.regularizer("gamma_regularizer")});
}

/// One number, or a list of them.
std::vector<double> statistics(KerasOptions& o, const char* name) {
  const Json& value = o.raw(name);
  if (value.is_number()) return {value.get<double>()};
  if (value.is_array() && std::ranges::all_of(value, [](const Json& each) { return each.is_number(); }))
    return value.get<std::vector<double>>();
  o.problem("option `", name, "`: expected a number, or a list of them");
  return {1};
}
Module normalization(KerasOptions& o) {
  const int along = o.axis("axis", -1);
  if (!o.has("mean") || !o.has("variance")) return Normalization(along);
  if (along != -1) o.problem("option `axis`: expected -1, since mean and variance are given");
  return Normalization(statistics(o, "mean"), statistics(o, "variance"));
}

/// A dropout within a step, which cells here do not have.
void no_dropout(KerasOptions& o, const char* name) {
  if (o.number(name, 0) != 0 && !o.inference_only()) o.problem("there is no ", name);
}

template <class L> L recurrent(KerasOptions& o) {
  const auto units = o.integer("units");
  no_dropout(o, "recurrent_dropout");
  return L(units, {.return_sequences = o.flag("return_sequences", false),
                   .dropout = o.number("dropout", 0),
                   .go_backwards = o.flag("go_backwards", false),
                   .use_bias = o.flag("use_bias", true),
                   .unit_forget_bias = o.flag("unit_forget_bias", true),
                   .reset_after = o.flag("reset_after", true),
                   .activation = o.activation("activation", "tanh"),
                   .recurrent_activation = o.activation("recurrent_activation", "sigmoid"),
                   .kernel_initializer = no_draw,
                   .recurrent_initializer = no_draw,
                   .kernel_regularizer = o.regularizer("kernel_regularizer"),
                   .recurrent_regularizer = o.regularizer("recurrent_regularizer"),
                   .bias_regularizer = o.regularizer("bias_regularizer"),
                   .activity_regularizer = o.regularizer("activity_regularizer"),
                   .zero_output_for_mask = o.flag("zero_output_for_mask", false)});
}

Module relu_layer(KerasOptions& o) {
  ReLUOptions options{.negative_slope = o.number("negative_slope", 0), .threshold = o.number("threshold", 0)};
  if (o.has("max_value")) options.max_value = o.number("max_value", 0);
  return ReLU(options);
}

Module dense(KerasOptions& o) {
  const auto units = o.integer("units");
  return Dense(units, o.activation("activation", "linear"),
               {.use_bias = o.flag("use_bias", true),
                .kernel_initializer = no_draw,
                .kernel_regularizer = o.regularizer("kernel_regularizer"),
                .bias_regularizer = o.regularizer("bias_regularizer"),
                .activity_regularizer = o.regularizer("activity_regularizer")});
}

Module resizing(KerasOptions& o) {
  const auto height = o.integer("height"), width = o.integer("width");
  return Resizing(height, width, {.method = interpolation(o, "bilinear")});
}
Module reshape_layer(KerasOptions& o) {
  return Reshape(Shape(std::span<const std::int64_t>(o.integers("target_shape", {}))));
}

struct ActivationLayer : Module {
  explicit ActivationLayer(const Activation& f)
      : Module(layer_of("activation", f, {"Activation", {{"activation", f}}})) {}
};

template <class L, class Size> Make conv_lstm() {
  return [](KerasOptions& o) {
    constexpr std::size_t n = rank_of<Size>;
    const auto filters = o.integer("filters");
    for (const char* each : {"dropout", "recurrent_dropout"}) no_dropout(o, each);
    return L(filters, size_from<Size>(o.sizes("kernel_size", n, 1)),
             {.strides = size_from<Size>(o.sizes("strides", n, 1)),
              .padding = o.padding(),
              .dilation = size_from<Size>(o.sizes("dilation_rate", n, 1)),
              .return_sequences = o.flag("return_sequences", false),
              .go_backwards = o.flag("go_backwards", false),
              .use_bias = o.flag("use_bias", true),
              .unit_forget_bias = o.flag("unit_forget_bias", true),
              .activation = o.activation("activation", "tanh"),
              .recurrent_activation = o.activation("recurrent_activation", "sigmoid"),
              .kernel_initializer = no_draw,
              .recurrent_initializer = no_draw,
              .kernel_regularizer = o.regularizer("kernel_regularizer"),
              .recurrent_regularizer = o.regularizer("recurrent_regularizer"),
              .bias_regularizer = o.regularizer("bias_regularizer"),
              .activity_regularizer = o.regularizer("activity_regularizer")});
  };
}

Module einsum_dense(KerasOptions& o) {
  const std::string equation = o.word("equation", "");
  const std::vector<std::int64_t> sizes = o.open_sizes("output_shape");
  return EinsumDense(equation, sizes,
                     {.activation = o.activation("activation", "linear"),
                      .bias_axes = o.word("bias_axes", ""),
                      .kernel_initializer = no_draw,
                      .kernel_regularizer = o.regularizer("kernel_regularizer"),
                      .bias_regularizer = o.regularizer("bias_regularizer"),
                      .activity_regularizer = o.regularizer("activity_regularizer")});
}

/// A number f stands for [-f, f].
Factor range(KerasOptions& o, const char* name) {
  const Json& value = o.raw(name);
  if (value.is_number()) return value.get<double>();
  const std::vector<double> both = o.numbers(name, 2);
  return {both[0], both[1]};
}
RandomMoveOptions moves(KerasOptions& o) {
  if (o.word("interpolation", "bilinear") != "bilinear" && !o.inference_only())
    o.problem("option `interpolation`: expected bilinear; else load it with {.inference_only = true}");
  const std::string said = o.word("fill_mode", "reflect");
  for (const FillMode mode : {FillMode::reflect, FillMode::constant, FillMode::nearest}) {
    if (name_of(mode) != said) continue;
    if (mode == FillMode::constant && o.number("fill_value", 0) != 0 && !o.inference_only())
      o.problem("option `fill_value`: expected 0; else load it with {.inference_only = true}");
    return {.fill_mode = mode};
  }
  if (!o.inference_only())
    o.problem("option `fill_mode` is ", said,
              "; expected reflect, constant or nearest; else load it with {.inference_only = true}");
  return {};
}
RandomColorOptions colors(KerasOptions& o) {
  if (!o.has("value_range")) return {};
  const std::vector<double> both = o.numbers("value_range", 2);
  return {.value_range = {both[0], both[1]}};
}
Module random_flip(KerasOptions& o) {
  const std::string said = o.word("mode", "horizontal_and_vertical");
  for (const FlipMode mode : {FlipMode::horizontal, FlipMode::vertical, FlipMode::horizontal_and_vertical})
    if (name_of(mode) == said) return RandomFlip(mode);
  o.problem("option `mode` is ", said, "; expected horizontal, vertical or horizontal_and_vertical");
  return RandomFlip();
}
/// [lower, upper] stands for factors from 1 - lower to 1 + upper.
Module random_contrast(KerasOptions& o) {
  const Factor factor = range(o, "factor");
  const bool is_one = o.raw("factor").is_number();
  return RandomContrast(is_one ? factor : Factor(-factor.low, factor.high), colors(o));
}

}  // namespace

const std::map<std::string, MakeKerasLayer>& keras_layers() {
  static const std::map<std::string, Make> classes{
      {"Dense", dense},
      {"Flatten", of_nothing<Flatten>()},
      {"Dropout", of_rate<Dropout>("rate")},
      {"Embedding", embedding},
      {"Masking", of_rate<Masking>("mask_value")},
      {"Conv1D", convolution_of<Conv1D, Single>()},
      {"Conv2D", convolution_of<Conv2D, Pair>()},
      {"Conv3D", convolution_of<Conv3D, Triple>()},
      {"Conv1DTranspose", convolution_of<Conv1DTranspose, Single>()},
      {"Conv2DTranspose", convolution_of<Conv2DTranspose, Pair>()},
      {"Conv3DTranspose", convolution_of<Conv3DTranspose, Triple>()},
      {"DepthwiseConv1D", depthwise_of<DepthwiseConv1D, Single>()},
      {"DepthwiseConv2D", depthwise_of<DepthwiseConv2D, Pair>()},
      {"SeparableConv1D", convolution_of<SeparableConv1D, Single, true>()},
      {"SeparableConv2D", convolution_of<SeparableConv2D, Pair, true>()},
      {"MaxPooling1D", pooling_of<MaxPooling1D, Single>()},
      {"MaxPooling2D", pooling_of<MaxPooling2D, Pair>()},
      {"MaxPooling3D", pooling_of<MaxPooling3D, Triple>()},
      {"AveragePooling1D", pooling_of<AveragePooling1D, Single>()},
      {"AveragePooling2D", pooling_of<AveragePooling2D, Pair>()},
      {"AveragePooling3D", pooling_of<AveragePooling3D, Triple>()},
      {"GlobalMaxPooling1D", global_pooling<GlobalMaxPooling1D>()},
      {"GlobalMaxPooling2D", global_pooling<GlobalMaxPooling2D>()},
      {"GlobalMaxPooling3D", global_pooling<GlobalMaxPooling3D>()},
      {"GlobalAveragePooling1D", global_pooling<GlobalAveragePooling1D>()},
      {"GlobalAveragePooling2D", global_pooling<GlobalAveragePooling2D>()},
      {"GlobalAveragePooling3D", global_pooling<GlobalAveragePooling3D>()},
      {"AdaptiveAveragePooling1D", adaptive_pooling<AdaptiveAveragePooling1D, Single>()},
      {"AdaptiveAveragePooling2D", adaptive_pooling<AdaptiveAveragePooling2D, Pair>()},
      {"AdaptiveAveragePooling3D", adaptive_pooling<AdaptiveAveragePooling3D, Triple>()},
      {"AdaptiveMaxPooling1D", adaptive_pooling<AdaptiveMaxPooling1D, Single>()},
      {"AdaptiveMaxPooling2D", adaptive_pooling<AdaptiveMaxPooling2D, Pair>()},
      {"AdaptiveMaxPooling3D", adaptive_pooling<AdaptiveMaxPooling3D, Triple>()},
      {"ZeroPadding1D", by_sides<ZeroPadding1D, Single>("padding")},
      {"ZeroPadding2D", by_sides<ZeroPadding2D, Pair>("padding")},
      {"ZeroPadding3D", by_sides<ZeroPadding3D, Triple>("padding")},
      {"Cropping1D", by_sides<Cropping1D, Single>("cropping")},
      {"Cropping2D", by_sides<Cropping2D, Pair>("cropping")},
      {"Cropping3D", by_sides<Cropping3D, Triple>("cropping")},
      {"UpSampling1D", [](KerasOptions& o) { return UpSampling1D(size_from<Single>(o.sizes("size", 1, 2))); }},
      {"UpSampling2D",
       [](KerasOptions& o) {
         const Sizes size = o.sizes("size", 2, 2);
         return UpSampling2D(size_from<Pair>(size), {.interpolation = interpolation(o, "nearest")});
       }},
      {"UpSampling3D", [](KerasOptions& o) { return UpSampling3D(size_from<Triple>(o.sizes("size", 3, 2))); }},
      {"BatchNormalization", batch_normalization},
      {"LayerNormalization", layer_normalization},
      {"RMSNormalization",
       [](KerasOptions& o) {
         return RMSNormalization({.epsilon = o.number("epsilon", 1e-6), .axis = o.axes("axis", {-1})});
       }},
      {"GroupNormalization", group_normalization},
      {"UnitNormalization", [](KerasOptions& o) { return UnitNormalization(o.axes("axis", {-1})); }},
      {"Normalization", normalization},
      {"SimpleRNN", recurrent<SimpleRNN>},
      {"GRU", recurrent<GRU>},
      {"LSTM", recurrent<LSTM>},
      {"SpatialDropout1D", of_rate<SpatialDropout1D>("rate")},
      {"SpatialDropout2D", of_rate<SpatialDropout2D>("rate")},
      {"SpatialDropout3D", of_rate<SpatialDropout3D>("rate")},
      {"GaussianNoise", of_rate<GaussianNoise>("stddev")},
      {"GaussianDropout", of_rate<GaussianDropout>("rate")},
      {"AlphaDropout", of_rate<AlphaDropout>("rate")},
      {"Reshape", reshape_layer},
      {"Permute", [](KerasOptions& o) { return Permute(o.axes("dims", {})); }},
      {"RepeatVector", [](KerasOptions& o) { return RepeatVector(o.integer("n")); }},
      {"ReLU", relu_layer},
      {"LeakyReLU", [](KerasOptions& o) { return LeakyReLU(o.number("negative_slope", 0.3)); }},
      {"ELU", [](KerasOptions& o) { return ELU(o.number("alpha", 1)); }},
      {"PReLU", [](KerasOptions& o) { return PReLU(o.axes("shared_axes", {})); }},
      {"Softmax", [](KerasOptions& o) { return Softmax(o.axis("axis", -1)); }},
      {"Activation", [](KerasOptions& o) { return ActivationLayer(o.activation("activation", "linear")); }},
      {"Identity", of_nothing<Identity>()},
      {"Rescaling", [](KerasOptions& o) { return Rescaling(o.number("scale", 1), o.number("offset", 0)); }},
      {"Resizing", resizing},
      {"CenterCrop", [](KerasOptions& o) { return CenterCrop(o.integer("height"), o.integer("width")); }},
      {"CategoryEncoding",
       [](KerasOptions& o) {
         const OutputMode mode = output_mode_of(o.word("output_mode", "multi_hot"), "CategoryEncoding");
         return CategoryEncoding(o.integer("num_tokens"), {.output_mode = mode});
       }},
      {"EinsumDense", einsum_dense},
      {"ConvLSTM1D", conv_lstm<ConvLSTM1D, Single>()},
      {"ConvLSTM2D", conv_lstm<ConvLSTM2D, Pair>()},
      {"ConvLSTM3D", conv_lstm<ConvLSTM3D, Triple>()},
      {"ActivityRegularization",
       [](KerasOptions& o) { return ActivityRegularization({.l1 = o.number("l1", 0), .l2 = o.number("l2", 0)}); }},
      {"RandomFlip", random_flip},
      {"RandomTranslation",
       [](KerasOptions& o) {
         const Factor height = range(o, "height_factor"), width = range(o, "width_factor");
         return RandomTranslation(height, width, moves(o));
       }},
      {"RandomRotation", [](KerasOptions& o) { return RandomRotation(range(o, "factor"), moves(o)); }},
      {"RandomZoom",
       [](KerasOptions& o) {
         const Factor height = range(o, "height_factor");
         if (!o.has("width_factor")) return RandomZoom(height, moves(o));
         return RandomZoom(height, range(o, "width_factor"), moves(o));
       }},
      {"RandomCrop", [](KerasOptions& o) { return RandomCrop(o.integer("height"), o.integer("width")); }},
      {"RandomBrightness", [](KerasOptions& o) { return RandomBrightness(range(o, "factor"), colors(o)); }},
      {"RandomContrast", random_contrast},
  };
  return classes;
}

std::optional<RecurrentModule> keras_recurrent(const std::string& class_name, KerasOptions& options) {
  if (class_name == "SimpleRNN") return recurrent<SimpleRNN>(options);
  if (class_name == "GRU") return recurrent<GRU>(options);
  if (class_name == "LSTM") return recurrent<LSTM>(options);
  return {};
}

namespace {

AttentionOptions attention_options(KerasOptions& o, bool grouped) {
  o.flag("flash_attention", false);
  if (o.has("attention_axes") && o.integers("attention_axes", {}) != std::vector<std::int64_t>{1})
    o.problem("option `attention_axes`: expected [1]");
  AttentionOptions options{.dropout = o.number("dropout", 0),
                           .use_bias = o.flag("use_bias", true),
                           .kernel_regularizer = o.regularizer("kernel_regularizer"),
                           .bias_regularizer = o.regularizer("bias_regularizer"),
                           .activity_regularizer = o.regularizer("activity_regularizer")};
  if (!grouped && o.has("value_dim")) options.value_dim = o.integer("value_dim");
  return options;
}

}  // namespace

std::optional<MultiHeadAttention> keras_attention(const std::string& class_name, KerasOptions& o) {
  if (class_name == "MultiHeadAttention") {
    const auto heads = o.integer("num_heads"), width = o.integer("key_dim");
    return MultiHeadAttention(heads, width, attention_options(o, false));
  }
  if (class_name != "GroupedQueryAttention" && class_name != "GroupQueryAttention") return {};
  const auto width = o.integer("head_dim"), queries = o.integer("num_query_heads");
  const auto keys = o.integer("num_key_value_heads");
  return GroupedQueryAttention(width, queries, keys, attention_options(o, true));
}

std::optional<AttentionModule> keras_dot_attention(const std::string& class_name, KerasOptions& o, bool causal) {
  const bool scaled = o.flag("use_scale", class_name == "AdditiveAttention");
  const double dropout = o.number("dropout", 0);
  if (class_name == "AdditiveAttention")
    return AdditiveAttention({.use_scale = scaled, .dropout = dropout, .causal = causal});
  if (class_name != "Attention") return {};
  const std::string mode = o.word("score_mode", "dot");
  if (mode != "dot" && mode != "concat") o.problem("option `score_mode` is ", mode, "; expected dot or concat");
  return Attention({.use_scale = scaled,
                    .score_mode = mode == "concat" ? ScoreMode::concat : ScoreMode::dot,
                    .dropout = dropout,
                    .causal = causal});
}

std::optional<RecurrentCell> keras_cell(const std::string& class_name, KerasOptions& o) {
  const std::set<std::string> known{"SimpleRNNCell", "GRUCell", "LSTMCell"};
  if (!known.contains(class_name)) {
    o.problem("there is no such cell");
    return {};
  }
  const auto units = o.integer("units");
  for (const char* each : {"dropout", "recurrent_dropout"}) no_dropout(o, each);
  const CellOptions options{.use_bias = o.flag("use_bias", true),
                            .unit_forget_bias = o.flag("unit_forget_bias", true),
                            .reset_after = o.flag("reset_after", true),
                            .activation = o.activation("activation", "tanh"),
                            .recurrent_activation = o.activation("recurrent_activation", "sigmoid"),
                            .kernel_initializer = no_draw,
                            .recurrent_initializer = no_draw,
                            .kernel_regularizer = o.regularizer("kernel_regularizer"),
                            .recurrent_regularizer = o.regularizer("recurrent_regularizer"),
                            .bias_regularizer = o.regularizer("bias_regularizer")};
  if (class_name == "SimpleRNNCell") return SimpleRNNCell(units, options);
  if (class_name == "GRUCell") return GRUCell(units, options);
  return LSTMCell(units, options);
}

}  // namespace gradus
