/// One writer at a time: two trainings that write checkpoints into one directory would remove each other's.
#pragma once
#include <filesystem>
#include <memory>

namespace gradus {

/// The right of this process to write into `directory`, which is made if it does not exist. It lasts until the last
/// copy is gone, or the process ends, in whatever way: the lock is the kernel's. All who ask in this process share it.
/// Unavailable, which names the process that has it, if that is another one, and where the directory cannot be written;
/// ResourceExhausted on a full disk. On a file system without locks, once a line on standard error that nothing is
/// noticed there.
std::shared_ptr<const void> hold_as_writer(const std::filesystem::path& directory);

}  // namespace gradus
