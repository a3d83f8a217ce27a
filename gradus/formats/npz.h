/// NumPy's archives of named arrays: zip files of .npy files, as np.savez and np.savez_compressed write them.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Tensors with their names, in order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Writes an archive that is not compressed. "layer/kernel" is a name like any other. The file appears whole or not at
/// all. InvalidArgument for two arrays of one name or an empty one; otherwise as save_npy.
void save_npz(const std::filesystem::path& file, const NamedTensors& arrays);
/// Reads an archive in the order of the file: stored or deflated, also beyond 4 GiB. All checksums are compared.
/// DataError names the file and what is wrong with it, Unavailable if it cannot be read.
NamedTensors load_npz(const std::filesystem::path& file);
/// load_npz for bytes in memory; `name` stands for the file in messages.
NamedTensors parse_npz(std::span<const std::byte> bytes, const std::string& name);

}  // namespace gradus
