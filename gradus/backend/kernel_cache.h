/// The kernel cache on disk: generated code that outlives the process.
#pragma once
#include <filesystem>

namespace gradus {

/// Keeps generated code in files of `directory` from now on, which is created if missing. Code found there is not
/// generated again, so a process that runs known programs starts sooner. An empty path switches the cache off. At first
/// it is off, unless the environment variable GRADUS_KERNEL_CACHE names a directory. Results are the same bits.
///
/// A file serves one kind of processor and one version of the library; a damaged one is made again. The oldest are
/// removed when there are more than 256 MiB. Files hold machine code, which is run, so a new directory lets only this
/// user write. InvalidArgument if the directory cannot be made, or if other users own it or can write to it or to a
/// directory above it.
void set_kernel_cache(const std::filesystem::path& directory);

}  // namespace gradus
