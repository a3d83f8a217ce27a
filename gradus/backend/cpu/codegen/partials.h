/// Partial results of reductions that workers share: per reduction one for each block of each of its lines, in a
/// scratch that lives from the first to the last thunk of the step. How many there are may be known only at a call.
#pragma once
#include <span>
#include <vector>
#include "gradus/compiler/loops.h"

namespace gradus::cpu_backend {

/// The partial results of one reduction: [lines, blocks, width]. `lines`, `length` and `width` are dimensions.
struct Partials {
  int reduction = -1;
  std::int64_t lines = 1;   // rows, or the dimensions before the reduced axis
  std::int64_t length = 1;  // of the reduced axis, and
  std::int64_t block = 1;   // how much of it makes one partial result of
  std::int64_t width = 1;   // elements
  std::int64_t size = 1;    // bytes of an element
};

/// Padding included: the last vector may reach over the end. Counts are counts at the call.
constexpr std::int64_t partial_padding = 64;

/// In the order in which they lie. None if a step needs no partial results.
std::vector<Partials> partials_of(const Graph& graph, const Step& step, const Loops& loops);
std::int64_t bytes_of(std::span<const Partials> partials, std::span<const std::int64_t> symbols);

/// A column reduction of at most one block needs no partial results, unless they are kept in a wider type than the
/// result.
bool is_reduced_at_once(const Graph& graph, const Step& step, const Loops& loops);

}  // namespace gradus::cpu_backend
