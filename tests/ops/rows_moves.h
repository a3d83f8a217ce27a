/// What rows of ops that move elements about share: references by index, and rows of ops that compute nothing.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "tests/ops/rows.h"

namespace gradus::rows {

using Index = std::span<const std::int64_t>;

inline double element(const Array& x, Index index) {
  return x.values[static_cast<std::size_t>(broadcast_offset(x.shape, index))];
}
inline double element(const Array& x, std::initializer_list<std::int64_t> index) {
  return element(x, Index(index.begin(), index.size()));
}

/// The array whose elements are f(index).
inline Array array_of(const Shape& shape, const std::function<double(Index)>& f) {
  Array out{shape, {}};
  for_each_index(shape, [&](Index index, std::int64_t) { out.values.push_back(f(index)); });
  return out;
}

/// A row of an op that is exact; `shapes`: a case each. The oracle alone checks it if there is no reference.
inline Row exact_row(std::string name, std::vector<std::string> covers, std::function<Tensor(In)> apply,
                     std::vector<Operand> operands, std::vector<std::vector<Shape>> shapes,
                     std::function<Array(Arrays)> reference = {}) {
  Row row{.name = std::move(name),
          .covers = std::move(covers),
          .apply = std::move(apply),
          .operands = std::move(operands),
          .shapes = std::move(shapes),
          .dtypes = {f64, u8},
          .reference = std::move(reference)};
  row.tolerance = 0;
  return row;
}

/// Integers in [low, high] as an operand of indices.
inline Operand indices_in(double low, double high, DType t = i32) {
  return {.low = low, .high = high, .dtype = t, .has_gradient = false};
}

}  // namespace gradus::rows
