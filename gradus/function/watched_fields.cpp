/// What has become of watched fields.
#include "gradus/function/watched_fields.h"
#include "gradus/base/error.h"

namespace gradus {

std::string WatchedFields::difference() const {
  const Fields values = now();
  if (values == seen) return {};
  for (std::size_t i = 0; i < seen.size() && i < values.size(); ++i)
    if (seen[i].first == values[i].first && seen[i].second != values[i].second)
      return text("field `", seen[i].first, "` of ", owner, " was ", seen[i].second, ", now ", values[i].second);
  return values.empty() ? text(owner, " was destroyed") : text(owner, " had other fields");
}

}  // namespace gradus
