/// The choice of a target by its name.
#include "gradus/backend/cpu/object/targets.h"
#include <algorithm>
#include <string>
#include <vector>
#include "gradus/backend/cpu/isa.h"
#include "gradus/backend/cpu/object/kernel_archive.h"
#include "gradus/backend/cpu/object/link.h"
#include "gradus/backend/object.h"
#include "gradus/base/error.h"

namespace gradus {
namespace object {
namespace {

using cpu_backend::own_target;
using cpu_backend::Processor;
using cpu_backend::processors;

constexpr std::string_view of_target = "export_object: target (--target of gradus compile): ";
constexpr std::string_view of_set = "export_object: instruction_set (--instruction-set of gradus compile): ";

/// "a", "a or b", "a, b or c".
std::string one_of(const std::vector<std::string>& names) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i)
    all += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return all;
}

/// AMX is no choice: a process has to ask its kernel for it.
bool is_choice(const Processor& row, std::string_view target) { return row.target == target && !row.uses_amx; }

std::vector<std::string> sets_of(std::string_view target) {
  std::vector<std::string> names;
  for (const Processor& row : processors)
    if (is_choice(row, target)) names.emplace_back(row.name);
  return names;
}

/// This machine's first.
std::vector<std::string> target_names() {
  std::vector<std::string> names{std::string(own_target)};
  for (const Processor& row : processors)
    if (std::ranges::find(names, row.target) == names.end()) names.emplace_back(row.target);
  return names;
}

/// Why no object files can be made for a target; empty if they can.
std::string problem_of(std::string_view target) {
  if (kernel_archive(target).empty())
    return text("this library was built without the kernels of ", target, ", which it has where a cross compiler for ",
                target, " was installed as it was built (", "docs/dependencies.md)");
  const Processor& any = *std::ranges::find(processors, target, &Processor::target);
  const std::string tool = missing_tool(any);
  return tool.empty() ? "" : text("the program ", tool, " is not installed; binutils for ", target, " have it");
}

const Processor& named(std::string_view name, std::string_view target) {
  for (const Processor& row : processors)
    if (name == row.name && is_choice(row, target)) return row;
  for (const Processor& row : processors)
    if (name == row.name && !row.uses_amx)
      throw InvalidArgument(text(of_set, name, " is of ", row.target, ", and the object is for ", target, "; expected ",
                                 one_of(sets_of(target)), ", or the target ", row.target));
  throw InvalidArgument(text(of_set, "expected ", one_of(sets_of(target)), ", given '", printable(name, true),
                             "'; leave it out for the widest of this processor"));
}

}  // namespace

const Processor& processor_for(std::string_view target, std::string_view instruction_set) {
  const std::vector<std::string> known = target_names();
  if (target.empty()) target = own_target;
  require(std::ranges::find(known, target) != known.end(), of_target, "expected ", one_of(known), ", given '",
          printable(target, true), "'");
  const bool is_here = target == own_target;
  if (instruction_set.empty() && is_here) return processor_of(cpu_backend::isa());
  const Processor& chosen = named(instruction_set.empty() ? sets_of(target).front() : instruction_set, target);
  if (is_here) {
    const std::optional<cpu_backend::Isa> widest = cpu_backend::widest_isa();
    require<Unavailable>(widest && chosen.isa <= *widest, of_set, "this processor has no ", instruction_set,
                         ", so the object could not be tried here; expected ",
                         widest ? cpu_backend::name(*widest) : "a machine with AVX2, FMA and F16C");
  } else if (const std::string problem = problem_of(target); !problem.empty()) {
    throw Unavailable(text(of_target, problem));
  }
  return chosen;
}

}  // namespace object

std::vector<ObjectTarget> object_targets() {
  std::vector<ObjectTarget> all;
  for (const std::string& name : object::target_names())
    all.push_back({.name = name,
                   .instruction_sets = object::sets_of(name),
                   .is_here = name == cpu_backend::own_target,
                   .problem = object::problem_of(name)});
  return all;
}

}  // namespace gradus
