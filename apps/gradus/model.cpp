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

Module make_layer(const LayerConfig& layer) {
  if (layer.type == "flatten") return Flatten();
  if (layer.type == "dropout") return Dropout(layer.rate);
  if (layer.type == "batch_normalization")
    return BatchNormalization({.momentum = layer.momentum, .epsilon = layer.epsilon});
  return Dense(layer.units, activation_named(layer.activation), {.use_bias = layer.use_bias});
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
