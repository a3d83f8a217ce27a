/// Windows over rows, and beside them every so many targets.
#include "gradus/data/timeseries.h"
#include <algorithm>
#include "gradus/base/error.h"
#include "gradus/base/rooms.h"

namespace gradus::data {
namespace {

constexpr std::string_view timeseries_name = "timeseries_dataset_from_array";

/// The rows that are used: [begin, end).
struct UsedRows {
  std::int64_t begin, end;
};

UsedRows used_rows(const Tensor& series, std::int64_t sequence_length, const TimeseriesOptions& options) {
  check_options(timeseries_name, options);
  require(series.shape().rank() > 0, timeseries_name, ": data is a scalar ", series.spec(),
          ": it has no rows along axis 0");
  const std::int64_t rows = series.shape()[0];
  require(sequence_length > 0, timeseries_name, ": sequence_length must be positive, got ", sequence_length);
  const auto require_less = [&](std::string_view name, std::int64_t value) {
    require(value < rows, timeseries_name, ": ", name, " must be less than the ", rows, " rows of data, got ", value);
  };
  require_less("sampling_rate", options.sampling_rate);
  require_less("sequence_stride", options.sequence_stride);
  const UsedRows used{options.start_index.value_or(0), options.end_index.value_or(rows)};
  require_less("start_index", used.begin);
  require(used.end <= rows, timeseries_name, ": end_index must be at most the ", rows, " rows of data, got ", used.end);
  require(used.begin < used.end, timeseries_name, ": end_index must be more than start_index, got ", used.end, " and ",
          used.begin);
  return used;
}

Pipeline rows_used(const Tensor& array, UsedRows used) {
  return slices({array}).skip(used.begin).take(used.end - used.begin);
}

Pipeline sequences(const Tensor& series, std::int64_t length, UsedRows used, const TimeseriesOptions& options) {
  const WindowingOptions windows{
      .shift = options.sequence_stride, .stride = options.sampling_rate, .drop_remainder = true};
  return rows_used(series, used).joined_windows(length, windows);
}

Pipeline arranged(Pipeline pipeline, const TimeseriesOptions& options) {
  if (options.shuffle) pipeline = pipeline.shuffle({.seed = options.seed});
  return options.batch_size ? pipeline.batch(*options.batch_size, {}) : pipeline;
}

}  // namespace

Dataset<1> timeseries_dataset_from_array(const Tensor& data, std::int64_t sequence_length, TimeseriesOptions options) {
  const UsedRows used = used_rows(data, sequence_length, options);
  return Dataset<1>(arranged(sequences(data, sequence_length, used, options), options));
}

Dataset<2> timeseries_dataset_from_array(const Tensor& data, const Tensor& targets, std::int64_t sequence_length,
                                         TimeseriesOptions options) {
  const UsedRows used = used_rows(data, sequence_length, options);
  require(targets.shape().rank() > 0, timeseries_name, ": targets is a scalar ", targets.spec(),
          ": it has no rows along axis 0");
  const Pipeline wanted = rows_used(targets, used).every(options.sequence_stride);
  return Dataset<2>(arranged(Pipeline::zip({sequences(data, sequence_length, used, options), wanted}), options));
}

}  // namespace gradus::data
