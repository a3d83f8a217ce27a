/// Folders whose files are run, as caches of machine code are: nobody but this user, and root, may be able to put
/// something there.
#pragma once
#include <filesystem>
#include <string>

namespace gradus {

/// A folder as the file system has it, or why it is none.
struct CodeFolder {
  std::filesystem::path path = {};  // absolute, without links; empty where there is a problem
  std::string problem = {};         // for people, with how to mend it
};

/// The folder `named`, which is made for this user alone if it is not there. A problem where it cannot be made, or
/// where another user owns it, may write there, or may put another one in its place (is_own_place).
CodeFolder code_folder(const std::filesystem::path& named);

/// Empty if no user but this one and root can change what is at `path`, which is absolute and without links: as the
/// owner of it or of a folder above it, or by its mode. A folder with the sticky bit, as /tmp, keeps what others have
/// put there, and a group that has no member but this user is this user. Else who can, and how to mend it.
std::string why_not_own_place(const std::filesystem::path& path);

/// True if a file in such a folder is one of this user or of root, whom alone it lets write. False if there is none.
bool is_own_file(const std::filesystem::path& file);

}  // namespace gradus
