/// Profiles that begin and end where a program says.
///
///   erased::ProfileSession session;
///   ...
///   std::cout << session.finish();
#pragma once
#include "gradus/profile/profile.h"
#include "gradus/profile/session.h"

namespace gradus::erased {

/// A profile of this thread, until its finish().
using gradus::ProfileSession;
/// A part of it with a row of its own.
using gradus::ProfileScope;
/// The report.
using gradus::ProfileReport;

}  // namespace gradus::erased
