/// How many cores the process may use.
#pragma once
#include <filesystem>
#include <string_view>

namespace gradus {

/// Those that its main thread may run on, and no more than whole ones of the time that its control groups give it (such
/// as those of a container), at least 1. A file system that does not say counts as no limit.
int available_cores();

/// The least that any group of `groups`, the text of /proc/self/cgroup, or of those that it is part of, gives: cores,
/// or infinity. `root`: where the file systems of groups are mounted. Version 1 and 2.
double cores_of_groups(std::string_view groups, const std::filesystem::path& root);

/// The calling thread may run wherever the main thread may, though it was made by one that may not.
void use_cores_of_process();

}  // namespace gradus
