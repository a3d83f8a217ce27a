/// Names of traces, so that an error about a tensor of a trace that is over says which function made it. The latest
/// names are kept; a tensor that outlives its trace is mostly used soon after.
#pragma once
#include <string>
#include <string_view>
#include "gradus/graph/node.h"

namespace gradus {

/// From now on the trace `id` is called `name`, such as "function step".
void name_trace(std::uint32_t id, std::string_view name);

/// Says of a symbol or of what was computed from it: ", is symbolic: it was made while function step was traced, in
/// layer dense_1, and that call is over".
std::string origin_of(const detail::Node& node);

}  // namespace gradus
