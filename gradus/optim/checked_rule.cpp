#include "gradus/optim/checked_rule.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

void check_spec(const UpdateRule& rule, const std::string& what, const Tensor& next, const Tensor& before) {
  require(next.defined() && next.spec() == before.spec(), "optimizer ", rule.name(), ": update() gives ", what,
          next.defined() ? text(" as ", next.spec()) : " as an empty tensor", ", expected ", before.spec(),
          " as before the step");
}

}  // namespace

UpdateRule::Shared shared_by(const UpdateRule& rule, const UpdateRule::StepNumbers& step,
                             std::span<const Tensor> joint) {
  UpdateRule::Shared shared = rule.share(step, joint);
  require(shared.state.size() == joint.size(), "optimizer ", rule.name(), ": share() gives ", shared.state.size(),
          " next values of the joint state, expected one for each of the ", joint.size(), " numbers of joint_state()");
  for (const std::vector<Tensor>* all : {&shared.numbers, &shared.state})
    for (const Tensor& x : *all)
      require(x.defined() && x.shape().rank() == 0, "optimizer ", rule.name(), ": share() gives ",
              x.defined() ? text(x.spec()) : "an empty tensor", ", expected f64 scalars");
  return shared;
}

UpdateRule::Updated updated_by(const UpdateRule& rule, const Tensor& variable, const Tensor& gradient,
                               std::span<const Tensor> slots, std::span<const Tensor> shared) {
  UpdateRule::Updated next = rule.update(variable, gradient, slots, shared);
  require(next.slots.size() == slots.size(), "optimizer ", rule.name(), ": update() gives ", next.slots.size(),
          " slots, expected one for each of the ", slots.size(), " of slots()");
  check_spec(rule, "the variable", next.variable, variable);
  for (std::size_t k = 0; k < slots.size(); ++k) check_spec(rule, text("slot ", k), next.slots[k], slots[k]);
  return next;
}

}  // namespace gradus
