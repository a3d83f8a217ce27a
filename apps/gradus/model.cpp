/// Names of the configuration become objects of the library.
#include "apps/gradus/model.h"
#include <functional>
#include <map>
#include "apps/gradus/blocks.h"

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

/// What the data and the layers before it tell of the next one of a text.
struct Place {
  std::int64_t characters, context;
  std::int64_t width = 0;  // of the last embedding or recurrent layer
};

template <class Network> Module make_recurrent(const LayerConfig& l, Place& place) {
  return Network(place.width = l.units, {.return_sequences = true, .dropout = l.rate});
}

Module make_block(const LayerConfig& l, Place& place) {
  require<ConfigError>(place.width > 0 && place.width % l.heads == 0, "layers: a transformer_block of ", l.heads,
                       " heads needs an embedding before it whose width they divide; it is ", place.width);
  return transformer_block({.heads = l.heads, .width = place.width, .inner = l.units, .dropout = l.rate});
}

using MakeOfText = std::function<Module(const LayerConfig&, Place&)>;
const std::map<std::string, MakeOfText>& makers_of_text() {
  static const std::map<std::string, MakeOfText> makers{
      {"embedding", [](const LayerConfig& l, Place& p) { return Embedding(p.characters, p.width = l.width); }},
      {"position_embedding", [](const LayerConfig&, Place& p) { return PositionEmbedding(p.context); }},
      {"transformer_block", make_block},
      {"gru", make_recurrent<GRU>},
      {"lstm", make_recurrent<LSTM>},
      {"scores", [](const LayerConfig&, Place& p) { return Dense(p.characters); }},
  };
  return makers;
}

Module make_layer(const LayerConfig& layer, Place& place) {
  if (const auto found = makers_of_text().find(layer.type); found != makers_of_text().end()) {
    require<ConfigError>(place.characters > 0, "layers: ", layer.type, " is a layer of texts; the data are images");
    return found->second(layer, place);
  }
  using Make = std::function<Module(const LayerConfig&)>;
  static const std::map<std::string, Make> makers{
      {"flatten", [](const LayerConfig&) { return Flatten(); }},
      {"reshape", [](const LayerConfig& l) { return Reshape(Shape(l.shape)); }},
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
      {"layer_normalization", [](const LayerConfig& l) { return LayerNormalization({.epsilon = l.epsilon}); }},
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

Sequential make_model(const TrainConfig& config, std::int64_t characters) {
  std::vector<Module> layers;
  Place place{characters, config.data.context};
  for (const LayerConfig& layer : config.layers) layers.push_back(make_layer(layer, place));
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

namespace {

/// The end of the text is for testing. Characters are those of the whole text, unless a run has told them.
Data load_text(const DataConfig& config, std::optional<Vocabulary> known) {
  const std::filesystem::path file = config.directory / config.text;
  const std::string source = "text " + file.string(), text = read_text(file);
  const Vocabulary vocabulary = known ? std::move(*known) : Vocabulary::of_text(text, source);
  const std::vector<std::int32_t> all = vocabulary.encode(text, source);
  const auto kept = static_cast<std::ptrdiff_t>(static_cast<double>(all.size()) * (1 - config.test_share));
  const auto split = [&](std::vector<std::int32_t> part, std::int64_t stride) {
    const Dataset<2> raw = windows(part, config.context, stride, source);
    return Split{raw, raw.cardinality().value()};
  };
  return {split({all.begin(), all.begin() + kept}, config.stride),
          split({all.begin() + kept, all.end()}, config.context),
          {i32, {any_size, config.context}},
          vocabulary};
}

}  // namespace

Data load_data(const DataConfig& config, const std::filesystem::path& run) {
  if (config.kind != "text") return load_data(config);
  return load_text(config, Vocabulary::read(run / "vocabulary.json"));
}

Data load_data(const DataConfig& config) {
  if (config.kind == "text") return load_text(config, {});
  Data data{load_split(config, config.train_images, config.train_labels),
            load_split(config, config.test_images, config.test_labels),
            {}};
  const Spec train = data.train.raw.element_spec()[0], test = data.test.raw.element_spec()[0];
  require<DataError>(train == test, "training images are ", train, ", test images ", test, "; they must agree");
  data.input = {f32, train.shape};
  data.input.shape.insert(0, any_size);
  return data;
}

std::int64_t test_batch(const DataConfig& config) { return config.kind == "text" ? 100 : 1000; }

Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size) {
  if (config.kind == "text") return raw.batch(batch_size);
  const double scale = 1 / (255 * config.deviation), shift = -config.mean / config.deviation;
  return raw.batch(batch_size).map([scale, shift](Tensor images, Tensor labels) {
    return std::pair{cast(images, f32) * scale + shift, labels};
  });
}

}  // namespace gradus::command
