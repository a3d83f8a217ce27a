/// Copying and assigning what stands behind a module.
#pragma once
#include <memory>

namespace gradus {

class Layer;

/// With variables and a loss scale of its own; null of null. A trace takes note of what is copied.
std::shared_ptr<Layer> copy_of(const std::shared_ptr<Layer>& layer);

/// `layer` is that of a module, `before` what stands behind it: null, without variables or not built. From now on that
/// is `next`, also for modules that share the layer.
void adopt(std::shared_ptr<Layer>& layer, std::shared_ptr<Layer> before, const std::shared_ptr<Layer>& next);

/// `before` is built. It becomes what `other` is and keeps its variables. InvalidArgument, and nothing has changed, if
/// they are not like those of `other`.
void assign(std::shared_ptr<Layer>& layer, std::shared_ptr<Layer> before, const std::shared_ptr<Layer>& other);

}  // namespace gradus
