/// The steps of writing a file that appears whole or not at all: it is written under a temporary name beside its place,
/// then renamed. AtomicFile (formats/atomic_file.h) takes them for one file, exports (function/pending_file.h) for
/// several.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include "gradus/base/rooms.h"

namespace gradus {
namespace detail::inline rooms {

/// Opens a new file beside `place` for writing, and gives its descriptor and its name. A symbolic link is followed:
/// `place` becomes its target. A place that is no regular file, such as /dev/stdout or a pipe, is opened itself, and
/// `temporary` is empty. Unavailable if the directory is missing or read-only.
int open_beside(std::filesystem::path& place, std::string& temporary);

/// A name that no other file beside `place` has.
std::string name_beside(const std::filesystem::path& place, std::string_view ending);

/// Writes all bytes. ResourceExhausted on a full disk.
void write_whole(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& place);

/// Closes the file once its bytes are on the disk, as far as it lies on one: `is_regular`. A full disk may be noticed
/// here first.
void close_written(int descriptor, bool is_regular, const std::filesystem::path& place);

/// Throws what errno says: ResourceExhausted on a full disk, else Unavailable.
[[noreturn]] void fail_to_write(const std::filesystem::path& place, const char* what);

}  // namespace detail::inline rooms

/// Waits until the names in `directory` are on the disk. Unavailable if the system reports that they are not.
void sync_directory(const std::filesystem::path& directory);

}  // namespace gradus
