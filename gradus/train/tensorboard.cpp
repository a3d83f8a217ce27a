/// The numbers of fit as events.
#include "gradus/train/tensorboard.h"
#include "gradus/base/rooms.h"
#include <memory>
#include <optional>

namespace gradus {
namespace {

class TensorBoard {
 public:
  TensorBoard(std::filesystem::path directory, TensorBoardOptions options)
      : directory_(std::move(directory)), options_(std::move(options)) {}

  void on_train_begin(const TrainBegin& log) {
    train_.reset();
    validation_.reset();
    if (log.fast_dev_run) return;
    train_.emplace(directory_ / "train");
    if (!options_.write_graph) return;
    if (const auto nodes = detail::shown_graph(log.model); !nodes.empty()) train_->graph(nodes);
  }

  void on_step_end(const StepLog& log) {
    if (train_ && log.step % options_.update_freq == 0) train_->scalar("batch_loss", log.step, log.loss.item());
  }

  void on_epoch_end(const EpochLog& log) {
    if (!train_) return;
    train_->scalar("epoch_loss", log.epoch, log.loss);
    train_->scalar("epoch_learning_rate", log.epoch, log.optimizer.learning_rate());
    train_->scalar("epoch_seconds", log.epoch, log.seconds);
    if (log.validation_loss) validation().scalar("epoch_loss", log.epoch, *log.validation_loss);
    constexpr std::string_view prefix = "validation_";
    for (const auto& [name, value] : log.metrics) {
      if (name.starts_with(prefix)) validation().scalar("epoch_" + name.substr(prefix.size()), log.epoch, value);
      else train_->scalar("epoch_" + name, log.epoch, value);
    }
    if (options_.histogram_freq > 0 && log.epoch % options_.histogram_freq == 0)
      for (const Variable& variable : log.model.variables())
        train_->histogram(variable.name(), log.epoch, variable.value());
    if (options_.write) options_.write(*train_, log);
  }

 private:
  SummaryWriter& validation() {
    if (!validation_) validation_.emplace(directory_ / "validation");
    return *validation_;
  }

  std::filesystem::path directory_;
  TensorBoardOptions options_;
  std::optional<SummaryWriter> train_, validation_;
};

}  // namespace

Callback tensorboard(const std::filesystem::path& directory, TensorBoardOptions options) {
  require(!directory.empty(), "tensorboard: directory is empty; say where the event files shall be");
  check_options("tensorboard", options);
  const bool by_step = options.update_freq > 0;
  const auto state = std::make_shared<TensorBoard>(directory, std::move(options));
  Callback callback{.on_epoch_end = [state](const EpochLog& log) { state->on_epoch_end(log); },
                    .on_train_begin = [state](const TrainBegin& log) { state->on_train_begin(log); }};
  if (by_step) callback.on_step_end = [state](const StepLog& log) { state->on_step_end(log); };
  return callback;
}

}  // namespace gradus
