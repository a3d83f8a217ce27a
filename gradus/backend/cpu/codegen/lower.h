/// Machine code for steps of loops: the entry of the code generator, free of LLVM's headers.
/// (The namespace cannot be called cpu: gradus::cpu() is a device.)
#pragma once
#include <span>
#include <vector>
#include "gradus/backend/cpu/run/program.h"
#include "gradus/graph/known_formulas.h"

namespace gradus::cpu_backend {

enum class Isa : std::uint8_t;

/// For how many kernels code was generated in this process so far. Steps of one structure share theirs, also those of
/// different programs; code that was found on disk does not count.
std::int64_t kernels_generated();

/// Per step the thunks of its loops, in order, if it has some. Enters the dimensions that the kernels ask for into
/// out.dimensions, takes slots for shared scratch from out.slots (the graph's values come
/// first, so it has to be at least graph.size() before) and makes out.owner keep the code. Thread-safe.
/// `shares`: steps of one structure share their code, also with those of other programs.
std::vector<std::vector<Thunk>> lower_loops(const Graph& graph, std::span<const Step> steps, Isa isa, Lowered& out,
                                            bool shares = true);

/// The same thunks without their code: their cost, shared scratch, and at least that of a worker.
std::vector<std::vector<Thunk>> outline_loops(const Graph& graph, std::span<const Step> steps, KnownFormulas& formulas,
                                              Lowered& out);

}  // namespace gradus::cpu_backend
