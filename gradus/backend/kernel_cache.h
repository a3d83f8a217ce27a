/// The kernel cache on disk: generated code that outlives the process.
#pragma once
#include <filesystem>

namespace gradus {

/// From now on generated code is kept in files of `directory`, which is created if missing, and code found there is not
/// generated again: a process that runs known programs starts sooner. An empty path switches it off, as it is at first
/// unless the environment variable GRADUS_KERNEL_CACHE names a directory. Results are the same bits.
///
/// A file serves one kind of processor and one version of the library; a damaged one is made again. The oldest go when
/// there are more than 256 MiB. Files hold machine code, which is run, so a new directory lets only this user write.
/// InvalidArgument if it cannot be made, or if other users own or can write it or a directory above it.
void set_kernel_cache(const std::filesystem::path& directory);

}  // namespace gradus
