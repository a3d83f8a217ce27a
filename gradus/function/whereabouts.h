/// The addresses of the Variables and modules of this process. By them those within an object are found whose class
/// cannot be opened.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gradus::whereabouts {

enum class Kind { variable, module };

/// A handle was made at `at`, and exists until it leaves. From any thread.
void enter(const void* at, Kind kind);
void leave(const void* at);

struct Found {
  const void* at;
  Kind kind;
};
/// The Variables and modules within these bytes, in the order of addresses.
std::vector<Found> within(const void* begin, std::size_t bytes);

/// How often handles were made, have left or became handles of something else, so far: as long as the number is the
/// same, the contents of an object are the same.
std::uint64_t changes();
/// A handle stands for something else now.
void note_change();

}  // namespace gradus::whereabouts
