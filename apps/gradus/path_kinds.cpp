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

/// Problems other than a missing path are left to its reader.
void require_exists(const std::string& command, const fs::path& path, std::string_view expected) {
  std::error_code none;
  require<Unavailable>(fs::status(path, none).type() != fs::file_type::not_found, command, ": ", path.string(),
                       ": there is no such file or directory; expected ", expected);
}

}  // namespace

void require_run(const std::string& command, const fs::path& path) {
  std::error_code none;
  require_exists(command, path, "a run directory that gradus train wrote");
  require<ConfigError>(path.extension() != ".toml" || !fs::is_regular_file(path, none), command, ": ", path.string(),
                       " is a configuration; expected the run directory of a training: gradus train ", path.string(),
                       " --output RUN, then gradus ", command, " RUN");
  require<ConfigError>(fs::is_directory(path, none), command, ": ", path.string(),
                       " is a file; expected a run directory that gradus train wrote");
  require<ConfigError>(is_run(path), command, ": ", path.string(),
                       " is a directory without config.toml; expected a run directory that gradus train wrote");
}

void require_configuration(const std::string& command, const fs::path& path) {
  std::error_code none;
  require_exists(command, path, "a configuration, a .toml file; docs/configuration.md describes it");
  if (!fs::is_directory(path, none)) return;
  const std::string mend =
      !is_run(path)        ? "a .toml file"
      : command == "train" ? text((path / "config.toml").string(), "; to go on with the run, --resume ", path.string())
                           : (path / "config.toml").string();
  throw ConfigError(text(command, ": ", path.string(), is_run(path) ? " is a run directory" : " is a directory",
                         "; expected a configuration, ", mend));
}

}  // namespace gradus::command
