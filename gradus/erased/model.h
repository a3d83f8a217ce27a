/// Models whose struct is an object of another language.
///
/// A NetLayer is derived that walks over the object's fields. `visit` tells a FieldVisitor the name of each field and
/// its layer, Variable or plain value; from that the library has names, freezing, copies, masks, files, and the error
/// for a layer that runs and is not found. Once the object exists, `adopt_fields()` makes its layers the model's own.
/// A call of the object is within a NetCall:
///
///   const erased::NetCall call(model);
///   Tensor y = ...;                      // the object's own function
///   call.finish({x.spec()});             // the first call builds the model
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/nn/model.h"
#include "gradus/nn/net_layer.h"

namespace gradus::erased {

/// The layer of a struct of layers: `clone`, `call`, `run_on`, `visit` and `struct_name` are the binding's.
using gradus::detail::NetLayer;
/// Receives the fields of an object, by name.
using gradus::detail::FieldVisitor;
/// One call of a model.
using gradus::detail::NetCall;
/// Training or inference, for the calls within its lifetime.
using gradus::ModeScope;

/// The handle of a layer of a binding: a Module as all others, so that it may be a field of other models, trained,
/// saved and copied.
struct Model : Module {
  explicit Model(std::shared_ptr<NetLayer> layer) : Module(std::move(layer)) {}
};

}  // namespace gradus::erased
