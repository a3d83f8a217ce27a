/// Suggestions of a profile in the words of a configuration.
#pragma once
#include "apps/gradus/config.h"
#include "gradus/profile/report.h"

namespace gradus::command {

/// Replaces the remedies of a program, such as calls of the library, by keys of the configuration. A suggestion that no
/// key follows has none.
void name_keys(ProfileReport& report, const DataConfig& data);

}  // namespace gradus::command
