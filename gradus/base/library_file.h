/// Shared libraries as files, before the system's loader maps them: it does not look at where a file ends, so a cut-off
/// one ends the process with SIGBUS.
#pragma once
#include <filesystem>
#include <string>

namespace gradus {

/// Empty if the file has all the bytes that its ELF headers ask for, or is no such file, which the loader says itself;
/// else that it is cut off, with both sizes and how to mend it.
std::string why_cut_off(const std::filesystem::path& file);

}  // namespace gradus
