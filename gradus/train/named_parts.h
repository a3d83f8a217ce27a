/// The parts of a training by the names that files and configurations use: each list has all that can be made from a
/// name, a task and the library's defaults. tests/house/check_names.py compares them with the headers.
#pragma once
#include <string>
#include <string_view>
#include <tuple>
#include <vector>
#include "gradus/nn/losses.h"
#include "gradus/nn/metrics.h"
#include "gradus/optim/optimizers.h"

namespace gradus {

/// A kind of optimizer, with its options.
template <class Kind_, class Options_> struct OptimizerKind {
  using Kind = Kind_;
  using Options = Options_;
  std::string_view name;
};

/// All optimizers of the library.
inline constexpr std::tuple optimizer_kinds{OptimizerKind<SGD, SGDOptions>{"sgd"},
                                            OptimizerKind<RMSprop, RMSpropOptions>{"rmsprop"},
                                            OptimizerKind<Adam, AdamOptions>{"adam"},
                                            OptimizerKind<AdamW, AdamWOptions>{"adamw"},
                                            OptimizerKind<Nadam, AdamOptions>{"nadam"},
                                            OptimizerKind<Adamax, AdamOptions>{"adamax"},
                                            OptimizerKind<Lamb, AdamOptions>{"lamb"},
                                            OptimizerKind<Adagrad, AdagradOptions>{"adagrad"},
                                            OptimizerKind<Adadelta, AdadeltaOptions>{"adadelta"},
                                            OptimizerKind<Ftrl, FtrlOptions>{"ftrl"},
                                            OptimizerKind<Lion, LionOptions>{"lion"}};

/// A loss with the library's defaults.
struct LossByName {
  std::string_view name;
  bool of_classes;  // y holds one class a row, the prediction its logits; else y has the prediction's shape
  LossFunction (
      *make)();  // losses of one-hot rows get them from y, losses of probabilities a softmax of the prediction
};
const std::vector<LossByName>& named_losses();

/// A metric with the library's defaults.
struct MetricByName {
  std::string_view name;
  bool of_classes;  // as of a loss
  Metric (*make)();
};
const std::vector<MetricByName>& named_metrics();

/// The names of Keras's activations, from which activation_named (keras_config.h) makes them.
std::vector<std::string> activation_names();

}  // namespace gradus
