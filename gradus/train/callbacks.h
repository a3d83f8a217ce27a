/// Ready-made callbacks: learning rate on a plateau, best weights, logs, limits. callback.h has the interface and early
/// stopping, tensorboard.h event files.
#pragma once
#include <chrono>
#include <filesystem>
#include "gradus/base/ranges.h"
#include "gradus/train/callback.h"

namespace gradus {

/// Options of reduce_lr_on_plateau.
struct ReduceLROnPlateauOptions {
  double factor = 0.1;                        // factor on the learning rate, below 1
  int patience = 10;                          // consecutive epochs without improvement
  double min_delta = 1e-4;                    // least change that counts as an improvement
  int cooldown = 0;                           // epochs after a reduction that do not count
  double min_lr = 0;                          // least learning rate
  std::string monitor = {};                   // as in EarlyStoppingOptions
  MonitorMode mode = MonitorMode::automatic;  // whether less or more is better
  static constexpr auto ranges() {
    return std::array{Allowed::between_zero_and_one("factor"),
                      Allowed::not_negative("patience min_delta cooldown min_lr")};
  }
};
/// Multiplies the learning rate by `factor` when training does not improve any more. The first reduction replaces a
/// schedule by a number. InvalidArgument unless `factor` is between 0 and 1 and no other number is negative, and at the
/// end of an epoch without the number `monitor`.
Callback reduce_lr_on_plateau(ReduceLROnPlateauOptions options = {});

/// Options of model_checkpoint.
struct ModelCheckpointOptions {
  std::string monitor = {};                   // as in EarlyStoppingOptions
  MonitorMode mode = MonitorMode::automatic;  // whether less or more is better
  bool save_best_only = false;                // save only after the best epoch so far; else after every one
};
/// Saves weights as safetensors after each epoch; with save_best_only, after each epoch that is the best so far. The
/// file appears whole or not at all. "{epoch}" in its name becomes the number of the epoch, from 0. For trainings that
/// resume see FitOptions::checkpoints. InvalidArgument for a path that names no file, and at the end of an epoch
/// without the number `monitor`. Unavailable where the file may not be written, ResourceExhausted on a full disk.
Callback model_checkpoint(const std::filesystem::path& file, ModelCheckpointOptions options = {});

/// Writes one line per epoch: epoch, loss, validation_loss, metrics, learning_rate, seconds, with numbers in full
/// precision. Lines of epochs before the first one of this training stay, so a training that resumes continues its
/// file. InvalidArgument for a separator that occurs in numbers. Unavailable if the file cannot be written,
/// ResourceExhausted on a full disk, DataError if it exists and is of another kind.
Callback csv_logger(const std::filesystem::path& file, char separator = ',');
/// csv_logger with one JSON object per line. A number that is not finite is null.
Callback json_lines_logger(const std::filesystem::path& file);

/// Validates with the moving averages of an optimizer with {.use_ema = true}: they are in the model's variables while
/// the validation set is read, and not after it (Keras's SwapEMAWeights). InvalidArgument for an optimizer without
/// them.
Callback swap_ema_weights();

/// Ends the training after the step in which this time has passed since the begin of fit. InvalidArgument for a
/// negative time.
Callback time_limit(std::chrono::duration<double> limit);

/// A loss that is not finite ends the training with a notice instead of an error. In both cases model and optimizer are
/// as before that step.
Callback terminate_on_nan();

}  // namespace gradus
