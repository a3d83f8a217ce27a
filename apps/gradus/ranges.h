/// What whole numbers the options of the command line may be.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

namespace gradus::command {

inline const CLI::Range epochs_range(std::int64_t{1}, std::int64_t{1'000'000});
inline const CLI::Range threads_range(std::int64_t{0}, std::int64_t{1024});  // also trials at once
inline const CLI::Range size_range(std::int64_t{1}, std::int64_t{1} << 40);
inline const CLI::Range count_range(std::int64_t{0}, std::int64_t{1} << 40);
inline const CLI::Range seed_range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max());

}  // namespace gradus::command
