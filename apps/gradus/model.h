/// From a configuration to a model, an optimizer and data sets.
#pragma once
#include <memory>
#include "apps/gradus/config.h"
#include "gradus/gradus.h"

namespace gradus::command {

/// Not built.
Sequential make_model(const TrainConfig& config);
Optimizer make_optimizer(const OptimizerConfig& config);

/// (images u8 [n, rows, columns], labels i32) as they lie in the files, and what the model sees of them.
struct Split {
  Dataset<2> raw;
  std::int64_t examples;
};
struct Data {
  Split train, test;
  Spec input;  // of the model: f32 [any_size, rows, columns]
};
/// DataError or Unavailable say which file is wrong.
Data load_data(const DataConfig& config);
/// Batches of normalised images and their labels.
Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size);

}  // namespace gradus::command
