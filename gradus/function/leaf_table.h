/// The leaves of one flush.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>
#include "gradus/base/hash.h"
#include "gradus/graph/node.h"

namespace gradus {

namespace detail::inline rooms {

/// Positions of leaves, by address: open addressing, emptied by raising the generation.
class LeafTable {
 public:
  void clear() {
    ++generation_;
    used_ = 0;
  }
  /// The position of `leaf`, or `fresh` if it was not there, and then it is.
  int find_or_add(const Node* leaf, int fresh) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    for (std::size_t i = start(leaf);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.generation != generation_) {
        slot = {leaf, generation_, fresh};
        ++used_;
        return fresh;
      }
      if (slot.leaf == leaf) return slot.position;
    }
  }

 private:
  struct Slot {
    const Node* leaf = nullptr;
    std::uint64_t generation = 0;
    int position = 0;
  };
  std::size_t start(const Node* leaf) const {
    return mix(reinterpret_cast<std::uintptr_t>(leaf), 0) & (slots_.size() - 1);
  }
  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
    old.swap(slots_);
    used_ = 0;
    for (const Slot& slot : old)
      if (slot.generation == generation_) find_or_add(slot.leaf, slot.position);
  }
  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::uint64_t generation_ = 1;
};

}  // namespace detail::inline rooms

}  // namespace gradus
