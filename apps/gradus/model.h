/// From a configuration to a model and the parts of its training.
#pragma once
#include "apps/gradus/config.h"
#include "apps/gradus/data.h"
#include "gradus/gradus.h"

namespace gradus::command {

/// Not built. The last layer computes in float32 unless it has a policy of its own. `outputs`: how many characters a
/// text has, or how many classes the data name. `facts`: the columns of a table and their words, where
/// data.category_encoding says that they are encoded. ConfigError if the layers do not fit the data.
Sequential make_model(const TrainConfig& config, std::int64_t outputs = 0, const DataFacts& facts = {});
/// A first layer `normalization` of a built model takes mean and variance of the training batches.
void adapt(Sequential& model, const TrainConfig& config, const Dataset<2>& training, const DataFacts& facts = {});
/// ConfigError if the loss is not for such labels.
LossFunction make_loss(const TrainConfig& config, const Data& data);
/// Accuracy of classes or mean absolute error of numbers, then train.metrics. ConfigError if one is not for such
/// labels.
std::vector<Metric> make_metrics(const TrainConfig& config, const Data& data);
/// The name of the first one: "accuracy".
std::string metric_of(const Data& data);

}  // namespace gradus::command
