/// Groups of values that become steps, and their dependencies: no path may lead from a member of a group to another
/// through memory.
#pragma once
#include <array>
#include <vector>
#include "gradus/compiler/loop_spaces.h"
#include "gradus/graph/applications.h"

namespace gradus {

struct FusionGroup {
  Step::Kind kind = Step::Kind::loops;
  std::vector<int> members;
  LoopSpace space;
  std::uint64_t behind = 0, ahead = 0;  // landmarks that members depend on, and that depend on members
};

/// True for values that their readers read in place.
inline bool is_read_in_place(const Value& v) { return v.op.is_view() || v.op.is_index() || v.is_constant; }

class FusionGroups {
 public:
  FusionGroups(const Graph& graph, const LoopSpaces& spaces);

  /// -1: it belongs to none.
  int of(int i) const { return group_of_[i]; }
  const FusionGroup& operator[](int g) const { return groups_[g]; }
  int size() const { return static_cast<int>(groups_.size()); }

  /// To be called for every value in order, before one of the next two.
  void visit(int i);
  /// A group of value i alone: its number.
  int add(int i, Step::Kind kind, const LoopSpace& space);
  /// If value i is a result of a branch or loop that has a group, it joins that.
  bool joins_siblings(int i);
  /// True if the members of `a` and of `b`, to which the last value belongs, may run together in `space`: no path leads
  /// from one to another through memory.
  bool depends_only_through_registers(int a, int b, const LoopSpace& space);
  /// The number of values that walks between groups have met: the work grows with it.
  std::int64_t walked() const { return walked_; }
  /// Gives the group that both are from now on: the larger one.
  int merge(int from, int into, const LoopSpace& space);

 private:
  void find_landmarks();
  bool has_landmark_between(int a, int b) const;
  void raise_latest(int g);
  void raise_level(int g);

  const Graph& graph_;
  const LoopSpaces& spaces_;
  Applications<int> controls_;
  Numbered<int> group_of_control_;
  Numbered<FusionGroup> groups_;
  PerValue<int> group_of_;
  PerValue<std::vector<int>> users_;
  static constexpr std::size_t most_landmarks = 64;  // the bits of a word
  std::array<int, most_landmarks> landmarks_{};
  PerValue<std::uint64_t> behind_, ahead_;  // the landmarks that it depends on, and that depend on it
  PerValue<int> latest_;  // no later value is among its dependencies, nor runs together with any of these
  /// At least that of all that it depends on, and of those with which it runs together. Without groups, steps of the
  /// longest chain before it: a value that a gradient computes again from a forward one is on its level, far before the
  /// values next to it.
  PerValue<int> level_;
  static constexpr int steps_of_level = 16;  // steps in a level, so that it seldom rises
  std::int64_t walked_ = 0;
  std::vector<int> pending_;         // kept from walk to walk
  Numbered<std::uint32_t> visited_;  // of values, then of groups
  std::uint32_t generation_ = 0;
};

/// How many values the walks of fuse() over this graph meet.
std::int64_t values_walked_by_fuse(const Graph& graph);

}  // namespace gradus
