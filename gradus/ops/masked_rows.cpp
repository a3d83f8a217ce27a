/// Slices and joins of masks beside those of their tensors. Decision 371 has the reasons.
#include "gradus/ops/masked_rows.h"
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/graph/mask.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/shape.h"

namespace gradus {
namespace {

/// The mask of `x`, if it has the rows of x.
Tensor mask_by_rows(const Tensor& x) {
  const Tensor mask = SequenceMask::of(x);
  return mask.defined() && mask.shape()[0] == x.shape()[0] ? mask : Tensor();
}

/// True if x has a mask, or had one, that its rows cannot have.
bool has_lost_mask(const Tensor& x) {
  return SequenceMask::is_lost(x) || (SequenceMask::of(x).defined() && !mask_by_rows(x).defined());
}

/// The mask of a part beside one that has a mask of so many dimensions; empty: it cannot be told.
Tensor mask_beside(const Tensor& part, int rank) {
  if (const Tensor mask = mask_by_rows(part); mask.defined()) return mask.shape().rank() == rank ? mask : Tensor();
  if (part.shape().rank() < rank) return {};
  Shape places = part.shape();
  while (places.rank() > rank) places.erase(-1);
  return fill(places, 1, boolean);
}

}  // namespace

Tensor detail::choose_rows(const Tensor& condition, const Tensor& a, const Tensor& b) {
  Shape shape = condition.shape();
  while (shape.rank() < a.shape().rank()) shape.push_back(1);
  return where(reshape(condition, shape), a, b);
}

Tensor detail::masked_rows(const Tensor& x, std::int64_t begin, std::int64_t end) {
  const Tensor rows = x.rows(begin, end);
  if (!SequenceMask::is_used() || rows.node() == x.node()) return rows;
  if (const Tensor mask = mask_by_rows(x); mask.defined()) SequenceMask::set(rows, mask.rows(begin, end));
  else if (has_lost_mask(x)) SequenceMask::lose(rows);
  return rows;
}

Tensor detail::joined_rows(const std::vector<Tensor>& parts) {
  const Tensor joined = concat(parts);
  if (!SequenceMask::is_used() || parts.size() == 1) return joined;
  const auto known = std::ranges::find_if(parts, [](const Tensor& part) { return mask_by_rows(part).defined(); });
  if (known == parts.end()) {
    if (std::ranges::any_of(parts, has_lost_mask)) SequenceMask::lose(joined);
    return joined;
  }
  std::vector<Tensor> masks;
  for (const Tensor& part : parts) masks.push_back(mask_beside(part, mask_by_rows(*known).shape().rank()));
  if (std::ranges::all_of(masks, &Tensor::defined)) SequenceMask::set(joined, concat(masks));
  else SequenceMask::lose(joined);
  return joined;
}

MaskedRows::MaskedRows(In xs) : all_(xs.begin(), xs.end()) {
  if (!SequenceMask::is_used()) return;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (Tensor mask = mask_by_rows(xs[i]); mask.defined()) {
      masked_.push_back(i);
      all_.push_back(std::move(mask));
    } else if (has_lost_mask(xs[i])) {
      lost_.push_back(i);
    }
  }
}

In MaskedRows::take(In chunks) const {
  const std::size_t count = all_.size() - masked_.size();
  for (std::size_t k = 0; k < masked_.size(); ++k) SequenceMask::set(chunks[masked_[k]], chunks[count + k]);
  for (const std::size_t i : lost_) SequenceMask::lose(chunks[i]);
  return chunks.first(count);
}

}  // namespace gradus
