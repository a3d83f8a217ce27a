/// One part after the other.
#include "apps/gradus/experiment.h"
#include "gradus/base/rooms.h"

namespace gradus::command {
namespace {

/// With weights, 1 where the data have none.
Dataset<3> weighted(const Split& split) {
  if (split.weighted) return *split.weighted;
  return split.raw.map([](Tensor x, Tensor y) { return std::tuple{x, y, ones({}, f32)}; });
}

/// The weights of the examples times those of their classes.
Dataset<3> with_class_weights(const Dataset<3>& batches, const std::vector<double>& weights) {
  const std::vector<float> narrow(weights.begin(), weights.end());
  const Tensor table = from_values(narrow, {static_cast<std::int64_t>(narrow.size())});
  return batches.map(
      [table](Tensor x, Tensor y, Tensor weight) { return std::tuple{x, y, gather(table, y) * weight}; });
}

/// Examples that are made once, if the configuration says so.
template <std::size_t N> Dataset<N> kept(const Dataset<N>& examples, const DataConfig& config) {
  return config.cache ? examples.cache() : examples;
}

Dataset<2> without_weights(const Batches& batches) {
  if (const auto* plain = std::get_if<Dataset<2>>(&batches)) return *plain;
  return std::get<Dataset<3>>(batches).map([](Tensor x, Tensor y, Tensor) { return std::pair{x, y}; });
}

/// Checks that the last layer agrees with the labels and class weights.
void check_classes(const TrainConfig& config, const Data& data, const Sequential& model) {
  if (!data.labels.empty() && data.facts.of_classes)
    check_labels(data, model.layer_behind().output_of(data.input).shape.back());
  if (config.class_weight.empty()) return;
  require<ConfigError>(data.facts.of_classes && !data.vocabulary,
                       "train.class_weight: the labels are no classes of examples");
  const std::int64_t classes = model.layer_behind().output_of(data.input).shape.back();
  require<ConfigError>(static_cast<std::int64_t>(config.class_weight.size()) == classes, "train.class_weight has ",
                       config.class_weight.size(), " numbers; expected one for each of the ", classes, " classes");
}

}  // namespace

bool is_weighted(const TrainConfig& config) {
  return !config.class_weight.empty() || !config.data.sample_weight.empty();
}

Batches training_batches(const TrainConfig& config, const Data& data, std::int64_t batch_size) {
  if (!is_weighted(config)) return batches(kept(data.train.raw, config.data).shuffle(), config.data, batch_size);
  const Dataset<3> all = batches(kept(weighted(data.train), config.data).shuffle(), config.data, batch_size);
  return config.class_weight.empty() ? all : with_class_weights(all, config.class_weight);
}

Batches test_batches(const TrainConfig& config, const Data& data) {
  if (!is_weighted(config)) return batches(data.test.raw, config.data, test_batch(config.data));
  return batches(weighted(data.test), config.data, test_batch(config.data));
}

Experiment make_experiment(const TrainConfig& config, const Data& data) {
  set_seed(static_cast<std::uint64_t>(config.seed));
  Sequential model = make_model(config, data.outputs(), data.facts);
  model.build(data.input);
  check_classes(config, data, model);
  Batches train = training_batches(config, data, config.batch_size);
  adapt(model, config, without_weights(train), data.facts);
  Optimizer optimizer = make_optimizer(config.optimizer);
  add_parameter_groups(optimizer, config.optimizer, model.trainable_variables());
  Batches test = test_batches(config, data);
  FitOptions options{.epochs = static_cast<int>(config.epochs),
                     .metrics = make_metrics(config, data),
                     .sample_weight = is_weighted(config),
                     .micro_batch = config.micro_batch,
                     .function = {.max_bytes = static_cast<std::size_t>(config.max_bytes),
                                  .disable = config.disable,
                                  .run_eagerly = config.run_eagerly}};
  if (config.validate_each_epoch)  // they are read in each epoch, then
    std::visit([&](const auto& all) { options.validation = kept(all, config.data); }, test);
  return {std::move(model), std::move(optimizer), make_loss(config, data),
          std::move(train), std::move(test),      std::move(options)};
}

}  // namespace gradus::command
