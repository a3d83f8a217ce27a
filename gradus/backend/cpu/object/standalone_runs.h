/// Shared code of the parts that come along in object files: how jobs run on one thread.
#pragma once
#include "gradus/backend/cpu/object/step_layout.h"

namespace gradus::standalone {

/// The failure of a run: the first check that failed, and of that the lowest index.
struct Failure {
  std::int64_t job = -1, index = 0, value = 0;
};

/// True if all went well. Scratches lie behind `memory`.
bool run_jobs(const object::Table<object::JobEntry>& jobs, const std::int64_t* dimensions, void** slots,
              std::byte* memory, Failure& failure);

}  // namespace gradus::standalone
