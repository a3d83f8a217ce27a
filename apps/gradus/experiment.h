/// A training of a configuration, ready to begin: for another one, read the configuration with other values.
#pragma once
#include <variant>
#include "apps/gradus/model.h"

namespace gradus::command {

/// Batches of (x, y), or of (x, y, weight).
using Batches = std::variant<Dataset<2>, Dataset<3>>;

struct Experiment {
  Sequential model;  // built
  Optimizer optimizer;
  LossFunction loss;
  Batches train, test;  // of the same kind
  FitOptions options;   // epochs, metrics, parts of batches, validation; nothing is written or called yet
};
/// Sets the seed, so that equal configurations make equal experiments. The data are those of config.data.
Experiment make_experiment(const TrainConfig& config, const Data& data);
/// The batches for training, in a new order each epoch; weights are those of examples times those of classes.
Batches training_batches(const TrainConfig& config, const Data& data, std::int64_t batch_size);
/// The batches for testing, where classes count the same.
Batches test_batches(const TrainConfig& config, const Data& data);
/// True if examples or classes have weights.
bool is_weighted(const TrainConfig& config);

}  // namespace gradus::command
