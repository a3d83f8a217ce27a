/// Ranges of whole numbers for the options of the command line.
#pragma once
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

namespace gradus::command {

/// Reads the text itself: CLI11's conversion cuts off at 2^63 - 1 without a word.
inline CLI::Validator whole_number(std::int64_t low, std::int64_t high) {
  const std::string range = "in range " + std::to_string(low) + " to " + std::to_string(high);
  const auto check = [low, high, range](std::string& given) -> std::string {
    std::int64_t number = 0;
    const char* const end = given.data() + given.size();
    const auto [read_to, problem] = std::from_chars(given.data(), end, number);
    if (problem == std::errc() && read_to == end && number >= low && number <= high) return {};
    return "Value " + given + " is no whole number " + range;
  };
  return {check, "INT " + range};
}

inline const CLI::Validator epochs_range = whole_number(1, 1'000'000);
inline const CLI::Validator threads_range = whole_number(0, 1024);  // also trials at once
inline const CLI::Validator size_range = whole_number(1, std::int64_t{1} << 40);
inline const CLI::Validator count_range = whole_number(0, std::int64_t{1} << 40);
inline const CLI::Validator seed_range = whole_number(0, std::numeric_limits<std::int64_t>::max());

}  // namespace gradus::command
