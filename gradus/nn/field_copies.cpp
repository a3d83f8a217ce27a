/// What cannot be copied, and where pointers lead after a copy.
#include "gradus/nn/field_copies.h"
#include <cstdint>
#include "gradus/base/type_name.h"

namespace gradus::detail {

void fail_copy(const char* type) {
  throw InvalidArgument(
      text("copying a model: a part of it, ", type_name(type),
           ", cannot be copied; hold layers directly, in std::optional, std::vector or "
           "std::shared_ptr (of a class with virtual functions: give it std::shared_ptr<Base> clone() "
           "const), or pass the model by reference or std::move"));
}

const void* FieldCopies::moved(const void* at) const {
  for (const Moved& range : ranges_) {
    const auto offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(range.from);
    if (offset < range.bytes) return static_cast<const char*>(range.to) + offset;
  }
  return at;
}

}  // namespace gradus::detail
