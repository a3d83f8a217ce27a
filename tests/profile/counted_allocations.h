/// What this program allocates by operator new.
#pragma once
#include <cstdint>

namespace gradus {
std::int64_t counted_allocations();
}
