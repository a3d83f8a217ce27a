/// Masks in layers and losses. Tensors carry them (graph/mask.h).
#pragma once
#include <atomic>
#include <string_view>
#include "gradus/graph/mask.h"

namespace gradus {

/// `mask` for these places, the first dimensions of a tensor. If the mask has fewer dimensions, it holds for all places
/// within one; if it has more, it stays as it is.
Tensor spread_mask(const Tensor& mask, const Shape& places);

/// `x` as a node of its own, without its mask.
Tensor without_mask(const Tensor& x);

/// A notice that is given once.
class LostMaskNotice {
 public:
  LostMaskNotice() = default;
  LostMaskNotice(const LostMaskNotice&) {}
  LostMaskNotice& operator=(const LostMaskNotice&) { return *this; }
  /// If the mask of `x` was lost, `who`, whose result depends on it, says so. `remedy`: how it gets the mask otherwise.
  void note(std::string_view who, const Tensor& x, std::string_view remedy) const {
    if (SequenceMask::is_lost(x)) [[unlikely]]
      say(who, x, remedy);
  }

 private:
  void say(std::string_view who, const Tensor& x, std::string_view remedy) const;
  mutable std::atomic<bool> is_said_{false};
};

}  // namespace gradus
