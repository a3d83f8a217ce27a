/// Callbacks that are ready: learning rate on a plateau, best weights, logs, limits. See callback.h for one's own and
/// for early stopping, tensorboard.h for event files.
#pragma once
#include <chrono>
#include <filesystem>
#include "gradus/base/ranges.h"
#include "gradus/train/callback.h"

namespace gradus {

struct ReduceLROnPlateauOptions {
  double factor = 0.1;  // of the learning rate, below 1
  int patience = 10;    // epochs in a row without an improvement
  double min_delta = 1e-4;
  int cooldown = 0;  // epochs after a reduction that are not counted
  double min_lr = 0;
  std::string monitor = {};  // as in EarlyStoppingOptions
  MonitorMode mode = MonitorMode::automatic;
  static constexpr auto ranges() {
    return std::array{Allowed::between_zero_and_one("factor"),
                      Allowed::not_negative("patience min_delta cooldown min_lr")};
  }
};
/// Multiplies the learning rate by `factor` when training gets no better. The first reduction sets a number in place of
/// a schedule. InvalidArgument unless `factor` is between 0 and 1 and no other number is negative, and at the end of an
/// epoch that has no number `monitor`.
Callback reduce_lr_on_plateau(ReduceLROnPlateauOptions options = {});

struct ModelCheckpointOptions {
  std::string monitor = {};  // as in EarlyStoppingOptions
  MonitorMode mode = MonitorMode::automatic;
  bool save_best_only = true;
};
/// Weights as safetensors after each epoch that is the best so far; with save_best_only = false after every one. The
/// file appears whole or not at all. "{epoch}" in its name becomes the number of the epoch, from 0. For a training that
/// resumes see FitOptions::checkpoints. InvalidArgument for a path that names no file, and at the end of an epoch that
/// has no number `monitor`; Unavailable where the file may not be written, ResourceExhausted on a full disk.
Callback model_checkpoint(const std::filesystem::path& file, ModelCheckpointOptions options = {});

/// A line an epoch: epoch, loss, validation_loss, metrics, learning_rate, seconds; numbers in full precision. The lines
/// of epochs before the first one of this training stay, so that a training that resumes goes on in its file.
/// InvalidArgument for a separator that numbers hold. Unavailable if the file cannot be written, ResourceExhausted on a
/// full disk, DataError if it is there and of another kind.
Callback csv_logger(const std::filesystem::path& file, char separator = ',');
/// The same as one JSON object a line; a number that is not finite is null.
Callback json_lines_logger(const std::filesystem::path& file);

/// Ends the training with the step in which the time is up, counted from the begin of fit. InvalidArgument for a
/// negative time.
Callback time_limit(std::chrono::duration<double> limit);

/// A loss that is not finite ends the training with a line on stderr instead of an error. Model and optimizer are as
/// before that step either way.
Callback terminate_on_nan();

}  // namespace gradus
