/// C++ state that is part of a call's signature although no argument holds it: the plain fields of a model.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace gradus {

struct WatchedFields {
  using Fields = std::vector<std::pair<std::string, std::string>>;  // name and value, spelt
  const void* object = nullptr;
  std::string owner;            // "model net"
  Fields seen;                  // while tracing
  std::function<Fields()> now;  // empty when the owner has died

  bool has_changed() const { return now() != seen; }
  /// "field `deep` of model net was false, now true"; empty if nothing has changed.
  std::string difference() const;
};

}  // namespace gradus
