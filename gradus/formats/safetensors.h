/// Files of named arrays in the safetensors format: a JSON header of names, types, shapes and places, then the bytes.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include "gradus/formats/npz.h"
#include "gradus/tensor/buffer.h"
#include "gradus/tensor/shape.h"

namespace gradus {

struct NamedArray {
  std::string name;
  Spec spec;
  Ref<Buffer> data;
};

/// The file appears whole or not at all. ResourceExhausted on a full disk, Unavailable where it may not be written.
void write_safetensors(const std::filesystem::path& file, std::span<const NamedArray> arrays);
/// DataError names the file and what is wrong with it; Unavailable if it cannot be read.
std::vector<NamedArray> read_safetensors(const std::filesystem::path& file);
/// The same for bytes in memory; `name` stands for the file in messages.
std::vector<NamedArray> parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

/// The same of tensors, as save_npz and load_npz do it. InvalidArgument for two arrays of one name.
void save_safetensors(const std::filesystem::path& file, const NamedTensors& arrays);
NamedTensors load_safetensors(const std::filesystem::path& file);

}  // namespace gradus
