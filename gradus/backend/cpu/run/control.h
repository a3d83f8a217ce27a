/// Control flow: branches and loops are steps that run programs of their own.
#pragma once
#include "gradus/backend/cpu/run/program.h"

namespace gradus {

/// The thunk of a step of kind control. The regions are compiled with the options of the program around them, as far as
/// outputs are asked for; the memory that they need is the shared scratch of the step, for which a slot is taken from
/// `out`.
Thunk lower_control(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options, Lowered& out);

/// The same thunk without code: it has that shared scratch for options.symbols, about and rather more.
Thunk outline_control(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options,
                      Lowered& out);

/// The function that stands for a branch or a loop in object files; empty for any other.
std::string_view standalone_name(KernelFunction run);

}  // namespace gradus
