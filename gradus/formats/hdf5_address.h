/// Places within an HDF5 file, as its reader and its writer have them.
#pragma once
#include <cstdint>

namespace gradus {

using Hdf5Address = std::uint64_t;
inline constexpr Hdf5Address hdf5_nowhere = ~Hdf5Address{0};

}  // namespace gradus
