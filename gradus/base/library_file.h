/// Checks shared libraries before the system's loader maps them: it does not check the file's length, so a truncated
/// library ends the process with SIGBUS.
#pragma once
#include <filesystem>
#include <string>

namespace gradus {

/// Empty if the file has all bytes that its ELF headers ask for, or is no ELF file, which the loader reports. Otherwise
/// the text says that the file is cut off, with both sizes and a remedy.
std::string why_cut_off(const std::filesystem::path& file);

}  // namespace gradus
