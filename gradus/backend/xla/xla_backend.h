/// Devices of plugins as backends.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus::xla {

/// The backend of the plugins' devices of this kind.
Backend& backend_of_kind(DeviceKind kind);

}  // namespace gradus::xla
