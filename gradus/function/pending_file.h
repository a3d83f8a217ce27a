/// Files that an export writes: all appear whole, or none.
#pragma once
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include "gradus/graph/graph.h"

namespace gradus {

/// A file that is whole and on the disk, under a name that is not its own yet. Removed unless it is put in its place.
class PendingFile {
 public:
  /// Unavailable if it cannot be written, ResourceExhausted on a full disk. Links and pipes are as AtomicFile's.
  PendingFile(std::filesystem::path file, std::string_view bytes);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  /// Puts all in their places, and waits until their names are on the disk. An error puts back what was there before.
  static void put_in_place(std::deque<PendingFile>& files);

 private:
  std::filesystem::path file_;
  std::string temporary_;  // empty: it is in place, or written directly
};

/// The program for one device, whatever device it names; InvalidArgument if it names several.
Graph without_devices(Graph graph, const std::string& title, std::string_view what);

}  // namespace gradus
