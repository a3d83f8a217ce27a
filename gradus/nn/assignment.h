/// Copying and assigning the layer behind a module.
#pragma once
#include <memory>
#include "gradus/base/rooms.h"

namespace gradus {

namespace detail::inline rooms {
class Layer;
}  // namespace detail::inline rooms

/// True if the layer has its variables: it is built, or it is a model of which all layers are, as after
/// `model->encode(words)`.
bool has_variables(const Layer& layer);

/// A copy with variables and a loss scale of its own; null for null. A trace is notified of the copy.
std::shared_ptr<Layer> copy_of(const std::shared_ptr<Layer>& layer);

/// `layer` is a module's, `before` is the layer behind it: null, without variables or not built. From now on that is
/// `next`, also for modules that share the layer.
void adopt(std::shared_ptr<Layer>& layer, std::shared_ptr<Layer> before, const std::shared_ptr<Layer>& next);

/// Makes the built layer `before` equal to `other`; it keeps its variables. InvalidArgument if these do not match those
/// of `other`; then nothing has changed.
void assign(std::shared_ptr<Layer>& layer, std::shared_ptr<Layer> before, const std::shared_ptr<Layer>& other);

}  // namespace gradus
