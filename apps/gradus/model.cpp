/// Names of the configuration become objects of the library.
#include "apps/gradus/model.h"
#include <functional>
#include <map>

namespace gradus::command {
namespace {

Activation activation_named(const std::string& name) {
  static const std::map<std::string, Activation> known{
      {"linear", linear}, {"relu", relu}, {"tanh", tanh}, {"sigmoid", sigmoid},   {"gelu", gelu},
      {"silu", silu},     {"elu", elu},   {"selu", selu}, {"softplus", softplus}, {"leaky_relu", leaky_relu}};
  return known.at(name);
}

Pair pair_of(const std::vector<std::int64_t>& sizes, std::int64_t otherwise) {
  return sizes.empty() ? Pair(otherwise) : Pair(sizes.at(0), sizes.at(1));
}

Padding padding_of(const LayerConfig& l) { return l.padding == "same" ? Padding::same : Padding::valid; }

ConvOptions convolution_options(const LayerConfig& l) {
  return {.strides = pair_of(l.strides, 1),
          .padding = padding_of(l),
          .activation = activation_named(l.activation),
          .use_bias = l.use_bias};
}

template <class Pooling> Module make_pooling(const LayerConfig& l) {
  const Pair size = pair_of(l.pool_size, 2);
  const Pair strides = l.strides.empty() ? size : pair_of(l.strides, 1);
  return Pooling(size, {.strides = strides, .padding = padding_of(l)});
}

Module make_reshape(const LayerConfig& l) {
  return Lambda(
      [shape = l.shape](const Tensor& x) {
        Shape whole{x.shape()[0]};
        for (std::int64_t d : shape) whole.push_back(d);
        return reshape(x, whole);
      },
      "reshape");
}

Module make_layer(const LayerConfig& layer) {
  using Make = std::function<Module(const LayerConfig&)>;
  static const std::map<std::string, Make> makers{
      {"flatten", [](const LayerConfig&) { return Flatten(); }},
      {"reshape", make_reshape},
      {"dense",
       [](const LayerConfig& l) { return Dense(l.units, activation_named(l.activation), {.use_bias = l.use_bias}); }},
      {"conv2d",
       [](const LayerConfig& l) { return Conv2D(l.filters, pair_of(l.kernel_size, 3), convolution_options(l)); }},
      {"depthwise_conv2d",
       [](const LayerConfig& l) { return DepthwiseConv2D(pair_of(l.kernel_size, 3), convolution_options(l)); }},
      {"separable_conv2d",
       [](const LayerConfig& l) {
         return SeparableConv2D(l.filters, pair_of(l.kernel_size, 3), convolution_options(l));
       }},
      {"max_pooling2d", make_pooling<MaxPooling2D>},
      {"average_pooling2d", make_pooling<AveragePooling2D>},
      {"global_max_pooling2d", [](const LayerConfig&) { return GlobalMaxPooling2D(); }},
      {"global_average_pooling2d", [](const LayerConfig&) { return GlobalAveragePooling2D(); }},
      {"dropout", [](const LayerConfig& l) { return Dropout(l.rate); }},
      {"batch_normalization",
       [](const LayerConfig& l) { return BatchNormalization({.momentum = l.momentum, .epsilon = l.epsilon}); }},
  };
  return makers.at(layer.type)(layer);
}

Split load_split(const DataConfig& config, const std::string& images, const std::string& labels) {
  const Dataset<2> raw = data::from_idx(config.directory / images, config.directory / labels);
  const std::int64_t examples = raw.cardinality().value();
  require<DataError>(examples > 0, (config.directory / images).string(), ": there are no examples in it");
  return {raw, examples};
}

}  // namespace

Sequential make_model(const TrainConfig& config) {
  std::vector<Module> layers;
  for (const LayerConfig& layer : config.layers) layers.push_back(make_layer(layer));
  return Sequential(std::move(layers));
}

Optimizer make_optimizer(const OptimizerConfig& c) {
  if (c.type == "sgd")
    return SGD({.learning_rate = c.learning_rate,
                .momentum = c.momentum,
                .nesterov = c.nesterov,
                .weight_decay = c.weight_decay,
                .clipnorm = c.clipnorm,
                .global_clipnorm = c.global_clipnorm});
  if (c.type == "adamw")
    return AdamW({.learning_rate = c.learning_rate,
                  .weight_decay = c.weight_decay,
                  .beta_1 = c.beta_1,
                  .beta_2 = c.beta_2,
                  .epsilon = c.epsilon,
                  .clipnorm = c.clipnorm,
                  .global_clipnorm = c.global_clipnorm});
  return Adam({.learning_rate = c.learning_rate,
               .beta_1 = c.beta_1,
               .beta_2 = c.beta_2,
               .epsilon = c.epsilon,
               .weight_decay = c.weight_decay,
               .clipnorm = c.clipnorm,
               .global_clipnorm = c.global_clipnorm});
}

Data load_data(const DataConfig& config) {
  Data data{load_split(config, config.train_images, config.train_labels),
            load_split(config, config.test_images, config.test_labels),
            {}};
  const Spec train = data.train.raw.element_spec()[0], test = data.test.raw.element_spec()[0];
  require<DataError>(train == test, "training images are ", train, ", test images ", test, "; they must agree");
  data.input = {f32, train.shape};
  data.input.shape.insert(0, any_size);
  return data;
}

Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size) {
  const double scale = 1 / (255 * config.deviation), shift = -config.mean / config.deviation;
  return raw.batch(batch_size).map([scale, shift](Tensor images, Tensor labels) {
    return std::pair{cast(images, f32) * scale + shift, labels};
  });
}

}  // namespace gradus::command
