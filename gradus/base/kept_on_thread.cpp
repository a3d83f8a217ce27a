#include "gradus/base/kept_on_thread.h"
#include "gradus/base/error.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"

namespace gradus {

void detail::notice_end_elsewhere(std::string_view scope, std::string_view goes_on) {
  notice(text("gradus: ", scope, " ended on another thread than it began on, which ", goes_on,
              "; make it a local object\n"));
}

}  // namespace gradus
