/// Masks (graph/mask.h) at the borders of bodies: the regions of calls, branches and loops.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/mask.h"
#include "gradus/graph/node.h"

namespace gradus {

/// Gives `inner`, the symbol of a body that stands for `outer`, its mask, which the body captures.
inline void take_mask(const Tensor& inner, const Tensor& outer) {
  if (const Tensor mask = SequenceMask::of(outer); mask.defined()) SequenceMask::set(inner, mask);
  else if (SequenceMask::is_lost(outer)) SequenceMask::lose(inner);
}
inline void take_masks(In inner, In outer) {
  if (!SequenceMask::is_used()) return;
  for (std::size_t i = 0; i < outer.size(); ++i) take_mask(inner[i], outer[i]);
}

/// Notes that the symbols of a loop's state have lost the masks that the state begins with: later states may have
/// others.
inline void lose_masks(In inner, In outer) {
  if (!SequenceMask::is_used()) return;
  for (std::size_t i = 0; i < outer.size(); ++i)
    if (SequenceMask::of(outer[i]).defined() || SequenceMask::is_lost(outer[i])) SequenceMask::lose(inner[i]);
}

/// Notes for `made`, the result of an op with bodies, the mask of `inner`, its value in each body: a mask that all have
/// from outside, by the number `began` of a node before them, or that it was lost.
inline void hand_out_mask(const Tensor& made, In inner, std::uint64_t began) {
  if (!SequenceMask::is_used()) return;
  const Tensor mask = SequenceMask::of(inner[0]);
  bool is_noted = false, is_same = mask.defined() && mask.node()->sequence < began;
  for (const Tensor& each : inner) {
    const Tensor own = SequenceMask::of(each);
    is_noted = is_noted || own.defined() || SequenceMask::is_lost(each);
    is_same = is_same && own.node() == mask.node();
  }
  if (is_same) SequenceMask::set(made, mask);
  else if (is_noted) SequenceMask::lose(made);
  else SequenceMask::set(made, {});
}

}  // namespace gradus
