/// Where the time of a training goes, in words.
#pragma once
#include <string>
#include "gradus/profile/report.h"

namespace gradus {

/// The parts of the time without compiling, from the largest on. If that is the wait for input, the stage that takes
/// most of it, too. Empty for a report of nothing.
std::string account_of(const ProfileReport& report);

}  // namespace gradus
