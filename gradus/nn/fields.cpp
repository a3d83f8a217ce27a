/// Layers within a class whose fields cannot be seen: those that lie in its bytes.
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

void FieldWalk::visit_unopened(const std::string& name, const void* begin, std::size_t bytes, const void* known) {
  KindNames kinds;
  visitor_.other(name);
  for (const whereabouts::Found& each : whereabouts::within(begin, bytes)) {
    if (each.at == known) continue;
    if (each.kind == whereabouts::Kind::module) {
      const auto& layer = *static_cast<const Module*>(each.at);
      meet(joined(name, kinds.next(layer)), layer);
    } else {
      const auto& variable = *static_cast<const Variable*>(each.at);
      visitor_.variable(joined(name, kinds.next(variable)), variable);
    }
  }
}

}  // namespace gradus::detail
