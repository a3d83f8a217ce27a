#include "gradus/base/version.h"
#include <string>

namespace gradus {

std::string_view version() { return GRADUS_VERSION; }

std::string_view version_and_contract() {
  static const std::string both =
      std::string(version()) + " (numeric contract " + std::to_string(numeric_contract) + ")";
  return both;
}

}  // namespace gradus
