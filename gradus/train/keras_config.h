/// The config.json of a `.keras` file, and the layers that it describes.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/nn/activation.h"
#include "gradus/nn/functional_layer.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/regularizers.h"
#include "gradus/train/keras_files.h"

namespace gradus {

struct ConfiguredModel {
  Sequential model;            // not built
  Spec input;                  // spec to build it with
  std::vector<Layer*> frozen;  // layers within that are not trained
};

struct ConfiguredGraph {
  std::shared_ptr<detail::FunctionalLayer> layer;  // not built
  bool is_sequential = false;                      // the config is that of its only layer
  std::vector<Layer*> frozen;                      // layers within that are not trained
};

/// The model of a config. DataError, opened by `file`, lists everything that is not known.
ConfiguredModel model_of_config(std::string_view json, const std::string& file, const LoadModelOptions& options);
/// The model of a config as a Functional. DataError as of model_of_config.
ConfiguredGraph graph_model_of_config(std::string_view json, const std::string& file, const LoadModelOptions& options);
/// The config of a model. InvalidArgument lists everything that Keras does not have.
std::string config_of_model(const Module& model);

/// Keras's activation of that name; empty if there is none.
std::optional<Activation> activation_named(std::string_view name);
/// The name of the activation that gives the same bits on numbers of all magnitudes.
std::optional<std::string> name_of(const Activation& activation);

/// Factors of L1 and L2, to twelve digits; empty if the penalty is another one.
struct PenaltyFactors {
  double l1 = 0, l2 = 0;
};
std::optional<PenaltyFactors> factors_of(const Regularizer& regularizer);

}  // namespace gradus
