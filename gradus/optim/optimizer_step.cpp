/// One step: the order in which it is made, and the formulas of a variable around those of the rule. Decision 271 has
/// the reasons.
#include <algorithm>
#include <iterator>
#include <map>
#include "gradus/base/floating_point_state.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/graph/shard_context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter_ops.h"
#include "gradus/ops/widened.h"
#include "gradus/optim/checked_rule.h"
#include "gradus/optim/optimizer_state.h"
#include "gradus/optim/update_rule.h"

namespace gradus {

Tensor detail::number(double value) { return fill({}, value, f64); }
Tensor UpdateRule::number(double value) { return detail::number(value); }

namespace {

using detail::number;

/// Numbers of a step in each dtype that is asked for, cast once.
class NumbersByType {
 public:
  explicit NumbersByType(Tensors numbers) : numbers_(std::move(numbers)) {}
  In operator[](DType t) {
    Tensors& cast = by_type_[t];
    if (cast.empty())
      for (const Tensor& number : numbers_) cast.push_back(gradus::cast(number, t));
    return cast;
  }

 private:
  Tensors numbers_;
  std::map<DType, Tensors> by_type_;
};

/// Values that a step computes once, whatever the variable.
struct StepParts {
  Tensor finite;         // empty unless gradients that are not finite are to be skipped
  Tensor average, rest;  // of the moving averages: f64 scalars
  Tensor overwrite;      // a boolean scalar; empty: never
  /// The new value of something that the step changes.
  Tensor kept(const Tensor& next, const Tensor& before) const {
    return finite.defined() ? where_changed(finite, next, before) : next;
  }
};

class StepFormulas {
 public:
  StepFormulas(OptimizerSetup& setup, OptimizerValues& values, const Tensor& finite)
      : setup_(setup), values_(values), step_(parts_of(finite)) {}

  /// The inputs of one variable's update beside its values and its gradient.
  struct OneUpdate {
    Tensor decay;  // empty: it does not
    In shared;
  };

  /// The bound variable's new values.
  void update(std::size_t i, const GradientPart& gradient, const OneUpdate& one, VariableChanges& changes) {
    const Tensor old = setup_.bound[i];
    Tensors before{old};
    for (const Variable& slot : values_.kept[i]) before.push_back(slot);
    const Tensors next = setup_.settings.lazy && gradient.is_of_lookups() ? after_touched(before, gradient, one)
                         : gradient.is_rows()                             ? after_rows(before, gradient.summed(), one)
                                                                          : after(before, gradient.whole(), one);
    changes.add(setup_.bound[i], step_.kept(next[0], before[0]));
    for (std::size_t k = 1; k < next.size(); ++k) changes.add(values_.kept[i][k - 1], step_.kept(next[k], before[k]));
  }
  Tensor kept(const Tensor& next, const Tensor& before) const { return step_.kept(next, before); }

 private:
  static Tensor decayed(const Tensor& old, const OneUpdate& one) {
    const Tensor w = widened(old);
    return one.decay.defined() ? w - w * cast(one.decay, w.dtype()) : w;
  }

  /// With the moving average, which is the last slot.
  Tensors averaged(In before, UpdateRule::Updated next) const {
    const DType narrow = before[0].dtype(), wide = computed_in(narrow);
    if (setup_.settings.use_ema) {
      const Tensor average = before.back() * cast(step_.average, wide) + next.variable * cast(step_.rest, wide);
      if (step_.overwrite.defined()) next.variable = where(step_.overwrite, average, next.variable);
      next.slots.push_back(average);
    }
    Tensors all{cast(next.variable, narrow)};
    std::ranges::move(next.slots, std::back_inserter(all));
    return all;
  }

  /// The variable and its slots after the step, of what they were; elementwise but for what the rule does.
  Tensors after(In before, const Tensor& gradient, const OneUpdate& one) const {
    const Tensor w = decayed(before[0], one);
    return averaged(before, updated_by(*setup_.rule, w, cast(gradient, w.dtype()), slots_of_rule(before), one.shared));
  }
  In slots_of_rule(In values) const { return values.subspan(1, values.size() - 1 - setup_.settings.use_ema); }

  /// Per value, as in `before`: whether a gradient of 0 leaves it as it is.
  std::vector<bool> unmoved(std::size_t values, const OneUpdate& one) const {
    std::vector<bool> all = setup_.rule->unmoved_by_zero();
    all.resize(values, false);
    if (one.decay.defined() || step_.overwrite.defined()) all[0] = false;
    return all;
  }

  /// The same where the gradient is 0 but in some rows: these are computed by themselves and written over what a
  /// gradient of 0 makes of the others.
  Tensors after_rows(In before, const AddedRows& gradient, const OneUpdate& one) const {
    Tensors rows;
    for (const Tensor& x : before) rows.push_back(rows_at(x, gradient.indices));
    const Tensors touched = after(rows, gradient.values, one);
    const std::vector<bool> stays = unmoved(before.size(), one);
    const bool all_stay = std::ranges::count(stays, false) == 0;
    const Tensors others = all_stay ? Tensors() : after(before, fill_like(before[0], 0), one);
    Tensors all;
    for (std::size_t k = 0; k < before.size(); ++k)
      all.push_back(update_rows(stays[k] ? before[k] : others[k], gradient.indices, touched[k]));
    if (setup_.rule->is_elementwise()) return all;
    const In slots = slots_of_rule(all);
    const Tensor w = setup_.rule->variable_after(decayed(before[0], one), slots, one.shared);
    return averaged(before, {w, Tensors(slots.begin(), slots.end())});
  }

  /// The lazy step: only rows whose gradient has an element other than 0 change. Whether it is kept as rows or in full
  /// does not matter.
  Tensors after_touched(In before, const GradientPart& gradient, const OneUpdate& one) const {
    Tensors all;
    if (gradient.is_rows()) {
      const AddedRows rows = gradient.summed();
      const Tensor touched = where(have_gradient(rows.values, false), rows.indices, fill_like(rows.indices, -1));
      Tensors old;
      for (const Tensor& x : before) old.push_back(rows_at(x, touched));
      const Tensors next = after(old, rows.values, one);
      for (std::size_t k = 0; k < before.size(); ++k) all.push_back(update_rows(before[k], touched, next[k]));
    } else {
      const Tensor whole = gradient.whole(), touched = have_gradient(whole, true);
      const Tensors next = after(before, whole, one);
      for (std::size_t k = 0; k < before.size(); ++k) all.push_back(where(touched, next[k], before[k]));
    }
    if (step_.overwrite.defined()) all[0] = where(step_.overwrite, cast(all.back(), all[0].dtype()), all[0]);
    return all;
  }

  /// One boolean for each row of x.
  static Tensor have_gradient(const Tensor& x, bool keeps_dimensions) {
    const Tensor is_other = not_equal(x, fill_like(x, 0));
    std::vector<int> within;
    for (int axis = 1; axis < x.shape().rank(); ++axis) within.push_back(axis);
    return within.empty() ? is_other : reduce_any(is_other, {.axis = within, .keepdims = keeps_dimensions});
  }

  StepParts parts_of(const Tensor& finite) const {
    StepParts step{finite, {}, {}, {}};
    if (!setup_.settings.use_ema) return step;
    const Tensor t = values_.iterations + 1, first = equal(t, 1);
    step.average = where(first, number(0), number(setup_.settings.ema_momentum));
    step.rest = where(first, number(1), number(1 - setup_.settings.ema_momentum));
    if (setup_.settings.ema_overwrite_frequency > 0)
      step.overwrite = equal(mod(t, fill({}, setup_.settings.ema_overwrite_frequency, i64)), 0);
    return step;
  }

  OptimizerSetup& setup_;
  OptimizerValues& values_;
  const StepParts step_;
};

}  // namespace

void Optimizer::apply_gradients(const Gradients& gradients) {
  const OptimizerSettings& settings = state().settings;
  const Tensor finite = gradients.finite_under_scaling();
  if (settings.global_clipnorm > 0) apply(clip_by_global_norm(gradients, settings.global_clipnorm), finite);
  else if (settings.clipnorm > 0) apply(clip_by_norm(gradients, settings.clipnorm), finite);
  else if (settings.clipvalue > 0) apply(clip_by_value(gradients, -settings.clipvalue, settings.clipvalue), finite);
  else apply(gradients, finite);
}

void Optimizer::apply_gradients(const ClippedGradients& gradients) {
  const OptimizerSettings& settings = state().settings;
  require(settings.clipnorm == 0 && settings.global_clipnorm == 0 && settings.clipvalue == 0, state().rule->name(),
          ": these gradients are clipped already, and the optimizer would clip them again; do one of the two");
  apply(gradients, gradients.finite_under_scaling());
}

void Optimizer::apply(const GradientsView& gradients, const Tensor& all_finite) {
  const HostFloats floats;
  State& s = state();
  prepare(gradients.variables());
  s.stepped = true;
  Trace* const trace = Trace::current();
  if (trace) {
    trace->note_use(this, variables());
    s.traced = true;
  }
  const Tensor finite = trace ? trace->given(all_finite) : all_finite;
  s.settle(gradients.variables());
  const NameScope scope(s.rule->name());
  StepFormulas formulas(s, s, finite);
  const Tensor t = cast(s.iterations + 1, f64);
  Tensors joint, next_joint;
  for (const Variable& variable : s.joint) joint.push_back(variable);
  std::vector<NumbersByType> numbers;
  Tensors decays;
  VariableChanges changes;
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    const UpdateRule::StepNumbers now{s.rate_now(i), t};
    UpdateRule::Shared shared = shared_by(*s.rule, now, joint);
    numbers.emplace_back(std::move(shared.numbers));
    const double decay = s.groups[i].weight_decay;
    decays.push_back(decay > 0 ? now.learning_rate * number(decay) : Tensor());
    next_joint = std::move(shared.state);
  }
  bool by_rows = false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& variable = gradients.variables()[i];
    const std::size_t place = s.place_of(variable), group = s.memberships[place].group;
    GradientPart mean = gradients.mean(i);
    if (divides_state()) mean = GradientPart(mean.whole(), mean.is_of_lookups());  // slots are cut across rows
    if (trace) mean.for_each_tensor([&](Tensor& part) { part = trace->given(part); });
    by_rows = by_rows || mean.is_rows();
    formulas.update(
        place, mean,
        {s.memberships[place].decays ? decays[group] : Tensor(), numbers[group][computed_in(variable.dtype())]},
        changes);
  }
  for (std::size_t k = 0; k < joint.size(); ++k) changes.add(s.joint[k], formulas.kept(next_joint[k], joint[k]));
  const Tensor updates = s.iterations;
  changes.add(s.iterations, formulas.kept(updates + 1, updates));
  if (finite.defined()) {
    changes.add(s.skipped, s.skipped + cast(logical_not(finite), i64));
    loss_scale_of(gradients.variables())->update(finite);  // itself all or nothing
  }
  changes.commit();
  // The next step gathers from the new table, which may fail: in one program with it nothing could be written in place.
  if (by_rows && !Context::current()) Pending::flush_mine();
}

}  // namespace gradus
