/// The one door to compilation: functions and lazy programs of every device come through it.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus {

/// Compiles `graph`. If it names no device, the backend of the default device does it. If it names several, each gets
/// its values; parts that do not depend on each other run side by side, with copies between them. Graphs that are equal
/// but for their devices are compiled once, while one of them is in use. A graph that joins the shards of a batch runs
/// on them (parts/sharded_program.h).
std::shared_ptr<const Executable> compile(Graph graph, const CompileOptions& options = {});

/// True if the interpreter does a first run of compile()'s program sooner.
bool is_interpreted_sooner(const Graph& graph, const CompileOptions& options);

}  // namespace gradus
