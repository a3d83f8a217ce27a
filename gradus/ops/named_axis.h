/// An axis by its name, as options are given: concat(parts, {.axis = 1}) is concat(parts, 1). Functions with other
/// options beside it have a struct of their own.
#pragma once
#include <vector>

namespace gradus {

/// {.axis = 1}.
struct NamedAxis {
  int axis;  // negative axes count from the end
};
/// {.axis = {0, 2}}.
struct NamedAxes {
  std::vector<int> axis;  // negative axes count from the end
};

}  // namespace gradus
