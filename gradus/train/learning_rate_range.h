/// The learning-rate range test (Smith 2017): a short training with a learning rate that rises step by step. It shows
/// where the loss falls and where it explodes.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/data/dataset.h"
#include "gradus/formats/plot.h"
#include "gradus/function/traced_function.h"
#include "gradus/optim/optimizer.h"
#include "gradus/train/result_table.h"
#include "gradus/train/task.h"

namespace gradus {

/// Options of learning_rate_range_test.
struct LearningRateRangeOptions {
  double min_learning_rate = 1e-7, max_learning_rate = 10;  // rates of the first and of the last step
  std::int64_t steps = 100;                                 // the rate rises by the same factor from step to step
  /// Decay rate of the moving average of losses, with Adam's bias correction. The average lags the losses by about
  /// smoothing / (1 - smoothing) steps. So with smooth losses, less smoothing suggests a smaller, safer rate.
  double smoothing = 0.98;
  double stop_factor = 4;         // the test ends when the smoothed loss is this many times its least value so far
  std::uint64_t seed = 0;         // for dropout and the like; the program's other random numbers are not touched
  bool sample_weight = false;     // as in fit
  bool unbatched = false;         // as in fit
  FunctionOptions function = {};  // options of the compiled step
  static constexpr auto ranges() {
    return std::array{Allowed::positive("min_learning_rate max_learning_rate"), Allowed::at_least(3, "steps"),
                      Allowed::share_below_one("smoothing"), Allowed{"stop_factor", 1, Allowed::infinity, true},
                      Allowed::any("seed")};
  }
};

/// Result of the range test: one number per step, as far as the test went.
struct LearningRateRange {
  std::vector<double> learning_rate, loss, smoothed_loss;  // by step
  std::int64_t steps = 0;                                  // number of steps that were requested

  /// True if it ended early: the loss exploded, or was not finite, which is then the last one.
  bool has_diverged() const { return static_cast<std::int64_t>(loss.size()) < steps || ends_not_finite(); }
  /// The rate at which the smoothed loss fell most for a relative change of the rate, without the first tenth of
  /// `steps` and the last one (as PyTorch Lightning). InvalidArgument if fewer than three are left, or the loss never
  /// fell; the message names a range to try.
  double suggestion() const;
  /// A table with the columns step, learning_rate, loss, smoothed_loss.
  ResultTable table() const;
  /// Plots of both losses over the rate, with the suggestion marked if there is one.
  std::vector<PlotPanel> picture() const;

 private:
  bool ends_not_finite() const;
};

namespace detail {
LearningRateRange learning_rate_range_test(Module& model, Optimizer& optimizer, const Task& task,
                                           const Pipeline& dataset, const LearningRateRangeOptions& options);
/// A copy of `optimizer` for the copy of its model.
Optimizer optimizer_of_copy(const Optimizer& optimizer, const Module& copy);
/// InvalidArgument, which `what` opens, if copies of this handle are the same model.
void check_is_copy(const Module& model, const Module& copy, std::string_view what);
}  // namespace detail

/// Runs the test on copies: model and optimizer stay as they are. The rising rate replaces the optimizer's schedule;
/// parameter groups with rates of their own keep them. The data set is read again as often as the steps need. DataError
/// if it is empty, InvalidArgument for options that do not fit.
///
///   const auto range = learning_rate_range_test(model, optimizer, loss, dataset, {.max_learning_rate = 1});
///   optimizer.set_learning_rate(range.suggestion());
template <class M, class L, std::size_t N>
  requires LossFor<L, M, N>
LearningRateRange learning_rate_range_test(const M& model, const Optimizer& optimizer, const L& loss,
                                           const Dataset<N>& dataset, LearningRateRangeOptions options = {}) {
  M copy = model;
  detail::check_is_copy(model, copy, "learning_rate_range_test");
  Optimizer its_optimizer = detail::optimizer_of_copy(optimizer, copy);
  const detail::Task task = task_of<N>(copy, loss, options.sample_weight);
  return detail::learning_rate_range_test(copy, its_optimizer, task, dataset.pipeline(), options);
}

}  // namespace gradus
