/// Rows: arrays with one row an element, and how rows are gathered from them.
#pragma once
#include <cstring>
#include <span>
#include <vector>
#include "gradus/data/element.h"

namespace gradus {

class Rows {
 public:
  /// `array` has its value, and at least one dimension.
  explicit Rows(Tensor array);

  std::int64_t count() const { return array_.shape()[0]; }
  const Spec& row_spec() const { return spec_; }
  const Tensor& array() const { return array_; }
  std::byte* row(std::int64_t index) const { return begin_ + index * bytes_; }
  /// Of all contents, the same on every run.
  std::uint64_t hash(std::uint64_t seed) const;
  /// A copy of one row.
  Tensor at(std::int64_t index) const;
  /// Copies of the rows at `indices`, one behind the other.
  void gather(std::span<const std::int64_t> indices, std::byte* out) const;

 private:
  Tensor array_;
  Spec spec_;
  std::byte* begin_;
  std::int64_t bytes_;
};

}  // namespace gradus
