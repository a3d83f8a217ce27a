/// An optimizer's state for its variables, and changes to it between steps.
#include "gradus/optim/optimizer.h"
#include <algorithm>
#include <cmath>
#include <iterator>
#include "gradus/backend/divided_value.h"
#include "gradus/base/floating_point_state.h"
#include "gradus/base/launcher_note.h"
#include "gradus/function/loss_scale.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/shard_context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/optim/optimizer_state.h"

namespace gradus {
namespace {

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

// ---------------------------------------------------------------- what is bound

void Optimizer::State::find_places() {
  places.clear();
  for (std::size_t i = 0; i < bound.size(); ++i) places.emplace(bound.cells()[i].get(), i);
}

void Optimizer::State::add(const Variable& variable) {
  if (is_bound(variable)) return;
  require(is_floating(variable.dtype()), rule->name(), ": variable ", variable.name(), " is of ", variable.dtype(),
          ", expected a floating type");
  const bool is_divided = divides_state();
  const Untraced outside;
  const DeviceScope beside(variable.cell()->spec.device);
  const Tensors first = first_values(variable, is_divided);
  std::vector<Variable> made;
  for (std::size_t k = 0; k < first.size(); ++k) {
    const std::string_view name = k < rule->slots().size() ? rule->slots()[k].name : "average";
    made.push_back(Variable(first[k], text(rule->name(), "/", variable.name(), "/", name), {.trainable = false}));
    made.back().cell()->is_optimizer_state = true;
  }
  kept.push_back(std::move(made));
  memberships.push_back({group_of(variable), decays(variable)});
  bound.add(variable);
  places.emplace(variable.cell().get(), bound.size() - 1);
}

Tensors Optimizer::State::first_values(const Variable& variable, bool is_divided) const {
  const DType wide = computed_in(variable.dtype());
  Tensors first;
  for (const UpdateRule::Slot& slot : rule->slots()) {
    const Tensor one = full(is_divided ? Shape() : variable.shape(), slot.initial, wide);
    const auto repeated = [&] { return RepeatedValue::buffer_of(one.host_buffer(), variable.shape().size()); };
    first.push_back(is_divided ? Tensor::of_buffer({wide, variable.shape()}, repeated()) : one);
  }
  if (settings.use_ema) first.push_back(cast(variable.value(), wide));
  return first;
}

// ---------------------------------------------------------------- groups and exclusions

std::size_t Optimizer::State::group_of(const Variable& variable) const {
  for (std::size_t i = groups.size(); i-- > 1;)
    if (groups[i].members.find(*variable.cell()) >= 0) return i;
  return 0;
}

bool Optimizer::State::decays(const Variable& variable) const {
  const auto named = [&](const std::string& part) { return variable.name().find(part) != std::string::npos; };
  return undecayed.find(*variable.cell()) < 0 && std::ranges::none_of(undecayed_names, named);
}

void Optimizer::State::sort_variables() {
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (const std::size_t group = group_of(bound[i])) memberships[i].group = group;
    memberships[i].decays = memberships[i].decays && decays(bound[i]);
  }
}

void Optimizer::State::require_untraced(std::string_view what) const {
  require(!traced, what,
          ": a compiled step has taken in what this optimizer had, and would not notice the change; "
          "do it before the first step");
}

Tensor Optimizer::State::rate_now(std::size_t group) const {
  const Tensor by_hand = rates[leader_of(group)];
  const Schedule& schedule = groups[leader_of(group)].schedule;
  if (schedule.is_constant()) return by_hand;
  return where(is_nan(by_hand), schedule.at(iterations), by_hand);
}

void Optimizer::State::settle(const Variables& variables) const {
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

// ---------------------------------------------------------------- the interface

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
  if (s.traced && !s.has_step_of(next)) s.require_untraced("assigning an optimizer of other options");
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
    for (const Variable& variable : variables) s.add(variable);
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
  s.groups.push_back({schedule, decay, has_rate, variables, schedule, schedule});
  s.sort_variables();
  return s.groups.size() - 1;
}

void Optimizer::prepare(const Variables& variables) {
  tell_launcher(LauncherNote::trains);
  State& s = state();
  require(variables.size() > 0, s.rule->name(), ": there are no variables to train");
  if (s.bound.size() == 0) build(variables);
  for (const Variable& variable : variables)
    require(s.is_bound(variable), s.rule->name(), ": variable ", variable.name(), " is not among the ", s.bound.size(),
            " that this optimizer has state for; take another optimizer for another model, build() for layers that "
            "were unfrozen, or rebind() for a copied model");
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
    s.note_said(group, schedule);
    return;
  }
  require(!s.traced,
          "set_learning_rate: a compiled step has taken in the schedule that this optimizer had, and would not notice "
          "another function; give the schedule to the optimizer's constructor, or set a number");
  s.note_said(group, schedule);
  s.groups[group].schedule = std::move(schedule);
  s.rates[group].assign(full({}, State::from_schedule, f64));
}

void Optimizer::finalize_variable_values(const Variables& variables) {
  const HostFloats floats;
  State& s = state();
  if (!s.settings.use_ema) return;
  prepare(variables);
  s.settle(variables);
  VariableChanges changes;
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

Variables Optimizer::averages() const {
  Variables all;
  if (state().settings.use_ema)
    for (const std::vector<Variable>& of_one : state().kept) all.add(of_one.back());
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
    bool before, trained;
    ~Restore() {
      state.traced = before;
      state.trains = trained;
    }
  } restore{state(), state().traced, state().trains};
  work();
}

void Optimizer::begin_training() { state().trains = true; }

}  // namespace gradus
