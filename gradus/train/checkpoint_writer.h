/// One writer at a time: two trainings that write checkpoints into one directory would remove each other's.
#pragma once
#include <filesystem>
#include <memory>

namespace gradus {

/// The right of this process to write into `directory`, which is made if it does not exist. It lasts until the last
/// copy is gone, or the process ends in any way: the lock is the kernel's. All callers in this process share it.
/// Unavailable, which names the other process, if another process holds it, and if the directory cannot be written;
/// ResourceExhausted on a full disk. On a file system without locks, a line on standard error says, once, that other
/// writers are not noticed.
std::shared_ptr<const void> hold_as_writer(const std::filesystem::path& directory);

}  // namespace gradus
