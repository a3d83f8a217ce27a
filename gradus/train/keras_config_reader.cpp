/// Keras's config.json as layers. A layer is a row of the table: its class, and what it is made of.
#include <algorithm>
#include <functional>
#include <map>
#include "gradus/nn/convolutions.h"
#include "gradus/nn/described.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/feature_normalization.h"
#include "gradus/nn/function_layer.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/noise.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/preprocessing.h"
#include "gradus/nn/rearranging.h"
#include "gradus/nn/recurrent.h"
#include "gradus/train/keras_config.h"
#include "gradus/train/keras_options.h"

namespace gradus {
namespace {

using Json = nlohmann::json;
using Make = std::function<Module(KerasOptions&)>;

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
template <class L> Make of_rate(const char* name) {
  return [name](KerasOptions& o) { return L(o.number(name, 0)); };
}
template <class L> Make of_nothing() {
  return [](KerasOptions&) { return L(); };
}

std::vector<int> axes(KerasOptions& o, const char* name, const std::vector<std::int64_t>& otherwise) {
  std::vector<int> all;
  for (const std::int64_t axis : o.integers(name, otherwise)) {
    if (axis < -Shape::max_rank || axis > Shape::max_rank)
      o.problem("option `", name, "` is ", axis, ", which is no axis");
    else all.push_back(static_cast<int>(axis));
  }
  return all;
}
int axis(KerasOptions& o, int otherwise) {
  const std::vector<int> all = axes(o, "axis", {otherwise});
  if (all.size() != 1) o.problem("option `axis`: expected one");
  return all.size() == 1 ? all[0] : otherwise;
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
  if (axis(o, -1) != -1) o.problem("option `axis`: expected -1, the last");
  if (!o.flag("trainable", true) && !o.inference_only())
    o.problem(
        "a frozen batch normalization goes by its moving statistics in Keras's training, by the batch's here; load "
        "it with {.inference_only = true}");
  return BatchNormalization({.momentum = o.number("momentum", 0.99),
                             .epsilon = o.number("epsilon", 1e-3),
                             .center = o.flag("center", true),
                             .scale = o.flag("scale", true),
                             .beta_regularizer = o.regularizer("beta_regularizer"),
                             .gamma_regularizer = o.regularizer("gamma_regularizer")});
}
Module layer_normalization(KerasOptions& o) {
  return LayerNormalization({.epsilon = o.number("epsilon", 1e-3),
                             .center = o.flag("center", true),
                             .scale = o.flag("scale", true),
                             .axis = axes(o, "axis", {-1}),
                             .beta_regularizer = o.regularizer("beta_regularizer"),
                             .gamma_regularizer = o.regularizer("gamma_regularizer")});
}
Module group_normalization(KerasOptions& o) {
  return GroupNormalization(o.integer("groups", 32), {.axis = axis(o, -1),
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
  const int along = axis(o, -1);
  if (!o.has("mean") || !o.has("variance")) return Normalization(along);
  if (along != -1) o.problem("option `axis`: expected -1, since mean and variance are given");
  return Normalization(statistics(o, "mean"), statistics(o, "variance"));
}

template <class L> Make recurrent_of() {
  return [](KerasOptions& o) {
    const auto units = o.integer("units");
    if (o.number("recurrent_dropout", 0) != 0 && !o.inference_only()) o.problem("there is no recurrent_dropout");
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
  };
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

const std::map<std::string, Make>& layer_classes() {
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
      {"ZeroPadding1D", [](KerasOptions& o) { return ZeroPadding1D(o.both_sides("padding", 1)[0]); }},
      {"ZeroPadding2D",
       [](KerasOptions& o) {
         const auto both = o.both_sides("padding", 2);
         return ZeroPadding2D(both[0], both[1]);
       }},
      {"ZeroPadding3D",
       [](KerasOptions& o) {
         const auto both = o.both_sides("padding", 3);
         for (const auto& [before, after] : both)
           if (before != after) o.problem("option `padding`: expected as much before as after");
         return ZeroPadding3D({both[0][0], both[1][0], both[2][0]});
       }},
      {"Cropping1D", [](KerasOptions& o) { return Cropping1D(o.both_sides("cropping", 1)[0]); }},
      {"Cropping2D",
       [](KerasOptions& o) {
         const auto both = o.both_sides("cropping", 2);
         return Cropping2D(both[0], both[1]);
       }},
      {"Cropping3D",
       [](KerasOptions& o) {
         const auto both = o.both_sides("cropping", 3);
         for (const auto& [before, after] : both)
           if (before != after) o.problem("option `cropping`: expected as much before as after");
         return Cropping3D({both[0][0], both[1][0], both[2][0]});
       }},
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
         return RMSNormalization({.epsilon = o.number("epsilon", 1e-6), .axis = axes(o, "axis", {-1})});
       }},
      {"GroupNormalization", group_normalization},
      {"UnitNormalization", [](KerasOptions& o) { return UnitNormalization(axes(o, "axis", {-1})); }},
      {"Normalization", normalization},
      {"SimpleRNN", recurrent_of<SimpleRNN>()},
      {"GRU", recurrent_of<GRU>()},
      {"LSTM", recurrent_of<LSTM>()},
      {"SpatialDropout1D", of_rate<SpatialDropout1D>("rate")},
      {"SpatialDropout2D", of_rate<SpatialDropout2D>("rate")},
      {"SpatialDropout3D", of_rate<SpatialDropout3D>("rate")},
      {"GaussianNoise", of_rate<GaussianNoise>("stddev")},
      {"GaussianDropout", of_rate<GaussianDropout>("rate")},
      {"AlphaDropout", of_rate<AlphaDropout>("rate")},
      {"Reshape", reshape_layer},
      {"Permute", [](KerasOptions& o) { return Permute(axes(o, "dims", {})); }},
      {"RepeatVector", [](KerasOptions& o) { return RepeatVector(o.integer("n")); }},
      {"ReLU", relu_layer},
      {"LeakyReLU", [](KerasOptions& o) { return LeakyReLU(o.number("negative_slope", 0.3)); }},
      {"ELU", [](KerasOptions& o) { return ELU(o.number("alpha", 1)); }},
      {"PReLU", [](KerasOptions& o) { return PReLU(axes(o, "shared_axes", {})); }},
      {"Softmax", [](KerasOptions& o) { return Softmax(axis(o, -1)); }},
      {"Activation", [](KerasOptions& o) { return ActivationLayer(o.activation("activation", "linear")); }},
      {"Identity", of_nothing<Identity>()},
      {"Rescaling", [](KerasOptions& o) { return Rescaling(o.number("scale", 1), o.number("offset", 0)); }},
      {"Resizing", resizing},
      {"CenterCrop", [](KerasOptions& o) { return CenterCrop(o.integer("height"), o.integer("width")); }},
  };
  return classes;
}

constexpr int deepest = 32;  // layers within layers

class ConfigReader {
 public:
  explicit ConfigReader(const LoadModelOptions& options) : inference_only_(options.inference_only) {}

  ConfiguredModel model(const Json& written) {
    if (!written.is_object() || written.value("class_name", Json()) != "Sequential") {
      problems_.push_back(text("the model is ",
                               written.is_object() ? shown(written.value("class_name", Json())) : "nothing",
                               ", expected a Sequential; write it as a Model, whose weights load_weights reads"));
      return {};
    }
    const Json& config = config_of(written);
    ConfiguredModel read{.model = sequential(config, 0)};
    read.input = input_of(written, config);
    read.frozen = std::move(frozen_);
    return read;
  }
  std::vector<std::string>& problems() { return problems_; }

 private:
  static std::string shown(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }
  const Json& config_of(const Json& written) {
    static const Json none = Json::object();
    const auto found = written.find("config");
    if (found != written.end() && found->is_object()) return *found;
    problems_.push_back("a layer without a config");
    return none;
  }
  static std::string name_in(const Json& config, const std::string& otherwise) {
    const auto name = config.find("name");
    return name != config.end() && name->is_string() ? name->get<std::string>() : otherwise;
  }

  /// One policy for all where all have one; else each its own.
  Sequential sequential(const Json& config, int depth) {
    std::vector<Module> layers;
    std::vector<Policy> policies;
    const auto listed = config.find("layers");
    if (listed == config.end() || !listed->is_array()) problems_.push_back("a Sequential without layers");
    else
      for (const Json& written : *listed) {
        if (written.is_object() && written.value("class_name", Json()) == "InputLayer") continue;
        if (auto read = layer(written, depth + 1)) {
          layers.push_back(std::move(read->first));
          policies.push_back(read->second);
        }
      }
    const bool one = std::ranges::all_of(policies, [&](const Policy& p) { return p == policies[0]; });
    for (std::size_t i = 0; i < layers.size() && !one; ++i)
      if (!layers[i].layer_behind().policy()) layers[i].set_policy(policies[i]);
    ModelOptions options{.policy = one && !policies.empty() ? policies[0] : float32};
    if (depth > 0) options.name = name_in(config, "");
    return Sequential(std::move(layers), options);
  }

  std::optional<std::pair<Module, Policy>> layer(const Json& written, int depth) {
    const Json kind = written.is_object() ? written.value("class_name", Json()) : Json();
    if (!kind.is_string() || depth > deepest) {
      problems_.push_back(depth > deepest ? "layers are nested too deeply" : "a layer without a class");
      return {};
    }
    const Json& config = config_of(written);
    const std::string class_name = kind.get<std::string>(), name = name_in(config, class_name);
    KerasOptions options(config, name + " (" + class_name + ")", inference_only_, problems_);
    try {
      std::optional<Module> made = make(class_name, config, options, depth);
      if (!made) return {};
      options.finish();
      made->set_name(name);
      if (!options.flag("trainable", true)) frozen_.push_back(&made->layer_behind());
      return std::pair(std::move(*made), options.policy());
    } catch (const InvalidArgument& error) { options.problem(error.what()); }
    return {};
  }

  std::optional<Module> make(const std::string& class_name, const Json& config, KerasOptions& options, int depth) {
    if (class_name == "Sequential") {
      for (const char* known : {"layers", "build_input_shape"}) options.raw(known);
      return sequential(config, depth);
    }
    if (class_name == "Bidirectional") return bidirectional(options, depth);
    if (class_name == "TimeDistributed") {
      auto inner = layer(options.raw("layer"), depth + 1);
      if (!inner) return {};
      return TimeDistributed(std::move(inner->first));
    }
    const auto found = layer_classes().find(class_name);
    if (found != layer_classes().end()) return found->second(options);
    options.problem("there is no such layer");
    return {};
  }

  std::optional<Module> bidirectional(KerasOptions& options, int depth) {
    const Json& written = options.raw("layer");
    auto inner = layer(written, depth + 1);
    const Json& other = options.raw("backward_layer");
    if (!other.is_null() && written.is_object() && mirrored(written) != plain(other))
      options.problem("option `backward_layer`: expected what `layer` is, the other way");
    const std::string mode = options.word("merge_mode", "concat");
    const std::map<std::string, Merge> modes{
        {"concat", Merge::concat}, {"sum", Merge::sum}, {"mul", Merge::mul}, {"ave", Merge::ave}};
    if (!modes.contains(mode)) options.problem("option `merge_mode` is ", mode, "; expected concat, sum, mul or ave");
    if (!inner || !modes.contains(mode)) return {};
    std::string name = inner->first.name();
    if (name.starts_with("forward_")) inner->first.set_name(name.substr(8));
    return Bidirectional(std::move(inner->first), {.merge_mode = modes.at(mode)});
  }
  /// What two layers that are alike have in common.
  Json plain(const Json& written) {
    Json config = config_of(written);
    for (const char* each : {"name", "seed", "dtype", "trainable", "zero_output_for_mask"}) config.erase(each);
    for (auto option = config.begin(); option != config.end();)
      option = option.key().ends_with("_initializer") ? config.erase(option) : std::next(option);
    return config;
  }
  Json mirrored(const Json& written) {
    Json config = plain(written);
    config["go_backwards"] = config.value("go_backwards", Json(false)) != true;
    return config;
  }

  Spec input_of(const Json& written, const Json& config) {
    const Json none = Json::array();
    DType dtype = f32;
    Json shape;
    const auto layers = config.find("layers");
    const bool any = layers != config.end() && layers->is_array() && !layers->empty() && (*layers)[0].is_object();
    const std::string first = any && (*layers)[0].value("class_name", Json()).is_string()
                                  ? (*layers)[0]["class_name"].get<std::string>()
                                  : "";
    if (first == "InputLayer") {
      const Json& input = config_of((*layers)[0]);
      shape = input.value("batch_shape", Json());
      dtype = dtype_named(input.value("dtype", Json()));
    } else {
      shape = config.value("build_input_shape", Json());
      const auto build = written.find("build_config");
      if (shape.is_null() && build != written.end() && build->is_object()) shape = build->value("input_shape", Json());
      if (first == "Embedding") dtype = i32;
    }
    return {dtype, shape_named(shape)};
  }
  DType dtype_named(const Json& name) {
    const std::map<std::string, DType> known{{"float64", f64}, {"float32", f32}, {"float16", f16}, {"bfloat16", bf16},
                                             {"int64", i64},   {"int32", i32},   {"int16", i16},   {"int8", i8},
                                             {"uint64", u64},  {"uint32", u32},  {"uint16", u16},  {"uint8", u8},
                                             {"bool", boolean}};
    const auto found = known.find(name.is_string() ? name.get<std::string>() : "float32");
    if (found != known.end()) return found->second;
    problems_.push_back("the input is of type " + shown(name) + "; expected a number type");
    return f32;
  }
  Shape shape_named(const Json& sizes) {
    Shape shape;
    if (!sizes.is_array() || sizes.empty() || sizes.size() > Shape::max_rank) {
      problems_.push_back("the shape of the input is " + shown(sizes) +
                          "; expected a list of sizes: build the model in Keras before it is saved");
      return {any_size};
    }
    for (const Json& size : sizes) {
      const bool known = size.is_number_unsigned() && size.get<std::uint64_t>() < std::uint64_t{1} << 40;
      if (!known && !size.is_null()) problems_.push_back("the shape of the input is " + shown(sizes));
      shape.push_back(known ? size.get<std::int64_t>() : any_size);
    }
    shape.set(0, any_size);
    return shape;
  }

  bool inference_only_;
  std::vector<std::string> problems_;
  std::vector<Layer*> frozen_;
};

}  // namespace

ConfiguredModel model_of_config(std::string_view json, const std::string& file, const LoadModelOptions& options) {
  const Json written = Json::parse(json, nullptr, false);
  require<DataError>(!written.is_discarded(), file, ": config.json is no JSON");
  ConfigReader reader(options);
  ConfiguredModel read = reader.model(written);
  std::string all;
  for (const std::string& problem : reader.problems()) all += "\n  " + problem;
  require<DataError>(all.empty(), file, ": this model cannot be made:", all);
  return read;
}

}  // namespace gradus
