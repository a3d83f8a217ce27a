/// Hashing of the layers and variables that a walk meets.
#include "gradus/nn/structure.h"
#include <algorithm>
#include "gradus/base/rooms.h"
#include "gradus/function/variable_cell.h"
#include "gradus/nn/layer.h"
#include "gradus/nn/module.h"

namespace gradus {

Structure::Structure(const Layer& root, Hidden hidden) : hidden_(hidden) { add(root); }

/// The finalizer of splitmix64 over a running state: the order counts.
void Structure::mix(std::uint64_t part) {
  std::uint64_t z = number_ * 3 + part + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  number_ = z ^ (z >> 31);
}

void Structure::add(const Layer& layer) {
  mix(layer.id());
  if (std::ranges::find(path_, &layer) != path_.end()) return;
  path_.push_back(&layer);
  layer.add_parts_to(*this);
  path_.pop_back();
  mix(0);  // the end of what is within
}

void Structure::add(const Module& module) {
  if (module.is_empty()) mix(1);
  else add(module.layer_behind());
}

void Structure::add(const Variable& variable) {
  mix(2);
  mix(variable.cell() ? variable.cell()->id : 0);  // 0: moved from
}

}  // namespace gradus
