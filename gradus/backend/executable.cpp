/// Reports of programs of several parts.
#include "gradus/backend/executable.h"
#include <algorithm>

namespace gradus {
namespace {

template <class Executables, class F> auto sum(const Executables& all, const F& of) {
  decltype(of(*all[0])) total{};
  for (const auto& each : all) total += of(*each);
  return total;
}
template <class Executables, class F> int most(const Executables& all, int least, const F& of) {
  for (const auto& each : all) least = std::max(least, of(*each));
  return least;
}

}  // namespace

std::int64_t ExecutableOfParts::arena_bytes(std::span<const std::int64_t> symbols) const {
  return sum(executables_, [&](const Executable& e) { return e.arena_bytes(symbols); });
}
std::int64_t ExecutableOfParts::temporary_bytes(std::span<const std::int64_t> symbols) const {
  return sum(executables_, [&](const Executable& e) { return e.temporary_bytes(symbols); });
}
std::int64_t ExecutableOfParts::recomputed_bytes() const {
  return sum(executables_, [](const Executable& e) { return e.recomputed_bytes(); });
}
double ExecutableOfParts::side_by_side_seconds(std::span<const std::int64_t> symbols) const {
  return sum(executables_, [&](const Executable& e) { return e.side_by_side_seconds(symbols); });
}
int ExecutableOfParts::team(std::span<const std::int64_t> symbols) const {
  return most(executables_, 1, [&](const Executable& e) { return e.team(symbols); });
}
double ExecutableOfParts::measured_seconds() const {
  return sum(executables_, [](const Executable& e) { return e.measured_seconds(); });
}
int ExecutableOfParts::measured_team() const {
  return most(executables_, 0, [](const Executable& e) { return e.measured_team(); });
}
double ExecutableOfParts::compile_seconds() const {
  return sum(executables_, [](const Executable& e) { return e.compile_seconds(); });
}
std::size_t ExecutableOfParts::footprint() const {
  return sum(executables_, [](const Executable& e) { return e.footprint(); });
}

}  // namespace gradus
