/// HDF5 files as Keras uses them: groups within groups, and contiguous arrays. It is the form that h5py writes by
/// default (HDF5 File Format Specification, superblocks 0 and 1). Attributes are ignored.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/formats/safetensors.h"

namespace gradus {

/// All arrays, named by their paths: "layers/dense/vars/0". Little-endian floats and integers; opaque elements of two
/// bytes are bf16, as h5py stores those. DataError for anything else, naming the file and the place in it.
std::vector<NamedArray> parse_hdf5(std::span<const std::byte> bytes, std::string_view name);

/// The bytes in front of the arrays of an HDF5 file: the file is these bytes, then those of each array in order. Groups
/// follow from the paths. InvalidArgument for a path twice, an empty part of one, an array within an array, and for
/// bf16 and booleans, which HDF5 lacks.
std::string hdf5_header(std::span<const NamedArray> arrays);

}  // namespace gradus
