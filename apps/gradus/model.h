/// From a configuration to a model, an optimizer and data sets.
#pragma once
#include <memory>
#include "apps/gradus/config.h"
#include "apps/gradus/text.h"
#include "gradus/gradus.h"

namespace gradus::command {

/// Not built. `characters`: how many a text has. ConfigError if the layers do not fit the data.
Sequential make_model(const TrainConfig& config, std::int64_t characters = 0);
Optimizer make_optimizer(const OptimizerConfig& config);

/// (images u8 [rows, columns], labels i32) as they lie in the files, or (characters i32 [context], the next ones).
struct Split {
  Dataset<2> raw;
  std::int64_t examples;
};
struct Data {
  Split train, test;
  Spec input;  // of the model: f32 [any_size, rows, columns] or i32 [any_size, context]
  std::optional<Vocabulary> vocabulary = {};
};
/// DataError or Unavailable say which file is wrong.
Data load_data(const DataConfig& config);
/// As load_data, with the vocabulary that a run was trained with.
Data load_data(const DataConfig& config, const std::filesystem::path& run);
/// How many examples are tested at once.
std::int64_t test_batch(const DataConfig& config);
/// Batches of normalised images and their labels, or of characters and the next ones.
Dataset<2> batches(const Dataset<2>& raw, const DataConfig& config, std::int64_t batch_size);

}  // namespace gradus::command
