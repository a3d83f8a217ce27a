/// Names of the configuration become objects of the library.
#include "apps/gradus/model.h"
#include <algorithm>
#include <functional>
#include <map>
#include "apps/gradus/blocks.h"
#include "apps/gradus/category_columns.h"
#include "gradus/train/keras_config.h"
#include "gradus/train/named_parts.h"

namespace gradus::command {
namespace {

Activation activation_of(const LayerConfig& l) { return gradus::activation_named(l.activation).value(); }

template <class Named> const Named& of_name(const std::vector<Named>& all, const std::string& name) {
  return *std::ranges::find(all, name, &Named::name);
}

Policy policy_named(const std::string& name) {
  return name == "mixed_float16" ? mixed_float16 : name == "mixed_bfloat16" ? mixed_bfloat16 : float32;
}

Pair pair_of(const std::vector<std::int64_t>& sizes, std::int64_t otherwise) {
  return sizes.empty() ? Pair(otherwise) : Pair(sizes.at(0), sizes.at(1));
}

Padding padding_of(const LayerConfig& l) { return l.padding == "same" ? Padding::same : Padding::valid; }

Regularizer regularizer_of(const std::optional<PenaltyConfig>& penalty) {
  return penalty ? regularizers::L1L2(penalty->l1, penalty->l2) : Regularizer();
}

ConvOptions convolution_options(const LayerConfig& l) {
  return {.strides = pair_of(l.strides, 1),
          .padding = padding_of(l),
          .activation = activation_of(l),
          .use_bias = l.use_bias,
          .kernel_regularizer = regularizer_of(l.kernel_regularizer),
          .bias_regularizer = regularizer_of(l.bias_regularizer),
          .activity_regularizer = regularizer_of(l.activity_regularizer)};
}

template <class Pooling> Module make_pooling(const LayerConfig& l) {
  const Pair size = pair_of(l.pool_size, 2);
  const Pair strides = l.strides.empty() ? size : pair_of(l.strides, 1);
  return Pooling(size, {.strides = strides, .padding = padding_of(l)});
}

/// Facts that the data and the layers before it give to the next one.
struct Place {
  std::int64_t outputs, context;  // outputs: characters of a text, or classes
  bool of_text;
  std::int64_t width = 0;  // of the last embedding or recurrent layer
};

template <class Network> Module make_recurrent(const LayerConfig& l, Place& place) {
  return Network(place.width = l.units, {.return_sequences = true,
                                         .dropout = l.rate,
                                         .kernel_regularizer = regularizer_of(l.kernel_regularizer),
                                         .bias_regularizer = regularizer_of(l.bias_regularizer),
                                         .activity_regularizer = regularizer_of(l.activity_regularizer)});
}

Module make_block(const LayerConfig& l, Place& place) {
  require<ConfigError>(place.width > 0 && place.width % l.heads == 0, "layers: a transformer_block of ", l.heads,
                       " heads needs an embedding before it whose width they divide; it is ", place.width);
  return transformer_block({.heads = l.heads, .width = place.width, .inner = l.units, .dropout = l.rate});
}

using MakeOfText = std::function<Module(const LayerConfig&, Place&)>;
const std::map<std::string, MakeOfText>& makers_of_text() {
  static const std::map<std::string, MakeOfText> makers{
      {"embedding", [](const LayerConfig& l, Place& p) { return Embedding(p.outputs, p.width = l.width); }},
      {"position_embedding", [](const LayerConfig&, Place& p) { return PositionEmbedding(p.context); }},
      {"transformer_block", make_block},
      {"gru", make_recurrent<GRU>},
      {"lstm", make_recurrent<LSTM>},
  };
  return makers;
}

Module make_scores(const Place& place) {
  require<ConfigError>(place.outputs > 0,
                       "layers: scores has one for each class, and the data do not say how many "
                       "there are; take type = \"dense\" with units");
  return Dense(place.outputs);
}

bool normalizes(const TrainConfig& config) {
  return !config.layers.empty() && config.layers[0].type == "normalization";
}

Module make_layer(const LayerConfig& layer, Place& place) {
  if (const auto found = makers_of_text().find(layer.type); found != makers_of_text().end()) {
    require<ConfigError>(place.of_text, "layers: ", layer.type, " is a layer of texts; the data are none");
    return found->second(layer, place);
  }
  if (layer.type == "scores") return make_scores(place);
  using Make = std::function<Module(const LayerConfig&)>;
  static const std::map<std::string, Make> makers{
      {"normalization", [](const LayerConfig&) { return Normalization(); }},
      {"flatten", [](const LayerConfig&) { return Flatten(); }},
      {"reshape", [](const LayerConfig& l) { return Reshape(Shape(l.shape)); }},
      {"dense",
       [](const LayerConfig& l) {
         return Dense(l.units, activation_of(l),
                      {.use_bias = l.use_bias,
                       .kernel_regularizer = regularizer_of(l.kernel_regularizer),
                       .bias_regularizer = regularizer_of(l.bias_regularizer),
                       .activity_regularizer = regularizer_of(l.activity_regularizer)});
       }},
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
      {"layer_normalization", [](const LayerConfig& l) { return LayerNormalization({.epsilon = l.epsilon}); }},
      {"batch_normalization",
       [](const LayerConfig& l) { return BatchNormalization({.momentum = l.momentum, .epsilon = l.epsilon}); }},
  };
  return makers.at(layer.type)(layer);
}

}  // namespace

Sequential make_model(const TrainConfig& config, std::int64_t outputs, const DataFacts& facts) {
  std::vector<Module> layers;
  Place place{outputs, config.data.context, config.data.kind == "text"};
  const bool encodes = encodes_categories(config.data, facts);
  if (encodes) layers.push_back(category_columns(config.data, facts, normalizes(config)));
  for (const LayerConfig& layer : config.layers) {
    if (encodes && normalizes(config) && &layer == &config.layers[0]) continue;  // within the first one
    layers.push_back(make_layer(layer, place));
    if (!layer.policy.empty()) layers.back().set_policy(policy_named(layer.policy));
  }
  // Scores and numbers are in full precision: the loss compares them with labels.
  if (!config.layers.empty() && config.layers.back().policy.empty()) layers.back().set_policy(float32);
  return Sequential(std::move(layers), {.policy = policy_named(config.policy)});
}

void adapt(Sequential& model, const TrainConfig& config, const Dataset<2>& training, const DataFacts& facts) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (config.layers[i].type != "normalization") continue;
    require<ConfigError>(i == 0, "layers[", i, "]: normalization has to be the first layer: it is adapted to the data");
    Normalization adapted;
    const bool encodes = encodes_categories(config.data, facts);
    if (encodes && !has_numbers(config.data, facts)) continue;
    adapted.adapt(encodes ? numbers_of_columns(training, config.data, facts) : training);
    const Variables own = model.layer(0).variables(), found = adapted.variables();
    for (std::size_t v = 0; v < found.size(); ++v) own[v].assign(found[v].value());
  }
}

LossFunction make_loss(const TrainConfig& config, const Data& data) {
  const bool of_classes = data.facts.of_classes;
  const std::string by_default = of_classes ? "sparse_categorical_crossentropy" : "mean_squared_error";
  const LossByName& loss = of_name(named_losses(), config.loss == "automatic" ? by_default : config.loss);
  require<ConfigError>(loss.of_classes == of_classes, "train.loss is ", loss.name, ", but the labels were read as ",
                       of_classes ? "classes" : "numbers");
  return loss.make();
}

std::vector<Metric> make_metrics(const TrainConfig& config, const Data& data) {
  const bool of_classes = data.facts.of_classes;
  const std::string first = of_classes ? "sparse_categorical_accuracy" : "mean_absolute_error";
  std::vector<Metric> metrics{of_name(named_metrics(), first).make()};
  for (const std::string& name : config.metrics) {
    const MetricByName& metric = of_name(named_metrics(), name);
    require<ConfigError>(metric.of_classes == of_classes, "train.metrics has ", name, ", but the labels were read as ",
                         of_classes ? "classes" : "numbers");
    if (name != first) metrics.push_back(metric.make());
  }
  return metrics;
}

std::string metric_of(const Data& data) { return data.facts.of_classes ? "accuracy" : "mean absolute error"; }

}  // namespace gradus::command
