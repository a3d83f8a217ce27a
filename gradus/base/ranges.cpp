/// The message for a number that is out of its range. Decision 180 has the reasons.
#include "gradus/base/ranges.h"
#include <cmath>

namespace gradus {
namespace {

std::string words(const Allowed& r) {
  const bool has_least = r.least > -Allowed::infinity, has_most = r.most < Allowed::infinity;
  if (!has_least && !has_most) return "be finite";
  if (!has_most && r.least == 0) return r.above ? "be positive" : "not be negative";
  if (!has_most) return text("be ", r.above ? "above " : "at least ", r.least);
  if (!has_least) return text("be ", r.below ? "below " : "at most ", r.most);
  if (r.above && r.below) return text("be between ", r.least, " and ", r.most);
  if (r.above) return text("be above ", r.least, " and at most ", r.most);
  if (r.below) return text("be at least ", r.least, " and below ", r.most);
  return text("be within ", r.least, " and ", r.most);
}

template <class T> std::string message(std::string_view owner, std::string_view field, const Allowed& range, T value) {
  return text(owner, ": ", field, " must ", words(range), ", got ", value);
}

}  // namespace

void detail::fail_range(std::string_view owner, std::string_view field, const Allowed& range, double value) {
  throw InvalidArgument(message(owner, field, range, value) +
                        (std::isfinite(value) ? "" : "; expected a finite number"));
}
void detail::fail_range(std::string_view owner, std::string_view field, const Allowed& range, std::int64_t value) {
  throw InvalidArgument(message(owner, field, range, value));
}

}  // namespace gradus
