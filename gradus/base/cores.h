/// The number of cores that the process may use.
#pragma once
#include <filesystem>
#include <string_view>

namespace gradus {

/// The cores that its main thread may run on, but at most the whole cores of the time that its control groups give it
/// (such as those of a container), and at least 1. A file system that does not tell counts as no limit.
int available_cores();

/// The least number of cores that any group of `groups`, the text of /proc/self/cgroup, or of their parents, gives, or
/// infinity. `root`: where the file systems of groups are mounted. Versions 1 and 2.
double cores_of_groups(std::string_view groups, const std::filesystem::path& root);

/// Lets the calling thread run wherever the main thread may, though it was made by a thread that may not.
void use_cores_of_process();

}  // namespace gradus
