/// Where the time of a training goes, in words.
#pragma once
#include <string>
#include "gradus/profile/report.h"

namespace gradus {

/// The parts of the time without compiling, the largest first. If the largest is the wait for input, the sentence also
/// names the slowest stage. Empty for an empty report.
std::string account_of(const ProfileReport& report);

}  // namespace gradus
