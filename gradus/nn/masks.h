/// Masks in layers and losses. Tensors carry them (graph/mask.h).
#pragma once
#include <atomic>
#include <string_view>
#include "gradus/graph/mask.h"

namespace gradus {

namespace detail::inline rooms {

/// `mask` for these places, the first dimensions of a tensor. A mask with fewer dimensions is broadcast over the rest;
/// one with more stays as it is.
Tensor spread_mask(const Tensor& mask, const Shape& places);

/// A copy of `x` as a node of its own, without its mask.
Tensor without_mask(const Tensor& x);

/// A notice that is printed once.
class LostMaskNotice {
 public:
  LostMaskNotice() = default;
  LostMaskNotice(const LostMaskNotice&) {}
  LostMaskNotice& operator=(const LostMaskNotice&) { return *this; }
  /// If the mask of `x` was lost, prints that the result of `who` depends on it. `remedy`: another way to give it the
  /// mask.
  void note(std::string_view who, const Tensor& x, std::string_view remedy) const {
    if (SequenceMask::is_lost(x)) [[unlikely]]
      say(who, x, remedy);
  }

 private:
  void say(std::string_view who, const Tensor& x, std::string_view remedy) const;
  mutable std::atomic<bool> is_said_{false};
};

}  // namespace detail::inline rooms

}  // namespace gradus
