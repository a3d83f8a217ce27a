/// The thunk of a branch or a loop: every member of the team goes through it, and they run the programs of its regions
/// together, or each its own rows of them. Worker 0 makes the copies.
#include "gradus/backend/cpu/run/control.h"
#include <algorithm>
#include "gradus/backend/cpu/run/construct.h"

namespace gradus {
namespace {

/// Calls use(op) with the op of a branch or a loop.
template <class Use> auto with_construct(const AnyOp& op, Use use) {
  if (const Cond* branch = op.as<Cond>()) return use(*branch);
  if (const Scan* scan = op.as<Scan>()) return use(*scan);
  if (const While* loop = op.as<While>()) return use(*loop);
  throw InternalError(text("internal fault: the backend has no construct `", op->control, "`"));
}

}  // namespace

Thunk lower_control(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options, Lowered& out) {
  const AnyOp& op = (*graph)[step.members.front()].op;
  Thunk thunk{.shared_slot = out.slots++, .label = std::string(op->name), .controls = true};
  construct::Place place = construct::place_of(*graph, step, thunk.shared_slot);
  with_construct(op, [&](const auto& of) { construct::lower(of, std::move(place), options, thunk); });
  return thunk;
}

std::string_view standalone_name(KernelFunction run) {
  return run == construct::cond_function()    ? "gradus_object_cond"
         : run == construct::scan_function()  ? "gradus_object_scan"
         : run == construct::while_function() ? "gradus_object_while"
                                              : "";
}

Thunk outline_control(std::shared_ptr<const Graph> graph, const Step& step, const CompileOptions& options,
                      Lowered& out) {
  const construct::Place place = construct::place_of(*graph, step, out.slots);
  const auto bytes = [&](const auto& op) { return construct::planned_bytes(op, place, options); };
  return {.shared_scratch = with_construct((*graph)[step.members.front()].op, bytes), .shared_slot = out.slots++};
}

}  // namespace gradus
