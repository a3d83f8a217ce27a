/// What the tests of input pipelines read with: small datasets of numbers, and passes as vectors.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/data/dataset.h"

namespace gradus {

using Numbers = std::vector<std::int32_t>;

inline Tensor tensor_of_numbers(const Numbers& values, const Shape& shape) {
  Ref<Buffer> buffer = Buffer::allocate(static_cast<std::int64_t>(values.size()) * 4);
  std::copy(values.begin(), values.end(), buffer->data<std::int32_t>());
  return Tensor::of_buffer({i32, shape}, std::move(buffer));
}

/// Row i of `width` numbers: i, i + 1000000, i + 2000000 ...
inline Tensor numbered_rows(std::int64_t rows, std::int64_t width) {
  Numbers values;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < width; ++k) values.push_back(static_cast<std::int32_t>(i + k * 1000000));
  return tensor_of_numbers(values, {rows, width});
}

/// One element: its numbers, behind its rank and dimensions.
inline Numbers described(const Tensor& x) {
  Numbers out{x.shape().rank()};
  for (const std::int64_t dim : x.shape()) out.push_back(static_cast<std::int32_t>(dim));
  for (const std::int32_t value : x.span<std::int32_t>()) out.push_back(value);
  return out;
}

using Elements = std::vector<Numbers>;

inline Elements read_all(const Dataset<1>& dataset, std::size_t most = 1000) {
  Elements out;
  for (auto x : dataset) {
    if (out.size() == most) break;
    out.push_back(described(x));
  }
  return out;
}

inline Elements tail(const Elements& all, std::size_t from) {
  return {all.begin() + static_cast<std::ptrdiff_t>(std::min(from, all.size())), all.end()};
}

/// The numbers of scalars and of batches of scalars, one behind the other.
inline Numbers values(const Dataset<1>& dataset) {
  Numbers out;
  for (auto x : dataset)
    for (const std::int32_t value : x.span<std::int32_t>()) out.push_back(value);
  return out;
}

inline Numbers counted(std::int32_t n) {
  Numbers out;
  for (std::int32_t i = 0; i < n; ++i) out.push_back(i);
  return out;
}

/// The message of the error of kind E that `work` throws; "nothing" if it throws none.
template <class E, class F> std::string message_of(F work) {
  try {
    work();
  } catch (const E& error) { return error.what(); }
  return "nothing";
}

}  // namespace gradus
