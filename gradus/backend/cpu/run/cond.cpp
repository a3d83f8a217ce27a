/// A branch: both sides are programs; one of them runs.
#include <algorithm>
#include "gradus/backend/cpu/run/construct.h"
#include "gradus/backend/cpu/run/control_images.h"

namespace gradus::construct {
namespace {

struct CondCode {
  Place place;
  std::vector<int> outputs;  // that are computed
  std::shared_ptr<const CpuProgram> if_true, if_false;
};
struct BoundCond {
  std::shared_ptr<const CondCode> code;
  NestedProgram if_true, if_false;
};

void run_cond(const KernelArguments* arguments, std::int64_t, std::int64_t) {
  const auto& bound = *static_cast<const BoundCond*>(arguments->data);
  const Place& place = bound.code->place;
  const bool chosen = *static_cast<const bool*>(arguments->slots[place.operands[0]]);
  const NestedProgram& taken = chosen ? bound.if_true : bound.if_false;
  Inputs inputs;
  for (std::size_t i = 1; i < place.operands.size(); ++i) inputs.push_back(arguments->slots[place.operands[i]]);
  Outputs outputs;
  for (int k : bound.code->outputs) outputs.push_back(arguments->slots[place.results[at(k)]]);
  auto* memory = static_cast<std::byte*>(arguments->slots[place.memory]);
  taken.prepare(*arguments->member, memory);
  if (!taken.run(*arguments->member, memory, inputs, outputs) && arguments->member->worker == 0)
    report(*arguments, taken.failure(memory));
}

DataImage image_of_cond(const void* data) {
  const auto& bound = *static_cast<const BoundCond*>(data);
  const Place& place = bound.code->place;
  object::BranchStep step;
  step.memory = place.memory;
  WholeImage<object::BranchStep> image(step);
  image.point(&object::BranchStep::if_true, image_of(bound.if_true));
  image.point(&object::BranchStep::if_false, image_of(bound.if_false));
  image.set(&object::BranchStep::operands, as_numbers(place.operands));
  std::vector<std::int64_t> outputs;
  for (int k : bound.code->outputs) outputs.push_back(place.results[at(k)]);
  image.set(&object::BranchStep::outputs, std::move(outputs));
  return image.take();
}

BoundThunk bind_cond(const std::shared_ptr<const CondCode>& code, Symbols symbols) {
  auto bound = std::make_shared<BoundCond>(
      BoundCond{code, NestedProgram(code->if_true, symbols), NestedProgram(code->if_false, symbols)});
  BoundThunk thunk{.shared_scratch = std::max(bound->if_true.bytes(), bound->if_false.bytes())};
  note_programs(thunk, {&bound->if_true, &bound->if_false}, 1);
  thunk.data = std::move(bound);
  thunk.image = image_of_cond;
  return thunk;
}

std::vector<int> outputs_of(const Cond&, const Place& place) {
  return outputs_needed(outputs_asked(place, place.results.size(), 0, -1), {}, 0);
}

}  // namespace

void lower(const Cond& op, Place place, const CompileOptions& options, Thunk& thunk) {
  auto code = std::make_shared<CondCode>();
  code->outputs = outputs_of(op, place);
  code->place = std::move(place);
  code->if_true = compile_region(op.if_true, code->outputs, 0, options);
  code->if_false = compile_region(op.if_false, code->outputs, 0, options);
  thunk.nested = {code->if_true, code->if_false};
  finish<CondCode>(thunk, std::move(code), run_cond, bind_cond);
}

KernelFunction cond_function() { return run_cond; }

std::int64_t planned_bytes(const Cond& op, const Place& place, const CompileOptions& options) {
  const std::vector<int> outputs = outputs_of(op, place);
  return std::max(bytes_of_region(op.if_true, outputs, 0, options), bytes_of_region(op.if_false, outputs, 0, options));
}

}  // namespace gradus::construct
