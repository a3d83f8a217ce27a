/// How a scatter is divided: parts of its target, to which every worker applies the updates in order.
#pragma once
#include <algorithm>
#include "gradus/backend/cpu/run/thunk.h"

namespace gradus::library {

/// Rows and columns of target[outer].
struct ScatterPart {
  std::int64_t outer, first_row, last_row, first_column, last_column;
  std::int64_t columns() const { return last_column - first_column; }
  bool has_row(std::int64_t index) const { return index >= first_row && index < last_row; }
};

/// A target [outer, n, inner] of elements: divided by columns, so that all workers share rows that are written often;
/// with few columns by rows. A worker reads all indices, once in a call.
struct ScatterParts {
  std::int64_t outer, n, inner;

  bool by_rows() const { return inner < 16 && n > 0; }  // without rows indices are still checked
  std::int64_t each() const { return by_rows() ? n : inner; }
  std::int64_t extent() const { return inner == 0 ? 0 : outer * each(); }
  std::int64_t grain() const { return by_rows() ? 2048 : 16; }

  /// Calls visit with the parts of [begin, end) of the extent.
  template <class Visit> void visit(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    while (begin < end) {
      const std::int64_t first = begin % each(), last = std::min(each(), first + end - begin);
      visit(by_rows() ? ScatterPart{begin / each(), first, last, 0, inner}
                      : ScatterPart{begin / each(), 0, n, first, last});
      begin += last - first;
    }
  }
};

/// Calls update(place, row) for the indices of rows of the part. One that is no row of the target is a failure.
template <class Index, class Update>
void for_each_update(const KernelArguments* arguments, const Index* indices, std::int64_t places, std::int64_t n,
                     const ScatterPart& part, const Update& update) {
  for (std::int64_t p = 0; p < places; ++p) {
    const auto index = static_cast<std::int64_t>(indices[p]);
    if (part.has_row(index)) update(p, index);
    else if (index < 0 || index >= n) report_failure(arguments, p, index);
  }
}

}  // namespace gradus::library
