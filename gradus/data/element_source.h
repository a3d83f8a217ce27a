/// Sources of elements outside of the library, such as an iterator of another language.
#pragma once
#include <optional>
#include <span>
#include <vector>
#include "gradus/data/pipeline.h"

namespace gradus {

/// Room for elements side by side, one array per field, which a source fills in order.
class detail::ElementRows {
 public:
  /// `specs`: of an element, without any_size. `out[field]`: contiguous memory for `count` elements.
  ElementRows(const std::vector<Spec>& specs, std::int64_t count, std::span<std::byte* const> out)
      : specs_(specs), count_(count), next_(out.begin(), out.end()) {}
  bool is_full() const { return made_ == count_; }
  /// The number of elements that are whole.
  std::int64_t made() const { return made_; }
  const Spec& spec(std::size_t field) const { return specs_[field]; }
  /// Where the bytes of a field of the element that comes next belong.
  std::byte* place(std::size_t field) const { return next_[field]; }
  /// Copies a tensor there. InvalidArgument if it is not as the spec says.
  void put(std::size_t field, const Tensor& value) const;
  /// Ends an element whose fields are all there.
  void end_element();

 private:
  const std::vector<Spec>& specs_;
  const std::int64_t count_;
  std::int64_t made_ = 0;
  std::vector<std::byte*> next_;
};

/// Gives elements in order, from the first one on.
class detail::ElementSource {
 public:
  virtual ~ElementSource() = default;
  /// The next element; none at the end.
  virtual std::optional<Tensors> next() = 0;
  /// Fills the rows with the elements that come next. Rows that are not full mean the end. A source for which a call
  /// costs much, such as the wait for a lock, overrides it.
  virtual void write(ElementRows& rows);
};

using detail::ElementRows;
using detail::ElementSource;

}  // namespace gradus
