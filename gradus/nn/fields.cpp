/// Names of layers within a class whose fields cannot be seen.
#include "gradus/nn/fields.h"
#include "gradus/nn/layer.h"

namespace gradus::detail {

std::string KindNames::numbered(const std::string& kind) {
  const int before = seen_[kind]++;
  return before ? kind + "_" + std::to_string(before) : kind;
}
std::string KindNames::next(const Module& layer) { return numbered(std::string(layer.layer_behind().kind())); }
/// Its own name, without those of what it is within.
std::string KindNames::next(const Variable& variable) {
  const std::string& name = variable.name();
  return numbered(name.substr(name.rfind('/') + 1));
}

}  // namespace gradus::detail
