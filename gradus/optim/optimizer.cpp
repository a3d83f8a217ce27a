/// The order of a step, and changes to an optimizer between steps.
#include "gradus/optim/optimizer.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <unordered_map>
#include "gradus/base/floating_point_state.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/pending.h"
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/widened.h"
#include "gradus/optim/optimizer_state.h"

namespace gradus {
namespace {

Tensor number(double value) { return fill({}, value, f64); }

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

/// What a step computes once, whatever the variable.
struct Step {
  Tensor finite;         // empty unless gradients that are not finite are to be skipped
  Tensor average, rest;  // of the moving averages: f64 scalars
  Tensor overwrite;      // a boolean scalar; empty: never
  /// The new value of something that the step changes.
  Tensor kept(const Tensor& next, const Tensor& before) const {
    return finite.defined() ? where_changed(finite, next, before) : next;
  }
};

/// What a step writes: all of it or nothing. Everything that may fail, as memory may be short, comes before commit().
class Changes {
 public:
  void add(Variable& variable, Tensor next) { all_.emplace_back(&variable, std::move(next)); }
  void commit() {
    for (auto& [variable, next] : all_) variable->assign(next);
  }

 private:
  std::vector<std::pair<Variable*, Tensor>> all_;
};

bool same_specs(const Variables& a, const Variables& b) {
  return std::ranges::equal(a.cells(), b.cells(), [](const auto& x, const auto& y) { return x->spec == y->spec; });
}

void check_settings(std::string_view name, const OptimizerSettings& s) {
  check_options(name, s);
  require((s.clipnorm > 0) + (s.global_clipnorm > 0) + (s.clipvalue > 0) <= 1, name, ": of clipnorm (", s.clipnorm,
          "), global_clipnorm (", s.global_clipnorm, ") and clipvalue (", s.clipvalue, ") at most one is given");
  require(s.use_ema || s.ema_overwrite_frequency == 0, name,
          ": ema_overwrite_frequency is given, but there are no averages without use_ema = true");
}

}  // namespace

struct Optimizer::State : OptimizerSetup, OptimizerValues {
  std::unordered_map<const VariableCell*, std::size_t> places;  // of what is bound
  bool traced = false;                                          // a compiled step holds the setup; never that of a copy

  State(std::shared_ptr<const UpdateRule> r, OptimizerSettings s)
      : OptimizerSetup(std::move(r), std::move(s)), OptimizerValues(*rule, settings.learning_rate) {}
  State(const State& other) : OptimizerSetup(other), OptimizerValues(other) { find_places(); }

  bool is_bound(const Variable& variable) const { return places.contains(variable.cell().get()); }
  std::size_t place_of(const Variable& variable) const { return places.at(variable.cell().get()); }
  void find_places() {
    places.clear();
    for (std::size_t i = 0; i < bound.size(); ++i) places.emplace(bound.cells()[i].get(), i);
  }

  void take_in(const Variable& variable) {
    if (is_bound(variable)) return;
    require(is_floating(variable.dtype()), rule->name(), ": variable ", variable.name(), " is of ", variable.dtype(),
            ", expected a floating type");
    const Untraced outside;
    const DeviceScope beside(variable.cell()->spec.device);
    const Tensors first = first_values(variable);
    std::vector<Variable> made;
    for (std::size_t k = 0; k < first.size(); ++k) {
      const std::string_view name = k < rule->slots().size() ? rule->slots()[k].name : "average";
      made.push_back(Variable(first[k], text(rule->name(), "/", variable.name(), "/", name), {.trainable = false}));
    }
    kept.push_back(std::move(made));
    memberships.push_back({group_of(variable), decays(variable)});
    bound.add(variable);
    places.emplace(variable.cell().get(), bound.size() - 1);
  }

  /// Of its slots, and of its average.
  Tensors first_values(const Variable& variable) const {
    const DType wide = computed_in(variable.dtype());
    Tensors first;
    for (const Slot& slot : rule->slots()) first.push_back(full(variable.shape(), slot.initial, wide));
    if (settings.use_ema) first.push_back(cast(variable.value(), wide));
    return first;
  }

  std::size_t group_of(const Variable& variable) const {
    for (std::size_t i = groups.size(); i-- > 1;)
      if (groups[i].members.find(*variable.cell()) >= 0) return i;
    return 0;
  }
  bool decays(const Variable& variable) const {
    const auto named = [&](const std::string& part) { return variable.name().find(part) != std::string::npos; };
    return undecayed.find(*variable.cell()) < 0 && std::ranges::none_of(undecayed_names, named);
  }
  /// After groups or exclusions have changed.
  void sort_variables() {
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (const std::size_t group = group_of(bound[i])) memberships[i].group = group;
      memberships[i].decays = memberships[i].decays && decays(bound[i]);
    }
  }
  void require_untraced(std::string_view what) const {
    require(!traced, what,
            ": a compiled step has taken in what this optimizer had, and would not notice the change; "
            "do it before the first step");
  }

  /// The group whose rate this one has.
  std::size_t leader_of(std::size_t group) const { return groups[group].has_rate ? group : 0; }
  /// The rate of the present step as an f64 scalar.
  Tensor rate_now(std::size_t group) const {
    const Tensor by_hand = rates[leader_of(group)];
    const Schedule& schedule = groups[leader_of(group)].schedule;
    if (schedule.is_constant()) return by_hand;
    return where(is_nan(by_hand), schedule.at(iterations), by_hand);
  }

  /// What the update of one variable depends on beside its values and its gradient.
  struct OneUpdate {
    const Step& step;
    Tensor decay;  // empty: it does not
    In shared;
  };

  static Tensor decayed(const Tensor& old, const OneUpdate& one) {
    const Tensor w = widened(old);
    return one.decay.defined() ? w - w * cast(one.decay, w.dtype()) : w;
  }

  /// With the moving average, which is the last slot.
  Tensors averaged(In before, Updated next, const OneUpdate& one) const {
    const DType narrow = before[0].dtype(), wide = computed_in(narrow);
    if (settings.use_ema) {
      const Tensor average = before.back() * cast(one.step.average, wide) + next.variable * cast(one.step.rest, wide);
      if (one.step.overwrite.defined()) next.variable = where(one.step.overwrite, average, next.variable);
      next.slots.push_back(average);
    }
    Tensors all{cast(next.variable, narrow)};
    std::ranges::move(next.slots, std::back_inserter(all));
    return all;
  }

  /// The variable and its slots after the step, of what they were; elementwise but for what the rule does.
  Tensors after(In before, const Tensor& gradient, const OneUpdate& one) const {
    const Tensor w = decayed(before[0], one);
    return averaged(before, rule->update(w, cast(gradient, w.dtype()), slots_of_rule(before), one.shared), one);
  }
  In slots_of_rule(In values) const { return values.subspan(1, values.size() - 1 - settings.use_ema); }

  /// Per value, as in `before`: whether a gradient of 0 leaves it as it is.
  std::vector<bool> unmoved(std::size_t values, const OneUpdate& one) const {
    std::vector<bool> all = rule->unmoved_by_zero();
    all.resize(values, false);
    if (one.decay.defined() || one.step.overwrite.defined()) all[0] = false;
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
    if (rule->is_elementwise()) return all;
    const In slots = slots_of_rule(all);
    const Tensor w = rule->variable_after(decayed(before[0], one), slots, one.shared);
    return averaged(before, {w, Tensors(slots.begin(), slots.end())}, one);
  }

  /// The bound variable's new values.
  void update(std::size_t i, const GradientPart& gradient, const OneUpdate& one, Changes& changes) {
    const Tensor old = bound[i];
    Tensors before{old};
    for (const Variable& slot : kept[i]) before.push_back(slot);
    const Tensors next =
        gradient.is_rows() ? after_rows(before, gradient.summed(), one) : after(before, gradient.whole(), one);
    changes.add(bound[i], one.step.kept(next[0], before[0]));
    for (std::size_t k = 1; k < next.size(); ++k) changes.add(kept[i][k - 1], one.step.kept(next[k], before[k]));
  }

  /// Outside of traces an assignment waits for the value before: here, so that none of a step fails, and before its
  /// formulas are recorded, since what waits is computed as one program.
  void settle(const Variables& variables) const {
    if (Context::current()) return;
    const auto observe = [](const Variable& variable) { variable.cell()->read().observed(); };
    for (const Variable& variable : variables) {
      observe(variable);
      for (const Variable& slot : kept[place_of(variable)]) observe(slot);
    }
    for (const Variable& variable : joint) observe(variable);
    observe(iterations);
    observe(skipped);
  }

  Step step_of(const Tensor& finite) const {
    Step step{finite, {}, {}, {}};
    if (!settings.use_ema) return step;
    const Tensor t = iterations + 1, first = equal(t, 1);
    step.average = where(first, number(0), number(settings.ema_momentum));
    step.rest = where(first, number(1), number(1 - settings.ema_momentum));
    if (settings.ema_overwrite_frequency > 0)
      step.overwrite = equal(mod(t, fill({}, settings.ema_overwrite_frequency, i64)), 0);
    return step;
  }
};

Optimizer::Optimizer(std::shared_ptr<const UpdateRule> rule, OptimizerSettings settings) {
  check_settings(rule->name(), settings);
  state_ = std::make_unique<State>(std::move(rule), std::move(settings));
}

Optimizer::Optimizer(const Optimizer& other) : state_(std::make_unique<State>(other.state())) {}
Optimizer::Optimizer(Optimizer&& other) noexcept = default;
Optimizer::~Optimizer() = default;

Optimizer& Optimizer::operator=(const Optimizer& other) {
  if (this == &other) return *this;
  if (!state_ || state_->bound.size() == 0) {
    state_ = std::make_unique<State>(other.state());
    return *this;
  }
  State& s = *state_;
  const State& o = other.state();
  const Variables target = variables(), source = other.variables();
  const auto has_rate = &ParameterGroup::has_rate;
  require(s.rule->name() == o.rule->name() && std::ranges::equal(s.groups, o.groups, {}, has_rate, has_rate) &&
              same_specs(s.bound, o.bound) && same_specs(target, source),
          "assigning ", o.rule->name(), " to ", s.rule->name(),
          ": they have different state; assign between optimizers of one kind and model, or copy-construct");
  OptimizerSetup next = o;
  next.rebind(s.bound);
  if (s.traced && !s.makes_the_steps_of(next)) s.require_untraced("assigning an optimizer of other options");
  for (std::size_t i = 0; i < target.size(); ++i) target[i].assign(source[i].value());
  static_cast<OptimizerSetup&>(s) = std::move(next);
  return *this;
}

Optimizer& Optimizer::operator=(Optimizer&& other) {
  if (this == &other) return *this;
  if (state_ && state_->bound.size() > 0) return *this = std::as_const(other);
  state_ = std::move(other.state_);
  return *this;
}

Optimizer::State& Optimizer::state() const {
  require(static_cast<bool>(state_), "this optimizer is empty: it was moved from");
  return *state_;
}

void Optimizer::build(const Variables& variables) {
  const HostFloats floats;
  State& s = state();
  const Variables before = s.bound;
  try {
    for (const Variable& variable : variables) s.take_in(variable);
  } catch (...) {  // all or none of them
    s.bound = before;
    s.find_places();
    s.kept.resize(before.size());
    s.memberships.resize(before.size());
    throw;
  }
}

bool Optimizer::is_built() const { return state().bound.size() > 0; }

void Optimizer::rebind(const Variables& variables) {
  const Variables& now = state().bound;
  require(variables.size() == now.size(), "rebind: the optimizer has state for ", now.size(), " variables, got ",
          variables.size());
  for (std::size_t i = 0; i < now.size(); ++i)
    require(variables.cells()[i]->spec == now.cells()[i]->spec, "rebind: variable ", i, ", ", variables[i].name(),
            ", is ", variables.cells()[i]->spec, ", but the state is for ", now.cells()[i]->spec);
  state().rebind(variables);
  state().find_places();
}

void Optimizer::exclude_from_weight_decay(const Variables& variables) {
  state().require_untraced("exclude_from_weight_decay");
  state().undecayed = state().undecayed + variables;
  state().sort_variables();
}
void Optimizer::exclude_from_weight_decay(std::vector<std::string> parts_of_names) {
  state().require_untraced("exclude_from_weight_decay");
  require(std::ranges::find(parts_of_names, "") == parts_of_names.end(),
          "exclude_from_weight_decay: an empty text is part of every name; for no decay at all set weight_decay to 0");
  std::ranges::move(parts_of_names, std::back_inserter(state().undecayed_names));
  state().sort_variables();
}

std::size_t Optimizer::add_parameter_group(const Variables& variables, ParameterGroupOptions options) {
  State& s = state();
  s.require_untraced("add_parameter_group");
  check_options("add_parameter_group", options);
  require(variables.size() > 0, "add_parameter_group: there are no variables in it");
  for (const Variable& variable : variables)
    require(s.group_of(variable) == 0, "add_parameter_group: variable ", variable.name(), " is in group ",
            s.group_of(variable), " already");
  const bool has_rate = options.learning_rate.has_value();
  const Schedule schedule = has_rate ? *options.learning_rate : Schedule(0);
  const double decay = options.weight_decay.value_or(s.settings.weight_decay);
  s.rates.push_back(State::own(*s.rule, text("learning_rate_", s.groups.size()), State::initial_rate(schedule), f64));
  s.groups.push_back({schedule, decay, has_rate, variables});
  s.sort_variables();
  return s.groups.size() - 1;
}

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

void Optimizer::prepare(const Variables& variables) {
  State& s = state();
  require(variables.size() > 0, s.rule->name(), ": there are no variables to train");
  if (s.bound.size() == 0) build(variables);
  for (const Variable& variable : variables)
    require(s.is_bound(variable), s.rule->name(), ": variable ", variable.name(), " is not among the ", s.bound.size(),
            " that this optimizer has state for; take another optimizer for another model, build() for layers that "
            "were unfrozen, or rebind() for a copied model");
}

void Optimizer::apply(const GradientsView& gradients, const Tensor& all_finite) {
  const HostFloats floats;
  State& s = state();
  prepare(gradients.variables());
  Trace* const trace = Trace::current();
  if (trace) {
    trace->note_use(this, variables());
    s.traced = true;
  }
  const Tensor finite = trace ? trace->given(all_finite) : all_finite;
  s.settle(gradients.variables());
  const NameScope scope(s.rule->name());
  const Step step = s.step_of(finite);
  const Tensor t = cast(s.iterations + 1, f64);
  Tensors joint, next_joint;
  for (const Variable& variable : s.joint) joint.push_back(variable);
  std::vector<NumbersByType> numbers;
  Tensors decays;
  Changes changes;
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    const StepNumbers now{s.rate_now(i), t};
    Shared shared = s.rule->share(now, joint);
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
    if (trace) mean.for_each_tensor([&](Tensor& part) { part = trace->given(part); });
    by_rows = by_rows || mean.is_rows();
    s.update(
        place, mean,
        {step, s.memberships[place].decays ? decays[group] : Tensor(), numbers[group][computed_in(variable.dtype())]},
        changes);
  }
  for (std::size_t k = 0; k < joint.size(); ++k) changes.add(s.joint[k], step.kept(next_joint[k], joint[k]));
  const Tensor updates = s.iterations;
  changes.add(s.iterations, step.kept(updates + 1, updates));
  if (finite.defined()) {
    changes.add(s.skipped, s.skipped + cast(logical_not(finite), i64));
    loss_scale_of(gradients.variables())->update(finite);  // itself all or nothing
  }
  changes.commit();
  // The next step gathers from the new table, which may fail: in one program with it nothing could be written in place.
  if (by_rows && !Context::current()) Pending::flush_mine();
}

std::int64_t Optimizer::iterations() const { return state().iterations.value().to_vector<std::int64_t>()[0]; }
std::int64_t Optimizer::skipped_steps() const { return state().skipped.value().to_vector<std::int64_t>()[0]; }

double Optimizer::learning_rate(std::size_t group) const {
  const HostFloats floats;
  const State& s = state();
  require<OutOfRange>(group < s.groups.size(), "learning_rate: group ", group, " of ", s.groups.size());
  const std::size_t leader = s.leader_of(group);
  const double by_hand = s.rates[leader].value().item();
  return std::isnan(by_hand) ? s.groups[leader].schedule(iterations()) : by_hand;
}

void Optimizer::set_learning_rate(Schedule schedule, std::size_t group) {
  State& s = state();
  require<OutOfRange>(group < s.groups.size(), "set_learning_rate: group ", group, " of ", s.groups.size());
  require(s.groups[group].has_rate, "set_learning_rate: group ", group, " has no rate of its own; it follows group 0");
  if (schedule.is_constant()) {
    check_number("set_learning_rate", "the rate", Allowed::not_negative("rate"), schedule.constant());
    s.rates[group].assign(full({}, schedule.constant(), f64));
    return;
  }
  require(!s.traced,
          "set_learning_rate: a compiled step has taken in the schedule that this optimizer had, and would not notice "
          "another function; give the schedule to the optimizer's constructor, or set a number");
  s.groups[group].schedule = std::move(schedule);
  s.rates[group].assign(full({}, State::from_schedule, f64));
}

void Optimizer::finalize_variable_values(const Variables& variables) {
  const HostFloats floats;
  State& s = state();
  if (!s.settings.use_ema) return;
  prepare(variables);
  s.settle(variables);
  Changes changes;
  for (Variable& variable : variables)
    changes.add(variable, cast(s.kept[s.place_of(variable)].back(), variable.dtype()));
  changes.commit();
}

Variables Optimizer::variables() const {
  const State& s = state();
  Variables all;
  all.add(s.iterations);
  for (std::size_t i = 0; i < s.groups.size(); ++i)
    if (s.groups[i].has_rate) all.add(s.rates[i]);
  for (const Variable& variable : s.joint) all.add(variable);
  for (const std::vector<Variable>& of_one : s.kept)
    for (const Variable& slot : of_one) all.add(slot);
  if (const auto scale = loss_scale_of(s.bound)) {
    all.add(s.skipped);
    all = all + scale->variables();
  }
  return all;
}

Variables Optimizer::made_by_steps() const {
  Variables all;
  for (const std::vector<Variable>& of_one : state().kept)
    for (const Variable& slot : of_one) all.add(slot);
  if (loss_scale_of(state().bound)) all.add(state().skipped);
  return all;
}

void Optimizer::start_anew() {
  State& s = state();
  for (std::size_t i = 0; i < s.bound.size(); ++i) {
    const std::vector<Tensor> first = s.first_values(s.bound[i]);
    for (std::size_t k = 0; k < first.size(); ++k) s.kept[i][k].assign(first[k]);
  }
  s.skipped.assign(zeros({}, i64));
}

void Optimizer::with_steps_that_end(const std::function<void()>& work) {
  struct Restore {
    State& state;
    bool before;
    ~Restore() { state.traced = before; }
  } restore{state(), state().traced};
  work();
}

}  // namespace gradus
