/// Parts that the layers of the library share: copying by copy constructors, names, and layers within layers.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/module.h"

namespace gradus {

/// A layer that is copied by its copy constructor, and whose own fields do not change after it was made and built.
template <class Self> struct Cloned : Layer {
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Self>(static_cast<const Self&>(*this)); }

 protected:
  bool has_fixed_setup() const override { return true; }
};

/// A Cloned layer that passes on the mask of its input.
template <class Self> struct ClonedMasked : Cloned<Self> {
  Tensor compute_mask(const Tensor&, const Tensor& mask) const override { return mask; }
};

/// `layer`, with the user's name for it if there is one.
template <class L> std::shared_ptr<L> named(std::shared_ptr<L> layer, const std::string& name) {
  if (!name.empty()) layer->rename(name, true);
  return layer;
}

/// The layer behind `module`, whose own type says that it is an L. InvalidArgument if another kind of module was
/// assigned through its base.
template <class L> L& layer_as(const Module& module, std::string_view type) {
  Layer& layer = module.layer_behind();
  auto* known = dynamic_cast<L*>(&layer);
  require(known != nullptr, type, ": another kind of module was assigned to it, a ", layer.kind(),
          "; it can be called, but is no ", type, " any more");
  return *known;
}

/// The layer behind a module, as a child of the layer that holds the module. An alias: the module keeps it.
inline std::shared_ptr<Layer> child_of(const Module& module) {
  return std::shared_ptr<Layer>(std::shared_ptr<void>(), &module.layer_behind());
}
/// Names a layer within another one by its kind, unless the user named it.
inline void name_by_kind(Layer& layer, const std::string& ending = {}) {
  if (!layer.has_own_name()) layer.rename(std::string(layer.kind()) + ending, false);
}

}  // namespace gradus
