/// Rows: arrays with one row per element, and gathering of rows.
#pragma once
#include <cstring>
#include <span>
#include <vector>
#include "gradus/data/element.h"

namespace gradus {

/// An array in memory as rows.
class Rows {
 public:
  /// `array` has its value, and at least one dimension.
  explicit Rows(Tensor array);

  /// Number of rows.
  std::int64_t count() const { return array_.shape()[0]; }
  /// Spec of one row.
  const Spec& row_spec() const { return spec_; }
  /// The whole array.
  const Tensor& array() const { return array_; }
  /// The bytes of row `index`.
  std::byte* row(std::int64_t index) const { return begin_ + index * bytes_; }
  /// A hash of all contents, equal in every run.
  std::uint64_t hash(std::uint64_t seed) const;
  /// A hash of the first and the last row.
  std::uint64_t hash_of_ends(std::uint64_t seed) const;
  /// A copy of one row.
  Tensor at(std::int64_t index) const;
  /// Copies the rows at `indices` to `out`, contiguously.
  void gather(std::span<const std::int64_t> indices, std::byte* out) const;

 private:
  Tensor array_;
  Spec spec_;
  std::byte* begin_;
  std::int64_t bytes_;
};

}  // namespace gradus
