/// Kernels without the library, which is built with it: archives of object files, held as bytes.
#pragma once
#include <string_view>

namespace gradus::object {

/// The file of a target (cpu_backend::Processor::target), for its linker; empty if it is no part of this library.
std::string_view kernel_archive(std::string_view target);

}  // namespace gradus::object
