/// Where plugins may be: the places that JAX looks at, too. Nothing is loaded here.
#pragma once
#include <filesystem>
#include <string>
#include <vector>
#include "gradus/tensor/device.h"

namespace gradus::xla {

/// The value of a variable of the environment; empty without one.
std::string environment(const char* variable);

/// A library that may be a plugin.
struct PluginFile {
  std::string name;  // "cuda"
  std::filesystem::path path;
  std::string found_in = {};  // "PJRT_NAMES_AND_LIBRARY_PATHS"
  std::string problem = {};   // not empty: why there is none
};

/// In the order in which they are asked: PJRT_NAMES_AND_LIBRARY_PATHS ("name:path,name:path"), TPU_LIBRARY_PATH, and
/// the packages of the Python on PATH (jax_plugins/*/, libtpu).
std::vector<PluginFile> plugin_files();

/// The folders of the packages of the Python on PATH.
std::vector<std::filesystem::path> python_packages();

/// The kind of devices that a plugin of this name drives: cuda, gpu and rocm a gpu, tpu a tpu, others a plugin.
DeviceKind kind_of_name(std::string_view name);

}  // namespace gradus::xla
