/// Graphs whose values name devices: compiled as parts of one device each.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus {

/// What runs `graph`. Without a named device that is what the backend of the default device makes of it. Of several
/// devices each gets its values; parts that do not depend on each other run side by side, and copies stand between
/// them. Graphs that are equal but for their devices are compiled once, while one of them is in use. A graph that joins
/// the shards of a batch runs on them (sharded_program.h).
std::shared_ptr<const Executable> compile_placed(Graph graph, const CompileOptions& options = {});

/// Whether a first run is sooner done by the interpreter; as Backend's, of what compile_placed would compile.
bool is_interpreted_sooner(const Graph& graph, const CompileOptions& options);

}  // namespace gradus
