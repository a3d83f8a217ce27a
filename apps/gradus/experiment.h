/// A training of a configuration, ready to begin: whoever wants another one reads the configuration with other values.
#pragma once
#include "apps/gradus/model.h"

namespace gradus::command {

struct Experiment {
  Sequential model;  // built
  Optimizer optimizer;
  LossFunction loss;
  Dataset<2> train, test;
  FitOptions options;  // epochs, metrics, parts of batches, validation; nothing is written or called yet
};
/// Sets the seed, so that equal configurations make equal experiments. The data are those of config.data.
Experiment make_experiment(const TrainConfig& config, const Data& data);

}  // namespace gradus::command
