/// What the layers of the library have in common: copying by their copy constructors, and names that users give.
#pragma once
#include "gradus/nn/layer.h"

namespace gradus {

/// A layer that can be copied by its copy constructor.
template <class Self> struct Cloned : Layer {
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Self>(static_cast<const Self&>(*this)); }
};

/// One that hands on the mask of its input.
template <class Self> struct ClonedMasked : Cloned<Self> {
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override { return mask; }
};

/// `layer`, with the user's name for it if there is one.
template <class L> std::shared_ptr<L> named(std::shared_ptr<L> layer, const std::string& name) {
  if (!name.empty()) layer->rename(name, true);
  return layer;
}

}  // namespace gradus
