/// The forms of the results of layers that number categories: Keras's output modes.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// The form of a result. `ids` is Keras's "int"; the other names are Keras's.
enum class OutputMode {
  ids,        // the numbers themselves, i64
  one_hot,    // f32, a row for each: in place of a last dimension of 1, else in a new one
  multi_hot,  // f32, a row for the last dimension, with 1 for each number that occurs
  count,      // f32, the number of occurrences of each number in the last dimension
  tf_idf,     // count times the inverse document frequency
};

/// Keras's name of a mode.
constexpr std::string_view name_of(OutputMode mode) {
  constexpr std::string_view names[] = {"int", "one_hot", "multi_hot", "count", "tf_idf"};
  return names[static_cast<int>(mode)];
}
/// The mode of such a name. DataError, opened by `source`, for another one.
OutputMode output_mode_of(std::string_view name, std::string_view source);

namespace detail::inline rooms {

/// Numbers of categories in the form of a mode, except tf_idf. Numbers outside [0, depth) are ignored. It consists of
/// ops, so it may be traced.
Tensor in_mode(const Tensor& ids, OutputMode mode, std::int64_t depth);

/// Numbers of samples of different lengths: one row for each element of `outer`.
struct IdRows {
  Shape outer;
  std::vector<std::vector<std::int64_t>> rows;
};
/// i64 [outer..., length]: each row cut off or padded with 0 at its end; without a length that of the longest.
Tensor padded_ids(const IdRows& ids, std::optional<std::int64_t> length);
/// in_mode() for rows that were made on the host; with tf_idf times `weights`, one for each number.
Tensor in_mode(const IdRows& ids, OutputMode mode, std::int64_t depth, const std::vector<float>& weights);

}  // namespace detail::inline rooms

}  // namespace gradus
