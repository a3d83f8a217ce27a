/// A loop that goes on as long as its condition holds.
#include "gradus/backend/cpu/run/carries.h"

namespace gradus::construct {
namespace {

struct WhileCode : LoopCode {
  While op;
  std::shared_ptr<const CpuProgram> condition;
};
struct BoundWhile {
  std::shared_ptr<const WhileCode> code;
  NestedProgram condition, body;
  Carries carries;
};

/// One run of a while loop. The memory: the carries, two answers of the condition, the two programs. The answers take
/// turns, since a member may still look at the last one while another asks again.
class WhileRun {
 public:
  static constexpr std::int64_t answer_bytes = 64, answers = 2;

  WhileRun(const BoundWhile& bound, const KernelArguments& arguments)
      : bound_(bound),
        op_(bound.code->op),
        arguments_(arguments),
        slots_(arguments.slots),
        memory_(static_cast<std::byte*>(slots_[bound.code->place.memory])),
        answers_(memory_ + bound.carries.bytes()),
        carries_(bound.carries, *bound.code, 0, arguments, memory_, op_.max_iterations) {
    for (int slot : bound.code->place.operands) inputs_.push_back(slots_[slot]);
    outputs_.resize(bound.code->outputs.size());
  }

  void run() {
    const TeamMember& member = *arguments_.member;
    std::byte* const asking = answers_ + answers * answer_bytes;
    std::byte* const doing = asking + bound_.condition.bytes();
    bound_.condition.prepare(member, asking);
    bound_.body.prepare(member, doing);
    std::int64_t count = 0;
    for (; op_.max_iterations == 0 || count < op_.max_iterations; ++count) {
      std::byte* const answer = answers_ + count % answers * answer_bytes;
      void* const asked[] = {answer};
      take_carries();
      if (!bound_.condition.run(member, asking, inputs_, asked)) [[unlikely]]
        return fail_in_iteration(arguments_, bound_.condition, asking, count, "while_loop");
      member.meet();
      if (!*reinterpret_cast<const bool*>(answer)) break;
      carries_.enter(count);
      take_carries();
      for (std::size_t c = 0; c < outputs_.size(); ++c) outputs_[c] = carries_.target(c, count + 1);
      if (!bound_.body.run(member, doing, inputs_, outputs_)) [[unlikely]]
        return fail_in_iteration(arguments_, bound_.body, doing, count, "while_loop");
      for (std::size_t c = 0; c < outputs_.size(); ++c) carries_.moved_to(c, outputs_[c]);
    }
    carries_.leave(count);
    if (const int slot = bound_.code->place.results[at(op_.carries)]; slot >= 0 && member.worker == 0)
      *static_cast<std::int64_t*>(slots_[slot]) = count;
  }

 private:
  void take_carries() {
    for (std::size_t c = 0; c < outputs_.size(); ++c) inputs_[at(bound_.carries.plans()[c].number)] = carries_.now(c);
  }

  const BoundWhile& bound_;
  const While& op_;
  const KernelArguments& arguments_;
  void* const* slots_;
  std::byte* memory_;
  std::byte* answers_;
  CarryPlaces carries_;
  Inputs inputs_;
  Outputs outputs_;
};

void run_while(const KernelArguments* arguments, std::int64_t, std::int64_t) {
  WhileRun(*static_cast<const BoundWhile*>(arguments->data), *arguments).run();
}

DataImage image_of_while(const void* data) {
  const auto& bound = *static_cast<const BoundWhile*>(data);
  const WhileCode& code = *bound.code;
  object::WhileStep step;
  step.memory = code.place.memory, step.carry_bytes = bound.carries.bytes();
  step.condition_bytes = bound.condition.bytes(), step.most = code.op.max_iterations;
  step.count = code.place.results[at(code.op.carries)];
  WholeImage<object::WhileStep> image(step);
  image.point(&object::WhileStep::condition, image_of(bound.condition));
  image.point(&object::WhileStep::body, image_of(bound.body));
  image.set(&object::WhileStep::operands, as_numbers(code.place.operands));
  image.set(&object::WhileStep::plans, steps_of(bound.carries, code.place, 0));
  return image.take();
}

BoundThunk bind_while(const std::shared_ptr<const WhileCode>& code, Symbols symbols) {
  const While& op = code->op;
  auto bound = std::make_shared<BoundWhile>();
  bound->code = code;
  bound->condition = NestedProgram(code->condition, symbols);
  bound->body = NestedProgram(code->body, symbols);
  bound->carries = Carries(*code, op.carries, 0, op.max_iterations > 0 ? op.carries + 1 : -1, symbols);
  BoundThunk thunk{.shared_scratch = bound->carries.bytes() + WhileRun::answers * WhileRun::answer_bytes +
                                     bound->condition.bytes() + bound->body.bytes()};
  constexpr std::int64_t unknown = 100;  // iterations
  note_programs(thunk, {&bound->condition, &bound->body}, op.max_iterations > 0 ? op.max_iterations : unknown);
  thunk.data = std::move(bound);
  thunk.image = image_of_while;
  return thunk;
}

std::vector<int> outputs_of(const While& op, const Place& place) {
  std::vector<bool> asked =
      outputs_asked(place, at(op.carries), op.carries, op.max_iterations > 0 ? op.carries + 1 : -1);
  const std::vector<bool> looked_at = inputs_needed(op.condition, {true});
  for (std::size_t k = 0; k < asked.size(); ++k) asked[k] = asked[k] || looked_at[k];
  const Region* const bodies[] = {&op.body};
  return outputs_needed(std::move(asked), bodies, op.carries);
}

}  // namespace

void lower(const While& op, Place place, const CompileOptions& options, Thunk& thunk) {
  auto code = std::make_shared<WhileCode>();
  code->op = op;
  code->outputs = outputs_of(op, place);
  code->place = std::move(place);
  code->condition = compile_region(op.condition, {0}, 0, options);
  code->body = compile_region(op.body, code->outputs, op.carries, options);
  thunk.nested = {code->condition, code->body};
  finish<WhileCode>(thunk, std::move(code), run_while, bind_while);
}

KernelFunction while_function() { return run_while; }

/// The condition and the body are alive at the same time.
std::int64_t planned_bytes(const While& op, const Place& place, const CompileOptions& options) {
  return bytes_of_region(op.condition, {0}, 0, options) +
         bytes_of_region(op.body, outputs_of(op, place), op.carries, options) +
         WhileRun::answers * WhileRun::answer_bytes;
}

}  // namespace gradus::construct
