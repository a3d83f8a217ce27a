/// How often this thread has asked operator new for memory, which is replaced in the program of these tests;
/// nothing where sanitizers replace it.
#pragma once
#include <optional>

namespace gradus {

std::optional<int> allocations_so_far();

}  // namespace gradus
