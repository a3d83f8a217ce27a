/// What the layers of the library have in common: copying by their copy constructors, names, and layers within.
#pragma once
#include "gradus/nn/layer.h"
#include "gradus/nn/module.h"

namespace gradus {

/// A layer that can be copied by its copy constructor, and whose own fields stay as it was made and built.
template <class Self> struct Cloned : Layer {
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Self>(static_cast<const Self&>(*this)); }

 protected:
  bool has_fixed_setup() const override { return true; }
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

/// The layer behind `module`, which its own type says is an L. InvalidArgument where another kind of module was
/// assigned through its base.
template <class L> L& layer_as(const Module& module, std::string_view type) {
  Layer& layer = module.layer_behind();
  auto* known = dynamic_cast<L*>(&layer);
  require(known != nullptr, type, ": another kind of module was assigned to it, a ", layer.kind(),
          "; it can be called, but is no ", type, " any more");
  return *known;
}

/// The layer behind a module as a child of the layer that holds the module. An alias: the module keeps it.
inline std::shared_ptr<Layer> child_of(const Module& module) {
  return std::shared_ptr<Layer>(std::shared_ptr<void>(), &module.layer_behind());
}
/// A layer within another one is called by its kind, unless the user named it.
inline void name_by_kind(Layer& layer, const std::string& ending = {}) {
  if (!layer.has_own_name()) layer.rename(std::string(layer.kind()) + ending, false);
}

}  // namespace gradus
