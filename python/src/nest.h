/// Nests: dicts, lists, tuples, named tuples and dataclasses of leaves, at any depth. Dicts are walked by sorted keys.
#pragma once
#include <functional>
#include <string>
#include "python/src/interpreter.h"

namespace gradus::python {

/// Gives the object that stands in the place of a leaf.
using LeafMap = std::function<nb::object(nb::handle leaf)>;

/// A nest of the same kind with other leaves. What is no container is a leaf, None too.
nb::object map_leaves(nb::handle nest, const LeafMap& map);
/// Visits the leaves in the order of map_leaves. `structure` receives the spelling of the containers, unless it is
/// null.
void for_each_leaf(nb::handle nest, std::string* structure, const std::function<void(nb::handle leaf)>& visit);

}  // namespace gradus::python
