/// Images of the jobs of a nested program.
#include "gradus/backend/cpu/run/control_images.h"
#include <cstddef>
#include <map>
#include "gradus/base/error.h"

namespace gradus {

DataImage image_of_thunk(const Lowered& lowered, const Binding& binding, std::size_t thunk) {
  const Thunk& of = lowered.thunks[thunk];
  const void* data = binding.data[thunk].get();
  if (binding.images[thunk] != nullptr) return binding.images[thunk](data);
  if (lowered.kept && lowered.kept->names.contains(of.run)) return DataImage::of_words(data, of.words);
  throw InvalidArgument(text("export_object: ", of.label,
                             " cannot come along in an object file: what computes it needs ",
                             "the mathematical library; compute it outside of the step, or with other ops"));
}

construct::Image construct::image_of(const NestedProgram& program) {
  if (!program) return nullptr;
  const Lowered& lowered = program.program().lowered();
  const Binding& binding = program.binding();
  const Graph& graph = program.program().graph();
  WholeImage<object::NestedStep> step({});
  std::vector<object::SlotEntry> slots;
  for (const auto& [slot, offset] : binding.temporaries)
    slots.push_back({slot, {object::Address::workspace, program.arena_offset() + offset}});
  step.set(&object::NestedStep::slots, std::move(slots));
  object::TableImage<object::JobEntry> jobs;
  std::map<const void*, Image> known;
  for (const Job& job : binding.jobs) {
    const auto thunk = at(job.thunk);
    Image& data = known[binding.data[thunk].get()];
    if (!data) data = std::make_shared<const DataImage>(image_of_thunk(lowered, binding, thunk));
    jobs.pointers.push_back({jobs.entries.size(), offsetof(object::JobEntry, run), nullptr, job.run});
    jobs.pointers.push_back({jobs.entries.size(), offsetof(object::JobEntry, data), data});
    jobs.entries.push_back({.extent = job.extent,
                            .thunk = job.thunk,
                            .scratch = program.arena_offset() + job.scratch,
                            .may_fail = job.may_fail});
  }
  step.set(&object::NestedStep::jobs, jobs);
  step.set(&object::NestedStep::inputs, as_numbers(graph.inputs));
  std::vector<object::NestedStep::Output> outputs;
  for (std::size_t k = 0; k < binding.outputs.size(); ++k) {
    const OutputSource& source = binding.outputs[k];
    outputs.push_back({source.slot, source.input, source.earlier, program.output_bytes()[k]});
  }
  step.set(&object::NestedStep::outputs, std::move(outputs));
  std::vector<object::NestedStep::InOutput> inside;
  for (const Inside& i : binding.inside) inside.push_back({i.value, i.output});
  step.set(&object::NestedStep::inside, std::move(inside));
  if (!binding.dimensions.empty())
    step.point(&object::NestedStep::dimensions, std::make_shared<const DataImage>(DataImage::of_words(
                                                    binding.dimensions.data(), std::ssize(binding.dimensions))));
  return std::make_shared<const DataImage>(step.take());
}

}  // namespace gradus
