/// The loop nest that values could share: fusion asks for it before it joins groups of them.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>
#include "gradus/compiler/loops.h"

namespace gradus {

inline bool is_computed_in_loops(const Value& v) { return v.op.is_elementwise() || v.op.is_reduction(); }

/// The space of a loop nest while it grows: the number of elements, in rows of `columns` if a member needs rows.
struct LoopSpace {
  std::int64_t elements = 1;
  std::int64_t columns = 0;  // 0: any
  std::int64_t rows = 0;
  std::optional<Reduced> reduced;  // by the column reductions, which have one view at most
  bool operator==(const LoopSpace&) const = default;
};

/// The spaces of a graph's values.
class LoopSpaces {
 public:
  explicit LoopSpaces(const Graph& graph);
  /// The members of one or several groups.
  using Members = std::initializer_list<std::span<const int>>;

  /// The space of value i alone.
  LoopSpace of(int i) const;
  /// The space in which a producer with space `first` and a consumer with `second`, which reads `operand`, could run
  /// together.
  std::optional<LoopSpace> joint(const LoopSpace& first, const LoopSpace& second, int operand) const;
  /// True if the members can run in it.
  bool holds(const LoopSpace& space, Members members) const;
  /// True if `operand` of `member`, whose source is in the same group, can come from a register.
  bool passes_in_register(int member, int operand, const LoopSpace& space) const;
  /// The shape that the loops of a step iterate over.
  Shape shape(LoopSpace space, const std::vector<int>& members) const;

 private:
  std::optional<LoopSpace> rows_of(const LoopSpace& small, const LoopSpace& large, int operand) const;
  bool is_row_value(int member, const LoopSpace& space) const;
  const std::vector<std::int64_t>& reaches_of(int member) const;
  template <class Visit> void for_each_reach(const LoopSpace& space, Members members, Visit visit) const;
  bool rows_walk(const LoopSpace& space, Members members) const;
  std::optional<std::int64_t> choose_columns(LoopSpace space, Members members) const;
  std::int64_t last_resort(const LoopSpace& space, const std::vector<int>& members) const;

  const Graph& graph_;
  PerValue<std::int64_t> elements_;
  mutable PerValue<std::optional<std::vector<std::int64_t>>> reaches_;  // once asked for
};

}  // namespace gradus
