/// Rows of tensors together with their masks (graph/mask.h), for work that takes a batch apart by itself. Where a
/// program takes rows, a plain op makes them, and the mask is lost.
#pragma once
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

namespace detail::inline rooms {

/// Rows of `a` where `condition`, [n], holds, else those of `b`.
Tensor choose_rows(const Tensor& condition, const Tensor& a, const Tensor& b);

/// x.rows(begin, end), with the mask of these rows.
Tensor masked_rows(const Tensor& x, std::int64_t begin, std::int64_t end);

/// `parts` joined along axis 0, with their masks. A part without a mask counts in all places; if no part has one, and a
/// part has lost it, the result has lost it.
Tensor joined_rows(const std::vector<Tensor>& parts);

/// Tensors for a loop over chunks of rows, followed by their masks.
class MaskedRows {
 public:
  explicit MaskedRows(In xs);
  In all() const { return all_; }
  /// Gives chunks of the tensors the chunks of the masks, and returns the former.
  In take(In chunks) const;

 private:
  std::vector<Tensor> all_;
  std::vector<std::size_t> masked_, lost_;
};

}  // namespace detail::inline rooms

}  // namespace gradus
