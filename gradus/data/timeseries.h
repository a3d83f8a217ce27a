/// Sequences cut out of a series, as keras.utils.timeseries_dataset_from_array.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/data/dataset.h"

namespace gradus::data {

/// Options of timeseries_dataset_from_array.
struct TimeseriesOptions {
  std::int64_t sequence_stride = 1;              // rows from the begin of a sequence to that of the next
  std::int64_t sampling_rate = 1;                // rows from one in a sequence to the next in it
  std::optional<std::int64_t> batch_size = 128;  // none: elements are single sequences
  bool shuffle = false;                          // a new order of the sequences in each epoch
  std::optional<std::uint64_t> seed = {};        // of that order; none: one that follows from set_seed
  std::optional<std::int64_t> start_index = {};  // rows before it are not used
  std::optional<std::int64_t> end_index = {};    // rows from it on are not used
  static constexpr auto ranges() {
    return std::array{Allowed::positive("sequence_stride sampling_rate batch_size"), Allowed::any("seed"),
                      Allowed::not_negative("start_index"), Allowed::positive("end_index")};
  }
};

/// Sequences of `sequence_length` rows of `data`. Of the rows from start_index to end_index, sequence i has rows i *
/// sequence_stride, i * sequence_stride + sampling_rate ... Gives batches T [batch, sequence_length, ...]. They are
/// reached by index, so that shuffling, resuming and sharding cost nothing. InvalidArgument for numbers that do not fit
/// the rows.
Dataset<1> timeseries_dataset_from_array(const Tensor& data, std::int64_t sequence_length,
                                         TimeseriesOptions options = {});
/// The same with targets: that of a sequence is the row of `targets` where it begins. To predict the value that follows
/// each sequence: `timeseries_dataset_from_array(data, targets.rows(sequence_length, n), sequence_length)`. Sequences
/// without a target are left out.
Dataset<2> timeseries_dataset_from_array(const Tensor& data, const Tensor& targets, std::int64_t sequence_length,
                                         TimeseriesOptions options = {});

}  // namespace gradus::data
