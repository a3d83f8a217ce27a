#include "gradus/base/version.h"

namespace gradus {

std::string_view version() { return GRADUS_VERSION; }

}  // namespace gradus
