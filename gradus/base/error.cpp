/// The one failure whose place in the user's program is known.
#include "gradus/base/error.h"

namespace gradus {

void check(bool condition, std::string_view message, SourcePlace where) {
  if (!condition) [[unlikely]]
    throw Error(text(where.file, ":", where.line, ": check failed: ", message));
}

}  // namespace gradus
