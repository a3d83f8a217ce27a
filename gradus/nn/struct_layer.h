/// StructLayer: a layer that holds a user's struct of layers, and all code that depends on the struct's type.
#pragma once
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include "gradus/base/type_name.h"
#include "gradus/nn/field_copies.h"
#include "gradus/nn/net_layer.h"

namespace gradus::detail {

/// Replaces `net` by `fresh`, in place. False: it cannot.
template <class Net> bool replace_in_place(Net& net, Net& fresh) {
  if constexpr (std::is_nothrow_move_constructible_v<Net>) {
    std::destroy_at(&net);
    std::construct_at(&net, std::move(fresh));
    return true;
  }
  return false;
}

/// `Self` is the derived layer.
template <class Net, class Self> struct StructLayer : NetLayer {
  StructLayer() : net() { adopt_fields(); }
  explicit StructLayer(Net&& n) : net(std::move(n)) {
    FieldCopies::after_move(n, net);
    adopt_fields();
  }
  StructLayer(const StructLayer& other) : NetLayer(other), net(copied(other.net)) {}

  std::shared_ptr<Layer> clone() const override { return copied_net(static_cast<const Self&>(*this)); }
  std::string struct_name() const override { return type_name(typeid(Net).name()); }
  void visit(const FieldVisitor& visitor) const override { visit_fields(net, visitor); }
  void add_parts_to(Structure& structure) const override {
    structure.note_model();
    add_own_to(structure);
    add_fields_to(structure, net);
  }
  bool become(Layer& fresh) override {
    auto* same = dynamic_cast<StructLayer*>(&fresh);
    if (!same || !replace_in_place(net, same->net)) return false;
    FieldCopies::after_move(same->net, net);
    take_own(fresh);
    return true;
  }
  Net net;
};

}  // namespace gradus::detail
