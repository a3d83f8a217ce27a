/// Reductions in the order of the numeric contract: sixteen lanes and a halving tree along rows, blocks of 32 along
/// columns, and blocks of blocks for long ones.
#pragma once
#include "gradus/backend/cpu/interpreter/source.h"

namespace gradus::interpreter {

/// combine(acc, x) on arrays, and its identity, in the type in which the reduction computes.
struct Combination {
  Combination(const Value& reduction, std::span<const std::int64_t> symbols);
  /// acc[i] = combine(acc[i], x[i])
  void into(void* acc, const void* x, std::int64_t count, void* scratch) const;
  void reset(void* acc, std::int64_t count) const;

  scalar::Interpreter formula;
  std::int64_t size;  // bytes of an element
  std::uint64_t identity;
};

}  // namespace gradus::interpreter
