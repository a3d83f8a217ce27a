/// Shared code of branches and loops: the places of operands and results, and the compiled parts of their regions.
#pragma once
#include <span>
#include <vector>
#include "gradus/backend/cpu/run/nested.h"
#include "gradus/base/numbered.h"
#include "gradus/ops/control_ops.h"

namespace gradus::construct {

using Symbols = std::span<const std::int64_t>;
using Inputs = std::vector<const void*>;
using Outputs = std::vector<void*>;

/// A step as the graph says it: operands by storage, results by output.
struct Place {
  std::vector<int> operands;  // slots
  std::vector<int> results;   // per output of the op its slot; -1: unused
  int memory = -1;            // the slot of its scratch
};
Place place_of(const Graph& graph, const Step& step, int memory);

// ---------------------------------------------------------------- regions

/// The program of a region as far as `outputs` are asked for. Its first inputs are the carries, which it may overwrite.
std::shared_ptr<const CpuProgram> compile_region(const Region& region, const std::vector<int>& outputs, int carries,
                                                 const CompileOptions& options);
/// The memory of such a program and two places for each carry, about and rather more, found without making code.
std::int64_t bytes_of_region(const Region& region, const std::vector<int>& outputs, int carries,
                             const CompileOptions& options);

/// Per input of a region, whether the outputs in `wanted` depend on it.
std::vector<bool> inputs_needed(const Region& region, const std::vector<bool>& wanted);
/// The outputs of the bodies that have to be computed: used ones, and the carries on which they depend.
std::vector<int> outputs_needed(std::vector<bool> wanted, std::span<const Region* const> bodies, int carries);
/// Results that are asked for, a carry by its last value or its history.
std::vector<bool> outputs_asked(const Place& place, std::size_t outputs, int carries, int first_history);

// ---------------------------------------------------------------- thunks

/// Adds the cost of the programs that a thunk runs, each at most `times` times.
void note_programs(BoundThunk& thunk, std::initializer_list<const NestedProgram*> programs, std::int64_t times);
/// Reports a failure within as that of the thunk. Worker 0 alone reports it, and it alone may ask a program for its
/// failure.
void report(const KernelArguments& arguments, std::exception_ptr failure);

template <class Code>
void finish(Thunk& thunk, std::shared_ptr<const Code> code, KernelFunction run,
            BoundThunk (*bind)(const std::shared_ptr<const Code>&, Symbols)) {
  thunk.run = run;
  thunk.bind = [code = std::move(code), bind](Symbols symbols) { return bind(code, symbols); };
}

inline std::int64_t bytes_for(const Spec& spec, Symbols symbols) {
  return bytes_of({spec.dtype, spec.shape.evaluated(symbols)});
}

// ---------------------------------------------------------------- the constructs: cond.cpp, scan.cpp, while.cpp

void lower(const Cond& op, Place place, const CompileOptions& options, Thunk& thunk);
void lower(const Scan& op, Place place, const CompileOptions& options, Thunk& thunk);
void lower(const While& op, Place place, const CompileOptions& options, Thunk& thunk);
/// The functions of their thunks.
KernelFunction cond_function();
KernelFunction scan_function();
KernelFunction while_function();
/// The shared scratch of a step, see outline_control().
std::int64_t planned_bytes(const Cond& op, const Place& place, const CompileOptions& options);
std::int64_t planned_bytes(const Scan& op, const Place& place, const CompileOptions& options);
std::int64_t planned_bytes(const While& op, const Place& place, const CompileOptions& options);

}  // namespace gradus::construct
