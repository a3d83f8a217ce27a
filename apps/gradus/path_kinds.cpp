#include "apps/gradus/path_kinds.h"
#include <system_error>
#include "apps/gradus/config.h"

namespace gradus::command {
namespace fs = std::filesystem;

namespace {

bool is_run(const fs::path& path) {
  std::error_code none;
  return fs::exists(path / "config.toml", none);
}

}  // namespace

void require_run(const std::string& command, const fs::path& path) {
  std::error_code none;
  require<ConfigError>(path.extension() != ".toml" || !fs::is_regular_file(path, none), command, ": ", path.string(),
                       " is a configuration; expected the run directory of a training: gradus train ", path.string(),
                       " --output RUN, then gradus ", command, " RUN");
  require<ConfigError>(!fs::exists(path, none) || fs::is_directory(path, none), command, ": ", path.string(),
                       " is a file; expected a run directory that gradus train wrote");
  require<ConfigError>(!fs::is_directory(path, none) || is_run(path), command, ": ", path.string(),
                       " is a directory without config.toml; expected a run directory that gradus train wrote");
}

void require_configuration(const std::string& command, const fs::path& path) {
  std::error_code none;
  if (!fs::is_directory(path, none)) return;
  const std::string mend =
      !is_run(path)        ? "a .toml file"
      : command == "train" ? text((path / "config.toml").string(), "; to go on with the run, --resume ", path.string())
                           : (path / "config.toml").string();
  throw ConfigError(text(command, ": ", path.string(), is_run(path) ? " is a run directory" : " is a directory",
                         "; expected a configuration, ", mend));
}

}  // namespace gradus::command
