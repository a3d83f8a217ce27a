/// Files that an export writes: each appears whole, or not at all.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include "gradus/graph/graph.h"

namespace gradus {

/// A file under a name that is not its own yet. As AtomicFile of formats/: a link is followed, and a device or a pipe
/// is written to at once, since there is nothing to put in its place.
class PendingFile {
 public:
  /// Unavailable, which opens with `what`, if it cannot be written or is a folder: then no other file of the export has
  /// been put in place yet.
  PendingFile(std::string_view what, std::filesystem::path file, std::string_view bytes);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  void put_in_place();

 private:
  [[noreturn]] void fail() const;
  std::string what_;
  std::filesystem::path file_;
  std::string temporary_;
};

/// The program for one device, whatever device it names; InvalidArgument if it names several.
Graph without_devices(Graph graph, const std::string& title, std::string_view what);

}  // namespace gradus
