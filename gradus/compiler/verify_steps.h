/// The verifier of steps: the rules that hold after every step pass. Also their text form.
#pragma once
#include <span>
#include <string>
#include "gradus/compiler/plan_memory.h"
#include "gradus/compiler/steps.h"

namespace gradus {

/// A line a step: `loops %3 %4 -> %4`, its members and the values that it writes. A product that others run with is
/// marked: `product %5* %6 -> %6`.
std::string to_text(std::span<const Step> steps);

/// Throws InternalError unless these steps compute `graph` when they run in order:
///   - a value is a member of one step at most, and of a step of the kind that can compute it;
///   - an earlier step has written all that a step reads, and no later one computes a value that it waits for;
///   - every output of the graph, and everything that another step reads, is written by the step that computes it.
void verify(const Graph& graph, std::span<const Step> steps);

/// Throws an InternalError unless memory may be shared so. An output takes over an input only if that dies, has the
/// output's spec, and is read by no step after the one that first writes there. A value lies within an output only if
/// it is read no more once the output is written.
void verify(const Graph& graph, std::span<const Step> steps, const Sharing& sharing);

}  // namespace gradus
