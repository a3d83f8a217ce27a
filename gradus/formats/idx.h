/// IDX, the file format of the MNIST data sets: a magic number with type and rank, the extents, then the elements, all
/// big endian. Reads plain and gzip files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

/// An array of an IDX file.
struct IdxArray {
  DType dtype = u8;                  // type of the elements
  std::vector<std::int64_t> dims;    // extents, 1 to 8 of them
  detail::Ref<detail::Buffer> data;  // row-major, in the byte order of the machine
};

/// Reads an array. Unavailable if the file cannot be read. DataError, with the byte, if the content does not fit the
/// header.
IdxArray read_idx(const std::filesystem::path& file);
/// read_idx for bytes in memory; `name` opens the errors.
IdxArray parse_idx(std::span<const std::byte> bytes, std::string name = "idx data");

/// Writes an array of u8, i8, i16, i32, f32 or f64, whole or not at all. InvalidArgument for another type or rank.
/// Unavailable or ResourceExhausted if the file cannot be written.
void write_idx(const std::filesystem::path& file, DType dtype, std::span<const std::int64_t> dims, const void* data);

/// Reads a file as a tensor, with the errors of read_idx.
Tensor load_idx(const std::filesystem::path& file);
/// Writes a tensor of at least one dimension, with the errors of write_idx.
void save_idx(const std::filesystem::path& file, const Tensor& x);

}  // namespace gradus
