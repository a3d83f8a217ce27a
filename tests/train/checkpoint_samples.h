/// Models whose values say which checkpoint they are of.
#pragma once
#include <filesystem>
#include "gradus/nn/layers.h"
#include "gradus/ops/constant.h"
#include "gradus/optim/optimizers.h"
#include "gradus/train/checkpoints.h"
#include "tests/test_directory.h"

namespace gradus {

struct Numbered {
  Sequential model{Dense(64, relu), Dense(8), Dense(1)};
  Adam optimizer;

  Numbered() {
    model.build({f32, {any_size, 32}});
    optimizer.build(model.trainable_variables());
  }
  /// Every element of every floating variable.
  void set(double value) {
    for (Variable& variable : model.variables() + optimizer.variables())
      if (is_floating(variable.dtype())) variable.assign(full(variable.shape(), value, variable.dtype()));
  }
  /// The value of all elements; -1 if they are not one.
  double value() const {
    const double first = model.variables()[1].value().to_vector<float>()[0];
    for (const Variable& variable : model.variables() + optimizer.variables())
      if (is_floating(variable.dtype()) &&
          max_abs_difference(variable.value(), full(variable.shape(), first, variable.dtype())) != 0)
        return -1;
    return first;
  }
};

/// Small shards: a checkpoint has several files.
inline CheckpointOptions in_shards(const std::filesystem::path& directory) {
  return {.directory = directory, .max_to_keep = 2, .max_shard_bytes = 4096};
}

}  // namespace gradus
