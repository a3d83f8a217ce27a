/// The cache of programs of lazy evaluation, keyed by structure and bounded in bytes. A structure that is new is
/// interpreted, if that is done sooner. One that comes back soon, as in a loop, is compiled at its second use; one that
/// comes back after many others is compiled later, when that pays. Structures that differ in numbers alone, such as the
/// index of a row or the number of rows, share one program (OpenForm).
#pragma once
#include <functional>
#include <span>
#include "gradus/function/open_form.h"

namespace gradus {

/// The program of the structure that `key` spells exactly, the kind of device included; `build` makes its graph if it
/// is not known.
ProgramForSizes cached_program(const Device& device, std::span<const std::uint64_t> key,
                               const std::function<Graph()>& build);

struct ProgramCacheUse {
  std::size_t entries, bytes, limit_bytes;
  std::int64_t compilations;  // programs compiled so far, dropped ones included
};
ProgramCacheUse program_cache_use();
void set_program_cache_limit(std::size_t bytes);

}  // namespace gradus
