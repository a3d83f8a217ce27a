/// Doubling, measuring, and the decision to stop.
#include "gradus/train/batch_size.h"
#include <algorithm>
#include <cmath>
#include "gradus/graph/context.h"
#include "gradus/ops/random_state.h"
#include "gradus/tensor/memory.h"
#include "gradus/train/build.h"
#include "gradus/train/step.h"

namespace gradus {
namespace {

constexpr int warming_steps = 2;  // the first one traces, the second one compiles

void check(const BatchSizeOptions& o) {
  constexpr std::string_view tuning = "tune_batch_size: ";
  check_options("tune_batch_size", o);
  require(o.min_batch_size <= o.max_batch_size, tuning, "expected 0 < min_batch_size <= max_batch_size, got ",
          o.min_batch_size, " and ", o.max_batch_size);
  require(static_cast<bool>(o.clock), tuning, "there is no clock");
}

/// The process has another limit of memory while it lives, if `bytes` is one and less.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t bytes) : before_(memory_use().limit_bytes) {
    if (bytes > 0 && bytes < before_) set_memory_limit(default_device(), bytes);
  }
  ~MemoryLimit() { set_memory_limit(default_device(), before_); }
  MemoryLimit(const MemoryLimit&) = delete;

 private:
  std::size_t before_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Measuring {
 public:
  Measuring(Module& model, Optimizer& optimizer, const Task& task, const detail::BatchesOfSize& batches,
            const BatchSizeOptions& options)
      : model_(model), optimizer_(optimizer), task_(task), batches_(batches), options_(options) {}

  BatchSizes run() {
    int in_vain = 0;  // doublings in a row
    double best = 0;
    for (std::int64_t size = options_.min_batch_size; in_vain < 2; size *= 2) {
      BatchSizeRow row{size};
      if (!measure(row)) break;
      sizes_.rows.push_back(row);
      if (!row.reason.empty()) break;
      in_vain = row.examples_per_second * (1 - options_.tolerance) > best ? 0 : in_vain + 1;
      best = std::max(best, row.examples_per_second);
      if (size > options_.max_batch_size / 2) break;
    }
    choose(best);
    return std::move(sizes_);
  }

 private:
  /// True if there are batches of that size.
  bool measure(BatchSizeRow& row) {
    const MemoryLimit limit(options_.memory_limit);
    reset_peak_memory();
    try {
      const Pipeline dataset = batches_(row.batch_size);
      check_batched("tune_batch_size: what batches(size) gave", dataset.specs(), dataset.batchings(),
                    options_.unbatched);
      build_for_elements(dataset, CallMode::training, task_.build);
      bool whole = false;
      optimizer_.with_steps_that_end([&] { whole = time_steps(dataset, row); });
      if (!whole) return false;
      row.examples_per_second = static_cast<double>(row.batch_size) / row.seconds;
    } catch (const ResourceExhausted& error) { row.reason = error.what(); }
    row.peak_bytes = memory_use().peak_bytes;
    return true;
  }

  /// True if the batches are as large as they shall be.
  bool time_steps(const Pipeline& dataset, BatchSizeRow& row) {
    FunctionOptions function = with_signature(options_.function, dataset.specs());
    if (function.name.empty()) function.name = "tune_batch_size";
    TrainStep step(model_, optimizer_, task_, {.gives_loss = true, .function = std::move(function)});
    std::vector<double> seconds;
    auto reading = dataset.epoch(0).begin();
    for (std::int64_t i = 0; i < warming_steps + options_.steps; ++i) {
      const double begin = options_.clock();
      if (i > 0) reading->advance();
      if (reading->at_end() || rows_of(reading->element()) < row.batch_size) {  // a smaller last batch
        if (i == 0) return false;
        reading = dataset.epoch(0).begin();
      }
      (void)step(reading->element()).value().item();
      seconds.push_back(options_.clock() - begin);
    }
    row.seconds = median({seconds.begin() + warming_steps, seconds.end()});
    return true;
  }
  static std::int64_t rows_of(const Tensors& element) {
    const Shape& shape = element[0].shape();
    require(shape.rank() > 0, "tune_batch_size: elements are no batches: the first field is ", element[0].spec());
    return shape[0];
  }

  void choose(double best) {
    require<DataError>(!sizes_.rows.empty(), "tune_batch_size: the data set has no batch of min_batch_size, ",
                       options_.min_batch_size, " examples");
    const BatchSizeRow& first = sizes_.rows.front();
    require<ResourceExhausted>(first.reason.empty(), "tune_batch_size: the smallest size, ", first.batch_size,
                               ", has no room: ", first.reason);
    for (const BatchSizeRow& row : sizes_.rows)
      if (sizes_.batch_size == 0 && row.examples_per_second >= best * (1 - options_.tolerance))
        sizes_.batch_size = row.batch_size;
  }

  Module& model_;
  Optimizer& optimizer_;
  const Task& task_;
  const detail::BatchesOfSize& batches_;
  const BatchSizeOptions& options_;
  BatchSizes sizes_;
};

}  // namespace

ResultTable BatchSizes::table() const {
  ResultTable table{{"batch_size", "seconds", "examples_per_second", "peak_bytes", "reason"}};
  using Cell = ResultTable::Cell;
  for (const BatchSizeRow& row : rows) {
    const bool measured = row.reason.empty();
    table.rows.push_back({row.batch_size, measured ? Cell(row.seconds) : Cell(),
                          measured ? Cell(row.examples_per_second) : Cell(), static_cast<std::int64_t>(row.peak_bytes),
                          row.reason});
  }
  return table;
}

std::vector<PlotPanel> BatchSizes::picture() const {
  PlotPanel speed{.title = "throughput", .x_label = "batch size", .y_label = "examples a second", .log_x = true};
  PlotPanel memory{.title = "memory", .x_label = "batch size", .y_label = "peak MiB", .log_x = true};
  PlotSeries throughput, peak;
  for (const BatchSizeRow& row : rows) {
    if (!row.reason.empty()) continue;
    throughput.x.push_back(static_cast<double>(row.batch_size));
    throughput.y.push_back(row.examples_per_second);
    peak.y.push_back(static_cast<double>(row.peak_bytes) / static_cast<double>(MiB));
  }
  peak.x = throughput.x;
  speed.mark = memory.mark = static_cast<double>(batch_size);
  speed.mark_label = memory.mark_label = std::to_string(batch_size);
  speed.series = {std::move(throughput)};
  memory.series = {std::move(peak)};
  return {speed, memory};
}

BatchSizes detail::tune_batch_size(Module& model, Optimizer& optimizer, const Task& task, const BatchesOfSize& batches,
                                   const BatchSizeOptions& options) {
  check(options);
  const Untraced outside;
  std::uint64_t state = random_state_of(0);
  const SeedScope seeds(state);
  return Measuring(model, optimizer, task, batches, options).run();
}

}  // namespace gradus
