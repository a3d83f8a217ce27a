/// The one failure whose place in the user's program is known.
#include "gradus/base/error.h"

namespace gradus {

void check(bool condition, std::string_view message, std::source_location where) {
  if (!condition) [[unlikely]]
    throw Error(text(where.file_name(), ":", where.line(), ": check failed: ", message));
}

}  // namespace gradus
