/// The search for plugins.
#include "gradus/backend/xla/plugin_files.h"
#include <algorithm>
#include <cstdlib>
#include "gradus/base/error.h"
#include "gradus/base/input_file.h"

namespace gradus::xla {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> parts_of(const std::string& joined, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < joined.size();) {
    const std::size_t end = std::min(joined.find(separator, begin), joined.size());
    parts.push_back(joined.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Sorted, so that a search does not depend on the order of a file system.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    if (ignored) break;
    all.push_back(it->path());
  }
  std::ranges::sort(all);
  return all;
}

void add_named(std::vector<PluginFile>& files) {
  constexpr const char* variable = "PJRT_NAMES_AND_LIBRARY_PATHS";
  for (const std::string& entry : parts_of(environment(variable), ',')) {
    if (entry.empty()) continue;
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == entry.size()) {
      files.push_back({entry, {}, variable, text(variable, ": `", entry, "` is not name:path")});
      continue;
    }
    files.push_back({entry.substr(0, colon), entry.substr(colon + 1), variable});
  }
}

bool is_script(const fs::path& file) {
  try {
    return read_part_of_file(file, 0, 2) == "#!";
  } catch (const Error&) { return false; }
}

/// Empty if there is none.
std::string first_word_of(const fs::path& file) try {
  const std::string all = read_text_file(file);
  return all.substr(0, all.find_first_of(" \t\r\n"));
} catch (const Error&) { return {}; }

/// The folder that holds bin/ and lib/ of the first Python on PATH; empty if there is none.
fs::path python_prefix() {
  for (const std::string& folder : parts_of(environment("PATH"), ':'))
    for (const char* name : {"python3", "python"}) {
      const fs::path program = fs::path(folder) / name;
      if (folder.empty() || !is_there(program)) continue;
      const fs::path prefix = fs::path(folder).parent_path();
      if (!is_script(program)) return prefix;
      // pyenv: a script that starts the version which is written in a file.
      std::string version = environment("PYENV_VERSION");
      if (version.empty()) version = first_word_of(prefix / "version");
      const fs::path chosen = prefix / "versions" / version;
      return !version.empty() && is_there(chosen / "lib") ? chosen : prefix;
    }
  return {};
}

void add_packages(std::vector<fs::path>& all, const fs::path& library) {
  for (const fs::path& entry : entries_of(library)) {
    if (!entry.filename().string().starts_with("python3")) continue;
    for (const char* name : {"site-packages", "dist-packages"})
      if (is_there(entry / name)) all.push_back(entry / name);
  }
}

/// xla_cuda12 and xla_cuda13 are both the plugin cuda.
std::string name_of_package(std::string folder) {
  if (folder.starts_with("xla_")) folder.erase(0, 4);
  while (!folder.empty() && folder.back() >= '0' && folder.back() <= '9') folder.pop_back();
  return folder;
}

bool is_plugin_library(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".so") && (name.find("plugin") != std::string::npos || name.find("pjrt") != std::string::npos);
}

void add_installed(std::vector<PluginFile>& files) {
  for (const fs::path& packages : python_packages()) {
    std::vector<fs::path> folders = entries_of(packages / "jax_plugins");
    std::ranges::reverse(folders);  // the newer CUDA first
    for (const fs::path& folder : folders)
      for (const fs::path& file : entries_of(folder))
        if (is_plugin_library(file))
          files.push_back({name_of_package(folder.filename().string()), file, packages.string()});
    if (const fs::path file = packages / "libtpu" / "libtpu.so"; is_there(file))
      files.push_back({"tpu", file, packages.string()});
  }
}

}  // namespace

std::string environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value ? value : "";
}

std::vector<fs::path> python_packages() {
  std::vector<fs::path> all;
  const fs::path prefix = python_prefix();
  if (prefix.empty()) return all;
  add_packages(all, prefix / "lib");
  if (is_there(prefix / "pyvenv.cfg")) return all;
  if (prefix == "/usr") add_packages(all, "/usr/local/lib");
  if (const std::string home = environment("HOME"); !home.empty()) add_packages(all, fs::path(home) / ".local/lib");
  return all;
}

std::vector<PluginFile> plugin_files() {
  std::vector<PluginFile> files;
  add_named(files);
  if (const std::string path = environment("TPU_LIBRARY_PATH"); !path.empty())
    files.push_back({"tpu", path, "TPU_LIBRARY_PATH"});
  add_installed(files);
  // A file is listed once; entries that are none have no path.
  std::vector<PluginFile> first;
  for (PluginFile& file : files)
    if (file.path.empty() || std::ranges::find(first, file.path, &PluginFile::path) == first.end())
      first.push_back(std::move(file));
  return first;
}

DeviceKind kind_of_name(std::string_view name) {
  for (const std::string_view known : {"cuda", "gpu", "rocm", "xla_cuda", "xla_rocm"})
    if (name.starts_with(known)) return DeviceKind::gpu;
  return name == "tpu" || name == "libtpu" ? DeviceKind::tpu : DeviceKind::plugin;
}

}  // namespace gradus::xla
