/// Files of named arrays in the safetensors format: a JSON header of names, types, shapes and offsets, then the bytes.
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

/// An array with its name.
struct NamedArray {
  std::string name;                  // key in the file
  Spec spec;                         // dtype and shape
  detail::Ref<detail::Buffer> data;  // elements, row-major
};

/// Writes arrays. The file appears whole or not at all. ResourceExhausted on a full disk, Unavailable where it may not
/// be written.
void write_safetensors(const std::filesystem::path& file, std::span<const NamedArray> arrays);
/// Reads all arrays. DataError names the file and what is wrong with it, Unavailable if it cannot be read.
std::vector<NamedArray> read_safetensors(const std::filesystem::path& file);
/// read_safetensors for bytes in memory; `name` stands for the file in messages.
std::vector<NamedArray> parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

/// Writes tensors, as save_npz does. InvalidArgument for two arrays of one name.
void save_safetensors(const std::filesystem::path& file, const NamedTensors& arrays);
/// Reads tensors, as load_npz does.
NamedTensors load_safetensors(const std::filesystem::path& file);

}  // namespace gradus
