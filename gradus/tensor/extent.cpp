/// Comparisons of extents: by their difference, if its sign is the same for all sizes.
#include "gradus/tensor/extent.h"
#include "gradus/base/error.h"

namespace gradus {

std::strong_ordering Extent::order(Extent a, Extent b) {
  const Extent difference = a - b;
  if (!difference.is_symbolic()) return static_cast<std::int64_t>(difference) <=> std::int64_t{0};
  if (dimension::is_never_negative((a - b - 1).dimension_)) return std::strong_ordering::greater;
  if (dimension::is_never_negative((b - a - 1).dimension_)) return std::strong_ordering::less;
  throw InvalidArgument(text("the extents ", a, " and ", b,
                             " are compared while a function is traced for open sizes, where the answer is not known; "
                             "compare outside of the function, or give the function a fixed size"));
}

std::ostream& operator<<(std::ostream& out, Extent extent) { return out << dimension::to_text(extent.dimension_); }

}  // namespace gradus
