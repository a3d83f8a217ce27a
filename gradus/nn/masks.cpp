/// Shapes of masks, and the notice of a mask that was lost.
#include "gradus/nn/masks.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/ops/shape.h"

namespace gradus {

Tensor detail::spread_mask(const Tensor& mask, const Shape& places) {
  if (!mask.defined() || mask.shape().rank() >= places.rank()) return mask;
  Tensor each = mask;
  while (each.shape().rank() < places.rank()) each = expand_dims(each, -1);
  return broadcast_to(each, places);
}

Tensor detail::without_mask(const Tensor& x) {
  const Tensor same = as_argument(x);
  SequenceMask::set(same, {});
  return same;
}

void LostMaskNotice::say(std::string_view who, const Tensor& x, std::string_view remedy) const {
  if (is_said_.exchange(true)) return;
  const std::string op = SequenceMask::lost_by(x);
  notice(text("gradus: ", who, " takes all places of ", x.spec(),
              " to count: it was computed from a tensor with a mask by ",
              op.empty() ? std::string("an op") : "`" + op + "`",
              ", and ops hand on no mask, layers do. Write that op as a layer (Add()(a, b), Multiply()(a, b), "
              "Concatenate()(a, b), Rescaling), or ",
              remedy, "; Lambda(f) drops a mask without this notice\n"));
}

}  // namespace gradus
