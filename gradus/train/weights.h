/// Weights of modules to and from files.
#pragma once
#include <filesystem>
#include "gradus/formats/npz.h"
#include "gradus/nn/module.h"

namespace gradus {

/// All variables by name. The file appears whole or not at all. InvalidArgument if two have the same name.
void save_safetensors(const std::filesystem::path& file, const Module& module);
/// Names, shapes and dtypes must match those of the built module: InvalidArgument names the first that does not, and
/// nothing changes. DataError for a broken file.
void load_safetensors(const std::filesystem::path& file, Module& module);

/// The same as an archive of NumPy: np.load(file)["dense/kernel"].
void save_npz(const std::filesystem::path& file, const Module& module);
void load_npz(const std::filesystem::path& file, Module& module);

}  // namespace gradus
