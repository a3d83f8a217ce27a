/// The table of contents of the compiler: the passes of a graph, their order and their names.
///
///   1. Graph passes rewrite the graph. They know no sizes that are open and no device.
///   2. Step passes group its values into steps, which become kernels, and rewrite graph and steps.
///   3. Memory is planned (plan_memory.h), or, under a byte budget, planned again until it is kept (recompute.h).
///   4. Kernels are chosen and code is made (backend/), by the kernel choices.
///   5. An executor runs them, by the executor switches.
///
/// A pass is one file and one row here; docs/adding-a-pass.md shows how to write one. A name that is not fixed may be
/// left out of a compilation (CompileOptions::disable, FunctionOptions::disable, gradus_bench --disable).
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "gradus/compiler/steps.h"
#include "gradus/compiler/target_model.h"

namespace gradus {

/// Something that can be left out.
struct Choice {
  std::string_view name, does;
};

struct GraphPass {
  std::string_view name, does;
  void (*run)(Graph&);
  bool is_fixed = false;             // nothing else does its work, so it cannot be left out
  std::string_view instead_of = {};  // it runs where this is left out, and only there
};

/// The graph and its steps, on which step passes work. They may change all of it but the target.
struct Grouping {
  Graph& graph;
  const TargetModel& target;
  std::vector<Step> steps = {};
  /// Per value: which group of copies it belongs to, 0: none. Empty where nothing was copied.
  PerValue<int> copies = {};
};

struct StepPass {
  std::string_view name, does;
  void (*run)(Grouping&);
  bool is_fixed = false;
  std::string_view needs = {};       // without this it is left out, too
  std::string_view instead_of = {};  // it runs where this is left out, and only there
};

/// In the order in which they run.
std::span<const GraphPass> graph_passes();
std::span<const StepPass> step_passes();
/// The step passes of programs that the interpreter runs: no code is made, so nothing is fused.
std::span<const StepPass> interpreter_step_passes();
/// The choices that the backend makes for each kernel.
std::span<const Choice> kernel_choices();
/// The switches of how memory is planned and how kernels are run.
std::span<const Choice> executor_switches();

/// The names of all that can be left out: of passes, kernel choices and executor switches.
std::span<const std::string_view> pass_names();
bool is_disabled(std::span<const std::string> disable, std::string_view name);
/// True if an environment variable is set to anything but "0".
bool environment_asks(const char* variable);

/// Runs the graph passes in order, those in `disable` left out. InvalidArgument names an unknown name and lists the
/// known ones. Each pass is followed by the checks and the printing that the environment asks for: with
/// GRADUS_VERIFY=1 verify() of the graph (InternalError), with GRADUS_PRINT_PASSES=1 its text on stderr.
void run_graph_passes(Graph& graph, std::span<const std::string> disable);
/// Runs the step passes in the same way; after each, graph and steps are verified and printed. Returns the steps, in
/// order.
std::vector<Step> run_step_passes(std::span<const StepPass> passes, Graph& graph, std::span<const std::string> disable,
                                  const TargetModel& target = {});

}  // namespace gradus
