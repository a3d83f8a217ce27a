/// NumPy's file format of one array: a header in Python's notation, then the elements.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include "gradus/graph/tensor.h"

namespace gradus {

/// Writes an array of any dtype, row-major. bf16 is written as two bytes without a meaning ("V2"), as NumPy has no such
/// type. The file appears whole or not at all. Unavailable where it may not be written, ResourceExhausted on a full
/// disk.
void save_npy(const std::filesystem::path& file, const Tensor& x);
/// Reads an array of either order and either byte order. DataError names the file and what is wrong with it,
/// Unavailable if it cannot be read.
Tensor load_npy(const std::filesystem::path& file);
/// load_npy without reading: the elements are the file's pages in memory, which the system reads when they are used,
/// and drops when memory is short. For arrays larger than memory: `data::from_tensor_slices(map_npy(file))` reads only
/// the rows that are used. The file must not shrink while the tensor lives: the system ends the program if it reads
/// pages that are gone. InvalidArgument for arrays that have to be changed to be used: column-major (fortran_order),
/// big endian, or not aligned to their elements; load_npy reads them. Other errors as load_npy.
Tensor map_npy(const std::filesystem::path& file);
/// load_npy for bytes in memory; `name` stands for the file in messages.
Tensor parse_npy(std::span<const std::byte> bytes, const std::string& name);

/// The bytes in front of the elements of such a file. InvalidArgument for a dtype that NumPy does not have.
std::string npy_header(const Spec& spec);

}  // namespace gradus
