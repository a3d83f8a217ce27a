#include "gradus/base/host_name.h"
#include <unistd.h>
#include <array>

namespace gradus {

std::string host_name(std::string_view otherwise) {
  std::array<char, 256> name{};
  const bool known = gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0;
  return known ? name.data() : std::string(otherwise);
}

}  // namespace gradus
