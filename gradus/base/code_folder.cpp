#include "gradus/base/code_folder.h"
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include "gradus/base/error.h"

namespace gradus {
namespace {

namespace fs = std::filesystem;

/// The name of a user; empty if the system knows none.
std::string name_of(uid_t user) {
  std::array<char, 4096> place;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(user, &entry, place.data(), place.size(), &found) != 0 || found == nullptr) return {};
  return found->pw_name;
}

/// Many systems give each user a group of the user's own name, so that folders are group-writable.
bool is_of_this_user_alone(gid_t group) {
  std::array<char, 16384> place;
  struct group entry{};
  struct group* found = nullptr;
  const std::string user = name_of(geteuid());
  if (user.empty() || getgrgid_r(group, &entry, place.data(), place.size(), &found) != 0 || found == nullptr)
    return false;
  if (user != found->gr_name) return false;
  for (char** member = found->gr_mem; *member != nullptr; ++member)
    if (user != *member) return false;
  return true;
}

bool is_trusted(uid_t owner) { return owner == geteuid() || owner == 0; }

bool lets_others_write(const struct stat& status) {
  if ((status.st_mode & S_IWOTH) != 0) return true;
  return (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0 && !is_of_this_user_alone(status.st_gid);
}

std::string octal(mode_t mode) {
  TextStream out;
  out << std::oct << (mode & 07777);
  return std::move(out).str();
}

/// The problem of one place on the path; `is_last`: the place is the path's end.
std::string problem_of(const fs::path& place, bool is_last) {
  struct stat status{};
  if (lstat(place.c_str(), &status) != 0) return text(place.string(), ": ", std::generic_category().message(errno));
  if (!is_trusted(status.st_uid)) {
    const std::string name = name_of(status.st_uid);
    return text(place.string(), " belongs to user ", status.st_uid, name.empty() ? "" : " (" + name + ")",
                ", who could put code there that this process would run: name a folder of your own");
  }
  const bool keeps_files_of_others = !is_last && S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if (keeps_files_of_others || !lets_others_write(status)) return {};
  return text(place.string(), " can be written by other users (mode ", octal(status.st_mode),
              "), who could put code there that this process would run: `chmod go-w ", place.string(),
              "` mends it, or name a folder of your own");
}

/// Makes folders that only this user may write.
std::string problem_of_making(const fs::path& named) {
  std::error_code problem;
  if (fs::is_directory(named, problem)) return {};
  if (named.has_parent_path()) fs::create_directories(named.parent_path(), problem);
  if (mkdir(named.c_str(), 0700) == 0) return {};
  const int reason = errno;
  if (fs::is_directory(named, problem)) return {};  // another process has made it meanwhile
  return text(named.string(), " cannot be made: ", std::generic_category().message(reason));
}

}  // namespace

std::string why_not_own_place(const fs::path& path) {
  fs::path place;
  for (auto part = path.begin(); part != path.end();) {
    place /= *part;
    if (const std::string problem = problem_of(place, ++part == path.end()); !problem.empty()) return problem;
  }
  return {};
}

CodeFolder code_folder(const fs::path& named) {
  // "folder/" names the same as "folder".
  const fs::path folder = named.has_filename() ? named : named.parent_path();
  if (std::string problem = problem_of_making(folder); !problem.empty()) return {.problem = std::move(problem)};
  std::error_code problem;
  fs::path found = fs::canonical(folder, problem);
  if (problem) return {.problem = text(folder.string(), ": ", problem.message())};
  if (std::string why = why_not_own_place(found); !why.empty()) return {.problem = std::move(why)};
  return {.path = std::move(found)};
}

bool is_own_file(const fs::path& file) {
  struct stat status{};
  return lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && is_trusted(status.st_uid) &&
         !lets_others_write(status);
}

}  // namespace gradus
