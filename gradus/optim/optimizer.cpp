/// State and the order of a step.
#include "gradus/optim/optimizer.h"
#include <cmath>
#include <limits>
#include <map>
#include "gradus/function/trace.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/optim/update_rule.h"

namespace gradus {
namespace {

constexpr double from_schedule = std::numeric_limits<double>::quiet_NaN();

Variable scalar_variable(double value, DType dtype, const std::string& name) {
  const Untraced outside;
  return Variable(full({}, value, dtype), name, {.trainable = false});
}

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

}  // namespace

struct Optimizer::State {
  std::shared_ptr<const UpdateRule> rule;
  Settings settings;
  Variable iterations;
  Variable rate;  // the learning rate; NaN: the schedule's function says it
  std::vector<Variable> joint;
  Variables bound;               // the model's variables
  std::vector<Variables> slots;  // per bound variable
  bool traced = false;           // a compiled step may hold the schedule's function

  State(std::shared_ptr<const UpdateRule> r, Settings s)
      : rule(std::move(r)),
        settings(std::move(s)),
        iterations(scalar_variable(0, i64, std::string(rule->name()) + "/iterations")),
        rate(scalar_variable(settings.learning_rate.is_constant() ? settings.learning_rate.constant() : from_schedule,
                             f64, std::string(rule->name()) + "/learning_rate")) {
    for (double value : rule->joint_state())
      joint.push_back(scalar_variable(value, f64, text(rule->name(), "/joint_", joint.size())));
  }

  State(const State& other)
      : rule(other.rule), settings(other.settings), iterations(other.iterations), rate(other.rate), bound(other.bound) {
    for (const Variable& variable : other.joint) joint.emplace_back(variable);
    for (const Variables& of_one : other.slots) {
      Variables copies;
      for (const Variable& slot : of_one) {
        const Variable copy(slot);
        copies.add(copy);
      }
      slots.push_back(std::move(copies));
    }
  }

  void take_in(const Variable& variable) {
    if (bound.find(*variable.cell()) >= 0) return;
    require(is_floating(variable.dtype()), rule->name(), ": variable ", variable.name(), " is of ", variable.dtype(),
            ", expected a floating type");
    const Untraced outside;
    Variables made;
    for (std::string_view name : rule->slots()) {
      const Variable slot(zeros(variable.shape(), variable.dtype()),
                          text(rule->name(), "/", variable.name(), "/", name), {.trainable = false});
      made.add(slot);
    }
    bound.add(variable);
    slots.push_back(std::move(made));
  }

  /// The rate of the present step as an f64 scalar.
  Tensor rate_now() const {
    const Tensor by_hand = rate;
    if (settings.learning_rate.is_constant()) return by_hand;
    return where(is_nan(by_hand), settings.learning_rate.at(iterations), by_hand);
  }

  /// The bound variable's new values; all elementwise.
  void update(std::size_t i, const Tensor& gradient, const Tensor& decay, In shared) const {
    Variable& variable = bound[i];
    Tensor w = variable;
    if (settings.weight_decay > 0) w = w - w * cast(decay, w.dtype());
    Tensors before;
    for (const Variable& slot : slots[i]) before.push_back(slot);
    const Updated after = rule->update(w, gradient, before, shared);
    variable.assign(after.variable);
    for (std::size_t k = 0; k < before.size(); ++k) slots[i][k].assign(after.slots[k]);
  }
};

Optimizer::Optimizer(std::shared_ptr<const UpdateRule> rule, Settings settings) {
  const std::string_view name = rule->name();
  const auto check = [&](std::string_view what, double value) {
    require(value >= 0 && std::isfinite(value), name, ": ", what, " must not be negative, got ", value);
  };
  if (settings.learning_rate.is_constant())
    require(std::isfinite(settings.learning_rate.constant()), name, ": learning_rate must be finite, got ",
            settings.learning_rate.constant());
  check("weight_decay", settings.weight_decay);
  check("clipnorm", settings.clipnorm);
  check("global_clipnorm", settings.global_clipnorm);
  require(settings.clipnorm == 0 || settings.global_clipnorm == 0, name,
          ": clipnorm and global_clipnorm are both given; take one of them");
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
  const Variables target = variables(), source = other.variables();
  bool fits = state().rule->name() == other.state().rule->name() && target.size() == source.size();
  for (std::size_t i = 0; fits && i < target.size(); ++i) fits = target.cells()[i]->spec == source.cells()[i]->spec;
  require(fits, "assigning ", other.state().rule->name(), " to ", state().rule->name(),
          ": they have different state; assign between optimizers of one kind and model, or copy-construct");
  for (std::size_t i = 0; i < target.size(); ++i) target[i].assign(source[i].value());
  state_->rule = other.state().rule;
  state_->settings = other.state().settings;
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
  for (const Variable& variable : variables) state().take_in(variable);
}

void Optimizer::rebind(const Variables& variables) {
  const Variables& now = state().bound;
  require(variables.size() == now.size(), "rebind: the optimizer has state for ", now.size(), " variables, got ",
          variables.size());
  for (std::size_t i = 0; i < now.size(); ++i)
    require(variables.cells()[i]->spec == now.cells()[i]->spec, "rebind: variable ", i, ", ", variables[i].name(),
            ", is ", variables.cells()[i]->spec, ", but the state is for ", now.cells()[i]->spec);
  state().bound = variables;
}

void Optimizer::apply_gradients(const Gradients& gradients) {
  const Settings& settings = state().settings;
  if (settings.global_clipnorm > 0) apply(clip_by_global_norm(gradients, settings.global_clipnorm));
  else if (settings.clipnorm > 0) apply(clip_by_norm(gradients, settings.clipnorm));
  else apply(gradients);
}

void Optimizer::apply_gradients(const ClippedGradients& gradients) {
  require(state().settings.clipnorm == 0 && state().settings.global_clipnorm == 0, state().rule->name(),
          ": these gradients are clipped already, and the optimizer would clip them again; do one of the two");
  apply(gradients);
}

void Optimizer::prepare(const Variables& variables) {
  State& s = state();
  require(variables.size() > 0, s.rule->name(), ": there are no variables to train");
  if (s.bound.size() == 0) build(variables);
  for (const Variable& variable : variables)
    require(s.bound.find(*variable.cell()) >= 0, s.rule->name(), ": variable ", variable.name(), " is not among the ",
            s.bound.size(),
            " that this optimizer has state for; take another optimizer for another model, build() for layers that "
            "were unfrozen, or rebind() for a copied model");
}

void Optimizer::apply(const GradientsView& gradients) {
  State& s = state();
  prepare(gradients.variables());
  if (Trace* trace = Trace::current()) {
    trace->note_use(this, variables());
    s.traced = true;
  }
  const NameScope scope(s.rule->name());
  const StepNumbers step{s.rate_now(), cast(s.iterations + 1, f64)};
  Tensors joint;
  for (const Variable& variable : s.joint) joint.push_back(variable);
  Shared shared = s.rule->share(step, joint);
  NumbersByType numbers(std::move(shared.numbers));
  const Tensor decay = step.learning_rate * fill({}, s.settings.weight_decay, f64);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Variable& variable = gradients.variables()[i];
    const auto place = static_cast<std::size_t>(s.bound.find(*variable.cell()));
    s.update(place, gradients[i], decay, numbers[variable.dtype()]);
  }
  for (std::size_t k = 0; k < joint.size(); ++k) s.joint[k].assign(shared.state[k]);
  s.iterations.assign(s.iterations + 1);
}

std::int64_t Optimizer::iterations() const { return state().iterations.value().to_vector<std::int64_t>()[0]; }

double Optimizer::learning_rate() const {
  const double by_hand = state().rate.value().item();
  return std::isnan(by_hand) ? state().settings.learning_rate(iterations()) : by_hand;
}

void Optimizer::set_learning_rate(Schedule schedule) {
  State& s = state();
  if (schedule.is_constant()) {
    require(std::isfinite(schedule.constant()), "set_learning_rate: the rate must be finite, got ",
            schedule.constant());
    s.rate.assign(full({}, schedule.constant(), f64));
    return;
  }
  require(!s.traced,
          "set_learning_rate: a compiled step has taken in the schedule that this optimizer had, and would not notice "
          "another function; give the schedule to the optimizer's constructor, or set a number");
  s.settings.learning_rate = std::move(schedule);
  s.rate.assign(full({}, from_schedule, f64));
}

Variables Optimizer::variables() const {
  Variables all;
  all.add(state().iterations);
  all.add(state().rate);
  for (const Variable& variable : state().joint) all.add(variable);
  for (const Variables& of_one : state().slots) all = all + of_one;
  return all;
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
