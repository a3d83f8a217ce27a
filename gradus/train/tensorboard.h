/// Event files of a training for TensorBoard.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include "gradus/base/ranges.h"
#include "gradus/formats/event_file.h"
#include "gradus/train/callback.h"

namespace gradus {

/// Options of tensorboard.
struct TensorBoardOptions {
  int histogram_freq = 0;   // epochs between histograms of all variables; 0: none
  bool write_graph = true;  // write the model's inference graph, for models with one input
  std::int64_t update_freq =
      0;  // steps between written losses, each of which waits for its step; 0: losses of epochs only
  /// Writes further data at the ends of epochs, such as images; called with the writer of `directory`/train.
  std::function<void(SummaryWriter&, const EpochLog&)> write = {};
  static constexpr auto ranges() { return std::array{Allowed::not_negative("histogram_freq update_freq")}; }
};
/// Writes below `directory`, with Keras's tags. train/ has epoch_loss, epoch_learning_rate, epoch_seconds and
/// epoch_<metric>, histograms by the names of variables, the graph, and batch_loss by step. validation/ has epoch_loss
/// and epoch_<metric> of the validation set. Each training adds files of its own. Unavailable if they cannot be
/// written.
Callback tensorboard(const std::filesystem::path& directory, TensorBoardOptions options = {});

namespace detail {
/// The computation of a built module with one input, layer by layer; empty for one with several.
std::vector<ShownNode> shown_graph(const Module& model);
}  // namespace detail

}  // namespace gradus
