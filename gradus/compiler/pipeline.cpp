/// The tables of passes, and the runner that verifies, prints and leaves them out by name. Decision 224 has the
/// reasons.
#include "gradus/compiler/pipeline.h"
#include <algorithm>
#include <cstdlib>
#include "gradus/base/floating_point_state.h"
#include "gradus/base/notice.h"
#include "gradus/base/rooms.h"
#include "gradus/compiler/lookups.h"
#include "gradus/compiler/passes.h"
#include "gradus/compiler/plan_memory.h"
#include "gradus/compiler/rederive.h"
#include "gradus/compiler/remake.h"
#include "gradus/compiler/verify_steps.h"

namespace gradus {
namespace {

// ---------------------------------------------------------------- the tables

constexpr GraphPass of_graphs[] = {
    {"inline", "calls of regions give way to what they call", inline_calls, true},
    {"hoist", "loop-invariant code motion: what is the same in every iteration is computed before the loop", hoist},
    {"compose", "attention becomes two products around a softmax, so scores stand in memory as a whole",
     compose_attention, true, "attention"},
    {"gathers", "bilinear samples of images become four gathers and their weighted sum", compose_samples, true,
     "samples"},
    {"fold", "constant folding", fold_constants},
    {"simplify", "algebraic rules that change no bit: x*1, a view of a view, a transpose that a product reads in place",
     simplify},
    {"eliminate", "common-subexpression and dead-code elimination", eliminate_common_subexpressions},
};

void keep_residuals_of(Grouping& of) { keep_residuals(of.graph, of.target); }
void look_up_of(Grouping& of) { look_up_in_place(of.graph, of.target); }
void fuse_all(Grouping& of) { of.steps = fuse(of.graph, true, {}, of.target); }
void fuse_nothing(Grouping& of) { of.steps = fuse(of.graph, false); }
void single_steps_of(Grouping& of) { of.steps = single_steps(of.graph); }
void rederive_of(Grouping& of) { of.steps = rederive(of.graph, std::move(of.steps), &of.copies, of.target); }
void remake_of(Grouping& of) {
  of.steps = remake(of.graph, std::move(of.steps), std::exchange(of.copies, {}), of.target);
}
void order_of(Grouping& of) { of.steps = order_steps(of.graph, std::move(of.steps)); }
void join_epilogues_of(Grouping& of) { of.steps = join_epilogues(of.graph, of.steps, of.target); }

constexpr StepPass order{"order", "what may fail comes first, what only makes outputs last", order_of, true};

constexpr StepPass of_steps[] = {
    {"residuals", "loops keep what their gradients would compute again", keep_residuals_of},
    {"lookups", "rows that indices choose are read in place by the loops that need them", look_up_of, false, "fuse"},
    {"fuse", "formulas, reductions and views become loop nests", fuse_all},
    {"single", "every value is a step of its own", fuse_nothing, true, {}, "fuse"},
    {"rederive", "rematerialization of cheap formulas for late readers", rederive_of, false, "fuse"},
    {"remake", "what products read late is stored anew by a late kernel that has it in registers", remake_of},
    order,
    // Steps that run in order may be far apart, and factors would live until their product's successor.
    {"epilogues", "formulas of a product run over each piece of it as soon as that is there", join_epilogues_of, false,
     "concurrency"},
};
constexpr StepPass of_interpreted_steps[] = {
    {"single", "every value is a step of its own", single_steps_of, true},
    order,
};

constexpr Choice of_kernels[] = {
    {"attention", "attention in blocks of queries. With AMX it changes bits of bf16"},
    {"samples", "bilinear samples read images in place, with all channels of a place at a time"},
    {"turns", "products with weights that are updated are divided by rows of the weights (split-K), as updates are"},
    {"strips", "convolutions read images in place, else their windows are packed"},
    {"depthwise", "convolutions of one channel a group have loops of their own; no bit of finite values changes"},
    {"winograd",
     "convolutions of many channels with kernels of 3 x 3 do fewer multiplications. They are rounded differently: the "
     "one name that changes bits without AMX"},
    {"share", "kernels of one structure are generated once, for all programs"},
};
constexpr Choice of_executor[] = {
    {"recompute", "rematerialization until a byte budget is kept; without it the budget does not hold"},
    {"reuse", "outputs take the memory of dying inputs, temporaries that of others"},
    {"concurrency", "independent steps run side by side"},
    {"rows", "where rows of what a loop hands on never meet, each thread has its own"},
    {"balance", "work stealing: threads that are done take over some of what others have to do"},
};

// ---------------------------------------------------------------- names

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      if constexpr (requires { row.is_fixed; })
        if (row.is_fixed) continue;
      names.push_back(row.name);
    }
  };
  add(of_graphs), add(of_steps), add(of_kernels), add(of_executor);
  return names;
}

void check_name(const std::string& name) {
  const std::span<const std::string_view> names = pass_names();
  if (std::ranges::find(names, name) != names.end()) return;
  std::string known;
  for (std::string_view each : names) known += text(known.empty() ? "" : ", ", each);
  throw InvalidArgument(text("compile: there is no pass `", name, "`; the passes are ", known));
}

template <class Pass> bool runs(const Pass& pass, std::span<const std::string> disable) {
  if (!pass.is_fixed && is_disabled(disable, pass.name)) return false;
  if constexpr (requires { pass.needs; })
    if (!pass.needs.empty() && is_disabled(disable, pass.needs)) return false;
  return pass.instead_of.empty() || is_disabled(disable, pass.instead_of);
}

// ---------------------------------------------------------------- inspection that the environment asks for

struct Inspection {
  const bool verifies = environment_asks("GRADUS_VERIFY"), prints = environment_asks("GRADUS_PRINT_PASSES");

  void after(std::string_view pass, const Graph& graph) const {
    if (prints) notice(text("after ", pass, ":\n", to_text(graph)));
    if (verifies) checked(pass, [&] { verify(graph); });
  }
  void after(std::string_view pass, const Grouping& grouping) const {
    if (prints) notice(text("after ", pass, ":\n", to_text(grouping.graph), to_text(grouping.steps)));
    if (verifies)
      checked(pass, [&] {
        verify(grouping.graph);
        if (!grouping.steps.empty()) verify(grouping.graph, grouping.steps);
      });
  }

 private:
  template <class Check> static void checked(std::string_view pass, Check check) {
    try {
      check();
    } catch (const InternalError& error) { throw InternalError(text("after the pass `", pass, "`: ", error.what())); }
  }
};

}  // namespace

std::span<const GraphPass> graph_passes() { return of_graphs; }
std::span<const StepPass> step_passes() { return of_steps; }
std::span<const StepPass> interpreter_step_passes() { return of_interpreted_steps; }
std::span<const Choice> kernel_choices() { return of_kernels; }
std::span<const Choice> executor_switches() { return of_executor; }

std::span<const std::string_view> pass_names() {
  static const std::vector<std::string_view> names = all_names();
  return names;
}

bool environment_asks(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::string_view(value) != "0";
}

bool is_disabled(std::span<const std::string> disable, std::string_view name) {
  return std::ranges::find(disable, name) != disable.end();
}

void run_graph_passes(Graph& graph, std::span<const std::string> disable) {
  const HostFloats floats;  // numbers that passes make do not depend on how the caller rounds
  for (const std::string& name : disable) check_name(name);
  const Inspection inspection;
  for (const GraphPass& pass : of_graphs) {
    if (!runs(pass, disable)) continue;
    pass.run(graph);
    inspection.after(pass.name, graph);
  }
}

std::vector<Step> run_step_passes(std::span<const StepPass> passes, Graph& graph, std::span<const std::string> disable,
                                  const TargetModel& target) {
  const HostFloats floats;  // numbers that passes make do not depend on how the caller rounds
  const Inspection inspection;
  Grouping grouping{graph, target};
  for (const StepPass& pass : passes) {
    if (!runs(pass, disable)) continue;
    pass.run(grouping);
    inspection.after(pass.name, grouping);
  }
  return std::move(grouping.steps);
}

}  // namespace gradus
