/// Paths that commands take: run directories and configurations, which users easily confuse.
#pragma once
#include <filesystem>
#include <string>

namespace gradus::command {

/// ConfigError, opened by the command's name, unless this is a run directory; Unavailable if it does not exist.
void require_run(const std::string& command, const std::filesystem::path& path);
/// ConfigError, opened by the command's name, for a directory in place of a configuration file; Unavailable if it does
/// not exist.
void require_configuration(const std::string& command, const std::filesystem::path& path);

}  // namespace gradus::command
