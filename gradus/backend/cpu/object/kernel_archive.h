/// Kernels without the library, which is built with it: an archive of object files, held as bytes.
#pragma once
#include <string_view>

namespace gradus::object {

/// The file, for a linker.
std::string_view kernel_archive();

}  // namespace gradus::object
