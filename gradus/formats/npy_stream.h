/// An array of NumPy from a stream, for files that contain such arrays.
#pragma once
#include <cstdint>
#include "gradus/formats/byte_stream.h"
#include "gradus/graph/tensor.h"

namespace gradus {

/// Reads an array from a stream that holds the `size` bytes of a file as load_npy takes it, and nothing else.
Tensor read_npy(ByteStream& stream, std::uint64_t size);

}  // namespace gradus
