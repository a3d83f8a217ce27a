/// Source: where an interpreted step finds the elements of an operand. They are in memory, behind a view, in a
/// constant, or given by a formula of the index.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/compiler/steps.h"
#include "gradus/scalar/interpret.h"

namespace gradus::interpreter {

/// Elements that are computed at a time.
inline constexpr std::int64_t block = scalar::Interpreter::block;

class Source {
 public:
  /// The source that a loop reads for `operand`, with these values of the graph's symbols.
  Source(const Graph& graph, int operand, std::span<const std::int64_t> symbols);

  /// Elements [begin, begin + count) in row-major order, count <= Interpreter::block: where they lie, or copied into
  /// `scratch`, of scratch_bytes() aligned to 64.
  const void* read(void* const* slots, std::int64_t begin, std::int64_t count, void* scratch) const;
  std::int64_t scratch_bytes() const;
  DType dtype() const { return dtype_; }

 private:
  enum class Kind : std::uint8_t { memory, constant, index };
  struct Walk;

  void walk_through(const View& view, const Shape& shape, std::span<const std::int64_t> symbols);
  template <class Run> void for_each_stretch(void* const* slots, std::int64_t begin, std::int64_t count, Run run) const;
  std::int64_t looked_up(void* const* slots, std::int64_t place) const;
  const void* gather(void* const* slots, std::int64_t begin, std::int64_t count, void* scratch) const;
  void positions(void* const* slots, std::int64_t begin, std::int64_t count, std::int64_t* into) const;

  Kind kind_ = Kind::memory;
  bool strided_ = false;
  DType dtype_;
  int storage_;
  std::int64_t offset_ = 0;
  int rank_ = 0;  // of the walk, neighbours joined where they can be
  std::array<std::int64_t, Shape::max_rank> dims_{}, strides_{};
  int table_ = -1;  // of a view by a table: where the indices of its rows lie, and
  bool has_wide_indices_ = false;
  std::int64_t row_ = 0;  // how many elements a row has
  std::vector<std::uint64_t> constant_;
  scalar::Interpreter formula_;
};

}  // namespace gradus::interpreter
