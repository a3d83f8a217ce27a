/// A loop over elements. Sequences are read, and results stacked, in place.
#include <algorithm>
#include "gradus/backend/cpu/run/carries.h"
#include "gradus/compiler/pipeline.h"

namespace gradus::construct {
namespace {

struct ScanCode : LoopCode {
  Scan op;
  bool may_keep_apart = false;  // members may have rows of their own
};
struct BoundScan {
  std::shared_ptr<const ScanCode> code;
  NestedProgram body, last;
  Carries carries;
  std::int64_t iterations = 0;
  std::vector<std::int64_t> step_in, step_out;  // bytes from one iteration's to the next one's; 0: seen whole
};

/// One run of a scan.
class ScanRun {
 public:
  ScanRun(const BoundScan& bound, const KernelArguments& arguments)
      : bound_(bound),
        op_(bound.code->op),
        place_(bound.code->place),
        arguments_(arguments),
        slots_(arguments.slots),
        memory_(static_cast<std::byte*>(slots_[place_.memory])),
        count_(op_.counted ? std::clamp<std::int64_t>(*static_cast<const std::int64_t*>(slots_[place_.operands[0]]), 0,
                                                      bound.iterations)
                           : bound.iterations),
        carries_(bound.carries, *bound.code, op_.first_carry(), arguments, memory_, bound.iterations) {
    for (std::size_t i = at(op_.first_carry()); i < place_.operands.size(); ++i)
      inputs_.push_back(slots_[place_.operands[i]]);
    outputs_.resize(bound.code->outputs.size());
  }

  void run() {
    std::byte* programs = memory_ + bound_.carries.bytes();
    const TeamMember& member = *arguments_.member;
    const NestedProgram* prepared = nullptr;
    for (std::int64_t t = 0; t < count_; ++t) {
      const std::int64_t i = element(t);
      const NestedProgram& body = bound_.last && i + 1 == bound_.iterations ? bound_.last : bound_.body;
      if (prepared != &body) {
        if (prepared) member.meet();  // the other one's memory is this one's
        body.prepare(member, programs);
        prepared = &body;
      }
      point_at(t);
      if (t == 0 && body.keeps_apart(member)) member.meet();  // the first carries have been copied
      if (!body.run(member, programs, inputs_, outputs_)) [[unlikely]]
        return fail_in_iteration(arguments_, body, programs, i, "scan");
      for (std::size_t c = 0; c < bound_.carries.plans().size(); ++c)
        carries_.moved_to(c, outputs_[bound_.carries.plans()[c].output]);
    }
    carries_.leave(count_);
    clear_rest();
  }

 private:
  std::int64_t element(std::int64_t t) const { return t < 0 || t >= count_ ? -1 : op_.reverse ? count_ - 1 - t : t; }

  void point_at(std::int64_t t) {
    const std::int64_t i = element(t);
    carries_.enter(i);
    for (std::size_t c = 0; c < bound_.carries.plans().size(); ++c) {
      const CarryPlan& plan = bound_.carries.plans()[c];
      inputs_[at(plan.number)] = carries_.now(c);
      outputs_[plan.output] = carries_.target(c, element(t + 1));
    }
    for (std::size_t k = at(op_.carries); k < inputs_.size(); ++k)
      if (bound_.step_in[k] != 0)
        inputs_[k] = advanced(slots_[place_.operands[k + at(op_.first_carry())]], i * bound_.step_in[k]);
    for (std::size_t k = bound_.carries.plans().size(); k < outputs_.size(); ++k)
      outputs_[k] = advanced(slots_[place_.results[at(bound_.code->outputs[k])]], i * bound_.step_out[k]);
  }

  /// Iterations that did not happen leave zeros.
  void clear_rest() const {
    if (!op_.counted || arguments_.member->worker != 0) return;
    for (std::size_t k = bound_.carries.plans().size(); k < outputs_.size(); ++k)
      clear_bytes(advanced(slots_[place_.results[at(bound_.code->outputs[k])]], count_ * bound_.step_out[k]),
                  (bound_.iterations - count_) * bound_.step_out[k]);
  }

  const BoundScan& bound_;
  const Scan& op_;
  const Place& place_;
  const KernelArguments& arguments_;
  void* const* slots_;
  std::byte* memory_;
  const std::int64_t count_;
  CarryPlaces carries_;
  Inputs inputs_;
  Outputs outputs_;
};

void run_scan(const KernelArguments* arguments, std::int64_t, std::int64_t) {
  ScanRun(*static_cast<const BoundScan*>(arguments->data), *arguments).run();
}

DataImage image_of_scan(const void* data) {
  const auto& bound = *static_cast<const BoundScan*>(data);
  const ScanCode& code = *bound.code;
  object::ScanStep step;
  step.memory = code.place.memory, step.carry_bytes = bound.carries.bytes(), step.iterations = bound.iterations;
  step.counted = code.op.counted, step.reverse = code.op.reverse, step.carries = code.op.carries;
  step.first_carry = code.op.first_carry();
  WholeImage<object::ScanStep> image(step);
  image.point(&object::ScanStep::body, image_of(bound.body));
  image.point(&object::ScanStep::last, image_of(bound.last));
  image.set(&object::ScanStep::operands, as_numbers(code.place.operands));
  image.set(&object::ScanStep::step_in, bound.step_in);
  image.set(&object::ScanStep::step_out, bound.step_out);
  std::vector<std::int64_t> outputs;
  for (std::size_t k = bound.carries.plans().size(); k < code.outputs.size(); ++k)
    outputs.push_back(code.place.results[at(code.outputs[k])]);
  image.set(&object::ScanStep::outputs, std::move(outputs));
  image.set(&object::ScanStep::plans, steps_of(bound.carries, code.place, code.op.first_carry()));
  return image.take();
}

BoundThunk bind_scan(const std::shared_ptr<const ScanCode>& code, Symbols symbols) {
  const Scan& op = code->op;
  auto bound = std::make_shared<BoundScan>();
  bound->code = code;
  bound->iterations = dimension::evaluate(op.iterations, symbols);
  std::vector<int> handed_on;
  for (int k : code->outputs)
    if (code->may_keep_apart && k < op.carries) handed_on.push_back(k);
  bound->body = NestedProgram(code->body, symbols, std::move(handed_on), bound->iterations);
  if (code->last) bound->last = NestedProgram(code->last, symbols);
  bound->carries = Carries(*code, op.carries, 0, static_cast<int>(op.body.outputs()), symbols);
  for (std::size_t k = 0; k < op.body.inputs(); ++k) {
    const bool stepped = k >= at(op.carries) && k < at(op.first_whole() - op.first_carry());
    bound->step_in.push_back(stepped ? bytes_for(op.body.input(k), symbols) : 0);
  }
  for (int k : code->outputs) bound->step_out.push_back(bytes_for(op.body.output(at(k)), symbols));
  const std::int64_t programs = std::max(bound->body.bytes(), bound->last ? bound->last.bytes() : 0);
  BoundThunk thunk{.shared_scratch = bound->carries.bytes() + programs};
  note_programs(thunk, {&bound->body, &bound->last}, bound->iterations);
  thunk.data = std::move(bound);
  thunk.image = image_of_scan;
  return thunk;
}

std::vector<int> outputs_of(const Scan& op, const Place& place) {
  std::vector<const Region*> bodies{&op.body};
  if (op.last) bodies.push_back(&op.last);
  const auto results = op.body.outputs();
  return outputs_needed(outputs_asked(place, results, op.carries, static_cast<int>(results)), bodies, op.carries);
}

}  // namespace

void lower(const Scan& op, Place place, const CompileOptions& options, Thunk& thunk) {
  auto code = std::make_shared<ScanCode>();
  code->op = op;
  code->outputs = outputs_of(op, place);
  code->place = std::move(place);
  code->may_keep_apart = options.tier == Tier::compiled && !op.last && !is_disabled(options.disable, "rows");
  code->body = compile_region(op.body, code->outputs, op.carries, options);
  thunk.nested = {code->body};
  if (op.last) thunk.nested.push_back(code->last = compile_region(op.last, code->outputs, op.carries, options));
  finish<ScanCode>(thunk, std::move(code), run_scan, bind_scan);
}

KernelFunction scan_function() { return run_scan; }

std::int64_t planned_bytes(const Scan& op, const Place& place, const CompileOptions& options) {
  const std::vector<int> outputs = outputs_of(op, place);
  return std::max(bytes_of_region(op.body, outputs, op.carries, options),
                  bytes_of_region(op.last, outputs, op.carries, options));
}

}  // namespace gradus::construct
