/// Event files of a training for TensorBoard.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include "gradus/base/ranges.h"
#include "gradus/formats/event_file.h"
#include "gradus/train/callback.h"

namespace gradus {

struct TensorBoardOptions {
  int histogram_freq = 0;        // of all variables, at the end of every so many epochs; 0: none
  bool write_graph = true;       // of the model's inference; of models of one input
  std::int64_t update_freq = 0;  // the loss of every so many steps, which waits for them; 0: epochs alone
  /// Anything further at the ends of epochs, such as images: called with the writer of `directory`/train.
  std::function<void(SummaryWriter&, const EpochLog&)> write = {};
  static constexpr auto ranges() { return std::array{Allowed::not_negative("histogram_freq update_freq")}; }
};
/// Writes below `directory`, by the tags of Keras: train/ has epoch_loss, epoch_learning_rate, epoch_seconds and
/// epoch_<metric>, histograms by the names of variables, the graph, and batch_loss by step; validation/ has epoch_loss
/// and epoch_<metric> of the validation set. Each training adds files of its own. Unavailable if they cannot be
/// written.
Callback tensorboard(const std::filesystem::path& directory, TensorBoardOptions options = {});

namespace detail {
/// What a built module of one input computes, layer by layer; empty for one of several.
std::vector<ShownNode> shown_graph(const Module& model);
}  // namespace detail

}  // namespace gradus
