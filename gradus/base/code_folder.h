/// Folders whose files are run, such as caches of machine code: only this user and root may be able to write there.
#pragma once
#include <filesystem>
#include <string>

namespace gradus {

/// A folder with its resolved path, or the reason why it cannot be used.
struct CodeFolder {
  std::filesystem::path path = {};  // absolute, without links; empty where there is a problem
  std::string problem = {};         // for people, with a remedy
};

/// The folder `named`; if it does not exist, it is made for this user alone. `problem` is set if it cannot be made, or
/// if another user owns it, may write there, or may replace it (is_own_place).
CodeFolder code_folder(const std::filesystem::path& named);

/// Empty if only this user and root can change the place at `path`, which is absolute and without links, by owning it
/// or a folder above it, or by its mode. A folder with the sticky bit, as /tmp, protects the files of each user, and a
/// group whose only member is this user counts as this user. Otherwise the text says who can, and a remedy.
std::string why_not_own_place(const std::filesystem::path& path);

/// True if the file belongs to this user or root and no other user may write it. False if it does not exist.
bool is_own_file(const std::filesystem::path& file);

}  // namespace gradus
