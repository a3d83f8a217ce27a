/// Compiled programs of lazy evaluation, keyed by structure and bounded in bytes. The first sight of a structure gets
/// an interpreted program where that is sooner done, the second a compiled one.
#pragma once
#include <functional>
#include <span>
#include "gradus/backend/program.h"

namespace gradus {

/// The program of the structure that `key` spells exactly; `build` makes its graph if it is not known.
std::shared_ptr<const Program> cached_program(std::span<const std::uint64_t> key, const std::function<Graph()>& build);

struct ProgramCacheUse {
  std::size_t entries, bytes, limit_bytes;
};
ProgramCacheUse program_cache_use();
void set_program_cache_limit(std::size_t bytes);

}  // namespace gradus
