/// Transforms of regions that rules in ops/ need. autodiff/ defines them.
#pragma once
#include <functional>
#include "gradus/graph/tensor.h"

namespace gradus {

struct Transforms {
  /// d(sum over k of sum(ys[k] * seeds[k])) / d(source), of each source's spec; empty where nothing depends on it.
  /// Empty seeds count as zero. The walk back ends at `ends`, where a region began: nodes behind them have been
  /// computed before, and may be all of a large graph.
  static Tensors (*vjp)(In ys, In sources, In seeds, In ends);
  /// f on n rows at once: operand i of `f` is a row of xs[i] if varies[i], else xs[i] itself. A result that is the same
  /// for all rows has no leading dimension; `varied` says which have it.
  static Tensors (*vmap)(const std::function<Tensors(In)>& f, In xs, const std::vector<bool>& varies, std::int64_t n,
                         std::vector<bool>& varied);
};

}  // namespace gradus
