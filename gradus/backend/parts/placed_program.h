/// Graphs whose values name several devices: parts of one device each.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus {

/// Compiles `graph`, which names several devices. Parts that do not depend on each other run side by side, with copies
/// between them.
std::shared_ptr<const Executable> compile_placed(Graph graph, const CompileOptions& options);

}  // namespace gradus
