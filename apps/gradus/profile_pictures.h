/// Pictures of a profile, as SVG that is read without scripts: each part has its numbers as a title, which a browser
/// shows under the pointer.
#pragma once
#include <string>
#include "gradus/profile/report.h"

namespace gradus::command {

/// The last entries of each track, on one axis of time. Empty if nothing was written down.
std::string timeline_svg(const ProfileReport& report);
/// Layers within layers, as wide as the time of their kernels; in each, the part of its gradient.
std::string flame_svg(const ProfileReport& report);
/// The bytes that live over time, by their holders.
std::string memory_svg(const ProfileReport& report);
/// The five parts of the time as one bar.
std::string parts_svg(const ProfileReport& report);

}  // namespace gradus::command
