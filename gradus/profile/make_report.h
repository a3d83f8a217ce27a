/// Makes a report of a timeline.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/profile/report.h"
#include "gradus/profile/timeline.h"

namespace gradus {

/// Parts and rows of the timeline, the suggestions included.
ProfileReport make_report(ProfileTimeline timeline, std::size_t peak_bytes, int threads);

/// Possible changes, dearest first.
std::vector<Suggestion> suggestions_of(const ProfileReport& report, const ProfileTimeline& timeline);

}  // namespace gradus
