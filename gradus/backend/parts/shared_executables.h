/// Executables of parts of graphs: parts that are equal are compiled once, while one of them is in use.
#pragma once
#include "gradus/backend/backend.h"

namespace gradus {

/// Compiles `graph`, which names no device, unless that was done and is still in use.
std::shared_ptr<const Executable> compile_once(Backend& backend, const Graph& graph, const CompileOptions& options);

/// An executable of a part of a program, for one device at a time.
struct PartOfProgram {
  Backend* backend;
  const Graph* graph;
};
/// compile_once of all parts. Each keeps to the budget of the options; if some cannot, the error names the largest that
/// one needs.
std::vector<std::shared_ptr<const Executable>> compile_parts(std::span<const PartOfProgram> parts,
                                                             const CompileOptions& options);

/// How many executables compile_once has compiled; those found again are not counted.
std::int64_t placed_compilations();

}  // namespace gradus
