/// The calls of an UpdateRule, which a program may write itself: each checks that the rule gives what it declares.
#pragma once
#include <span>
#include "gradus/optim/update_rule.h"

namespace gradus {

/// rule.share(): InvalidArgument, which names the rule, unless it gives a scalar for each number of joint_state().
UpdateRule::Shared shared_by(const UpdateRule& rule, const UpdateRule::StepNumbers& step,
                             std::span<const Tensor> joint);

/// rule.update(): InvalidArgument, which names the rule, unless the variable and each slot keep dtype and shape.
UpdateRule::Updated updated_by(const UpdateRule& rule, const Tensor& variable, const Tensor& gradient,
                               std::span<const Tensor> slots, std::span<const Tensor> shared);

}  // namespace gradus
