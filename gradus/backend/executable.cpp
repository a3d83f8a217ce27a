/// Reports of programs of several parts.
#include "gradus/backend/executable.h"
#include <algorithm>

namespace gradus {

int ExecutableReport::stages() const {
  int stages = 0;
  for (const Kernel& kernel : kernels) stages = std::max(stages, kernel.stage + 1);
  return stages;
}

void ExecutableReport::add(ExecutableReport part, int stage) {
  for (Kernel& kernel : part.kernels) {
    kernel.stage += stage;
    kernels.push_back(std::move(kernel));
  }
  arena_bytes += part.arena_bytes;
  temporary_bytes += part.temporary_bytes;
  recomputed_bytes += part.recomputed_bytes;
  side_by_side_seconds += part.side_by_side_seconds;
  measured_seconds += part.measured_seconds;
  threads = std::max(threads, part.threads);
  for (std::string& note : part.notes)
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

}  // namespace gradus
