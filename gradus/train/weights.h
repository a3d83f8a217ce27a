/// Weights of modules to and from files.
#pragma once
#include <filesystem>
#include "gradus/formats/npz.h"
#include "gradus/nn/module.h"

namespace gradus {

/// All variables by name. The file appears whole or not at all. InvalidArgument if two have the same name, Unavailable
/// where it may not be written, ResourceExhausted on a full disk.
void save_safetensors(const std::filesystem::path& file, const Module& module);
/// Names, shapes and dtypes must match those of the module, which is built: InvalidArgument if it is not, or names the
/// first that does not match, and nothing changes. DataError for a broken file, Unavailable if it cannot be read.
void load_safetensors(const std::filesystem::path& file, Module& module);

/// The same as an archive of NumPy: np.load(file)["dense/kernel"].
void save_npz(const std::filesystem::path& file, const Module& module);
void load_npz(const std::filesystem::path& file, Module& module);

}  // namespace gradus
