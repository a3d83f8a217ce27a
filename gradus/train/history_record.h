/// Recording of epochs in a History.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "gradus/train/history.h"

namespace gradus {

/// The numbers of one epoch.
struct EpochNumbers {
  double loss;
  std::optional<double> validation_loss;
  double seconds;
  std::vector<std::pair<std::string, double>> numbers;  // by name
};

/// Adds an epoch. A number that appears for the first time is NaN in epochs before; one of a validation set has an
/// entry for each epoch with a validation.
void add_epoch(History& history, const EpochNumbers& epoch);

/// The names in the history of a program.
struct RecordedNames {
  std::vector<std::string> training = {};    // besides "loss"
  std::vector<std::string> validation = {};  // with their prefix; empty: there is no validation set
  bool validates_every_epoch = true;
  bool keeps_others = false;  // further names are found by the first step
};
/// A recorded history as this program would have it: without its seconds, with NaN for what was not recorded.
History completed_history(History recorded, const RecordedNames& names);

/// "validation_loss" for Keras's "val_loss"; other names are themselves.
std::string long_name(std::string_view name);

}  // namespace gradus
