/// IDX, the file format of the MNIST data sets: a magic number with type and rank, the extents, then the elements, all
/// big endian. Read plain or gzip.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>
#include "gradus/graph/tensor.h"

namespace gradus {

struct IdxArray {
  DType dtype = u8;
  std::vector<std::int64_t> dims;  // 1 to 8
  Ref<Buffer> data;                // row-major, in the byte order of the machine
};

/// Unavailable if the file cannot be read; DataError, with the place, if it is not what its header promises.
IdxArray read_idx(const std::filesystem::path& file);
/// The same of bytes in memory; `name` opens the errors.
IdxArray parse_idx(std::span<const std::byte> bytes, std::string name = "idx data");

/// Writes u8, i8, i16, i32, f32 or f64, whole or not at all. InvalidArgument for another type or rank; Unavailable or
/// ResourceExhausted if the file cannot be written.
void write_idx(const std::filesystem::path& file, DType dtype, std::span<const std::int64_t> dims, const void* data);

/// The array of a file as a tensor, with the errors of read_idx.
Tensor load_idx(const std::filesystem::path& file);
/// Writes a tensor, which must have a dimension; errors as of write_idx.
void save_idx(const std::filesystem::path& file, const Tensor& x);

}  // namespace gradus
