#include "gradus/base/notice.h"
#include <iostream>

namespace gradus {

void notice(std::string_view written) {
  std::cerr.write(written.data(), static_cast<std::streamsize>(written.size())).flush();
}

}  // namespace gradus
