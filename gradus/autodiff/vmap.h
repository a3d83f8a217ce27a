/// vmap: a function of one row becomes a function of all rows at once. The function is called once, on symbols that
/// stand for a row; then its nodes are rebuilt in the context around it, with a leading dimension wherever they depend
/// on the row. Calls nest. A Variable is read as outside; assigning one within is a user's mistake.
#pragma once
#include <functional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

using TensorsFunction = std::function<Tensors(In)>;

struct Vectorized {
  Tensors results;
  std::vector<bool> varies;  // whether a result has the leading dimension; else it is the same for all rows
};

/// The keys that random ops get in a row.
enum class RowKeys {
  numbered,  // those of the call, each mixed with the number of the row
  of_f       // those that f sees to, which differ from row to row by themselves
};

/// Operand i of `f` is a row of xs[i], which is [n, ...], if varies[i]; else it is xs[i] itself. `n` may be symbolic.
/// An empty result stays empty.
Vectorized vmap(const TensorsFunction& f, In xs, const std::vector<bool>& varies, std::int64_t n,
                RowKeys keys = RowKeys::numbered);

/// All operands are [n, ...], and so are all results.
Tensors vmap(const TensorsFunction& f, In xs, std::int64_t n, RowKeys keys = RowKeys::numbered);

}  // namespace gradus
