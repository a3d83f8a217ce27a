/// Rows of a profile's report, for tests.
#pragma once
#include <string_view>
#include "gradus/profile/report.h"

namespace gradus {

/// The first row of this kind and name; null if there is none.
inline const ProfileRow* row_of(const ProfileReport& report, ProfileKind kind, std::string_view name) {
  for (const ProfileRow& row : report.rows)
    if (row.kind == kind && row.name == name) return &row;
  return nullptr;
}

}  // namespace gradus
