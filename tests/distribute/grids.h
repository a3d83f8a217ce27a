/// How much of the larger grids is tested: of numbers of ranks, of ways for messages, of messages that are lost.
#pragma once
#include <cstdlib>
#include <string_view>
#include <vector>

namespace gradus {

/// Whether GRADUS_GRIDS is `all`, as in the longer tests; else a part that has each kind of case.
inline bool takes_whole_grids() {
  const char* const said = std::getenv("GRADUS_GRIDS");
  return said != nullptr && std::string_view(said) == "all";
}

/// Numbers of ranks: `usual`, or all.
inline std::vector<int> numbers_of_ranks(const std::vector<int>& usual, const std::vector<int>& all) {
  return takes_whole_grids() ? all : usual;
}

}  // namespace gradus
