/// Tuning of the batch size by measurement: the size beyond which larger ones bring no more throughput, within a memory
/// limit.
#pragma once
#include <functional>
#include "gradus/base/clock.h"
#include "gradus/base/ranges.h"
#include "gradus/train/learning_rate_range.h"

namespace gradus {

/// Options of tune_batch_size.
struct BatchSizeOptions {
  std::int64_t min_batch_size = 8;                      // first size; it doubles from here on
  std::int64_t max_batch_size = std::int64_t{1} << 20;  // largest size
  /// Limit in bytes on all tensors that are alive in the process, data sets in memory included; 0: the device's limit.
  std::size_t memory_limit = 0;
  std::int64_t steps = 5;      // steps measured at each size; the median counts
  double tolerance = 0.1;      // a size counts as good as a larger one if its throughput is lower by at most this share
  bool sample_weight = false;  // as in fit
  bool unbatched = false;      // as in fit: batches(size) makes batches by hand
  FunctionOptions function = {};                           // options of the compiled step
  std::function<double()> clock = detail::steady_seconds;  // in seconds; called before and after each step
  static constexpr auto ranges() {
    return std::array{Allowed::positive("min_batch_size max_batch_size steps"), Allowed::any("memory_limit"),
                      Allowed::share_below_one("tolerance")};
  }
};

/// Measurement of one batch size.
struct BatchSizeRow {
  std::int64_t batch_size;                      // examples per step
  double seconds = 0, examples_per_second = 0;  // per step, reading the batch included
  std::size_t peak_bytes = 0;                   // most bytes that were alive in the process
  std::string reason = {};                      // the reason why it was not measured; empty if it was
};

/// Result of tune_batch_size.
struct BatchSizes {
  std::vector<BatchSizeRow> rows = {};  // one per size
  std::int64_t batch_size = 0;          // the chosen size
  /// A table with the columns batch_size, seconds, examples_per_second, peak_bytes, reason.
  ResultTable table() const;
  /// Plots of throughput and memory over the batch size.
  std::vector<PlotPanel> picture() const;
};

namespace detail {
using BatchesOfSize = std::function<Pipeline(std::int64_t)>;
BatchSizes tune_batch_size(Module& model, Optimizer& optimizer, const Task& task, const BatchesOfSize& batches,
                           const BatchSizeOptions& options);
}  // namespace detail

/// Trains copies of model and optimizer for some steps on batches(size), a Dataset, for doubling sizes. It ends when
/// two doublings in a row bring less than the tolerance, memory is used up, or the data set is shorter than a batch. It
/// chooses the smallest size that is as good as the best. Model, optimizer and the program's random numbers stay as
/// they are. The peak memory is reset (reset_peak_memory), and the limit is set while it runs.
///
/// ResourceExhausted if the smallest size does not fit, DataError if the data set is shorter than it. InvalidArgument
/// unless 0 < min_batch_size <= max_batch_size, `steps` is positive and `tolerance` at least 0 and below 1, and if
/// batches(size) gives no batches.
///
///   const auto sizes = tune_batch_size(model, optimizer, loss,
///                                      [&](std::int64_t size) { return examples.shuffle().batch(size); });
template <class M, class L, class F>
  requires requires(const F& f) { f(std::int64_t{}).pipeline(); }
BatchSizes tune_batch_size(const M& model, const Optimizer& optimizer, const L& loss, const F& batches,
                           BatchSizeOptions options = {}) {
  using Batches = std::invoke_result_t<const F&, std::int64_t>;
  constexpr std::size_t fields = std::tuple_size_v<decltype(std::declval<const Batches&>().element_spec())>;
  static_assert(LossFor<L, M, fields>, "the loss cannot be called with y and what the model predicts");
  M copy = model;
  detail::check_is_copy(model, copy, "tune_batch_size");
  Optimizer its_optimizer = detail::optimizer_of_copy(optimizer, copy);
  const detail::Task task = task_of<fields>(copy, loss, options.sample_weight);
  return detail::tune_batch_size(
      copy, its_optimizer, task, [&](std::int64_t size) { return batches(size).pipeline(); }, options);
}

}  // namespace gradus
