/// The config.json of a `.keras` file and the layers that it stands for.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/nn/activation.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/regularizers.h"
#include "gradus/train/keras_files.h"

namespace gradus {

struct ConfiguredModel {
  Sequential model;            // not built
  Spec input;                  // to build it with
  std::vector<Layer*> frozen;  // layers within that are not trained
};

/// DataError lists all that is not known; `file` opens it.
ConfiguredModel model_of_config(std::string_view json, const std::string& file, const LoadModelOptions& options);
/// InvalidArgument lists all that Keras does not have.
std::string config_of_model(const Module& model);

/// Keras's activations of that name; none: there is no such.
std::optional<Activation> activation_named(std::string_view name);
/// The name of the one that gives the same bits on numbers of all magnitudes.
std::optional<std::string> name_of(const Activation& activation);

/// Factors of L1 and L2, to twelve digits; none: the penalty is another one.
struct PenaltyFactors {
  double l1 = 0, l2 = 0;
};
std::optional<PenaltyFactors> factors_of(const Regularizer& regularizer);

}  // namespace gradus
