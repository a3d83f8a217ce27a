/// vmap: a function of one row becomes a function of all rows at once. The function is called once, on symbols that
/// stand for a row. Then its nodes are rebuilt in the context around it, with a leading dimension wherever they depend
/// on the row. Calls nest. A Variable is read as outside; assigning one within is a user's mistake.
#pragma once
#include <functional>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// A function of tensors.
using TensorsFunction = std::function<Tensors(In)>;

/// Result of vmap.
struct Vectorized {
  Tensors results;
  std::vector<bool> varies;  // true: the result has the leading dimension; false: it is the same for all rows
};

/// The keys that random ops get in a row.
enum class RowKeys {
  numbered,  // keys of the call, each mixed with the number of the row
  of_f       // keys that f makes itself, which differ from row to row
};

/// Operand i of `f` is a row of xs[i]: [n, ...] if varies[i], else xs[i] itself. `n` may be symbolic. An empty result
/// stays empty.
Vectorized vmap(const TensorsFunction& f, In xs, const std::vector<bool>& varies, std::int64_t n,
                RowKeys keys = RowKeys::numbered);

/// vmap with all operands [n, ...], and all results, too.
Tensors vmap(const TensorsFunction& f, In xs, std::int64_t n, RowKeys keys = RowKeys::numbered);

}  // namespace gradus
