/// A plugin whose table has the right version and only those functions that GRADUS_HOLLOW_PLUGIN leaves: "but:1" leaves
/// all except the second one.
#include <cstdlib>
#include <cstring>
#include <string_view>
#include "gradus/backend/xla/pjrt_api.h"

using gradus::pjrt::Api;

namespace {

/// Stands for any function: it is never called.
void nothing() {}

Api table{};

}  // namespace

extern "C" const Api* GetPjrtApi() {
  table.head.struct_size = sizeof table;
  table.version.major = 0;
  table.version.minor = 80;
  const char* const given = std::getenv("GRADUS_HOLLOW_PLUGIN");
  const std::string_view way = given ? given : "";
  if (!way.starts_with("but:")) return &table;
  auto* const places = reinterpret_cast<char*>(&table);
  const std::size_t first = offsetof(Api, error_destroy), size = sizeof(&nothing);
  void (*const function)() = nothing;
  for (std::size_t at = first; at + size <= sizeof table; at += size) std::memcpy(places + at, &function, size);
  const std::size_t left_out = first + size * static_cast<std::size_t>(std::atoi(given + 4));
  if (left_out + size <= sizeof table) std::memset(places + left_out, 0, size);
  return &table;
}
