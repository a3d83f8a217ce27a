/// The state of an optimizer: how its steps are made, and the Variables that they read and write. A copy of an
/// optimizer copies these two structs, so everything that it has to remember goes into one of them.
#pragma once
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/function/variable.h"
#include "gradus/optim/optimizer.h"
#include "gradus/optim/update_rule.h"

namespace gradus {

/// Variables with a learning rate and decay of their own. The first group has the optimizer's options.
struct ParameterGroup {
  Schedule schedule;
  double weight_decay;
  bool has_rate;  // false: the rate of the first group
  Variables members;
  Schedule first, last;  // the program's rate before the first step, and its last one outside of trainings
};

/// Properties of a bound variable.
struct Membership {
  std::size_t group = 0;
  bool decays = true;
  bool operator==(const Membership&) const = default;
};

/// The part that compiled steps are made with.
struct OptimizerSetup {
  std::shared_ptr<const UpdateRule> rule;
  OptimizerSettings settings;
  std::vector<ParameterGroup> groups;
  Variables undecayed;  // excluded, by identity and by name
  std::vector<std::string> undecayed_names;
  Variables bound;                      // the model's variables
  std::vector<Membership> memberships;  // of each of them
  bool stepped = false;                 // true once a step was made

  OptimizerSetup(std::shared_ptr<const UpdateRule> r, OptimizerSettings s);
  /// Replaces the bound variables by these, in their order.
  void rebind(const Variables& variables);
  /// True if a compiled step of this one is the step that `other` would make for the variables bound here. Learning
  /// rates that are numbers do not count: they are read.
  bool has_step_of(const OptimizerSetup& other) const;
};

/// The part that steps read and write. A copy has Variables of its own with the same values.
struct OptimizerValues {
  static constexpr double from_schedule = std::numeric_limits<double>::quiet_NaN();

  Variable iterations, skipped;
  std::vector<Variable> rates;  // one per group; from_schedule: the function of its schedule gives it
  std::vector<Variable> joint;
  std::vector<std::vector<Variable>> kept;  // per bound variable: slots of the rule, then the moving average

  OptimizerValues(const UpdateRule& rule, const Schedule& learning_rate);
  static double initial_rate(const Schedule& schedule);
  static Variable own(const UpdateRule& rule, const std::string& what, double value, DType dtype);
};

struct Optimizer::State : OptimizerSetup, OptimizerValues {
  std::unordered_map<const VariableCell*, std::size_t> places;  // of what is bound
  bool traced = false;                                          // a compiled step holds the setup; never that of a copy
  bool trains = false;                                          // true while set rates are state of a training

  State(std::shared_ptr<const UpdateRule> r, OptimizerSettings s)
      : OptimizerSetup(std::move(r), std::move(s)), OptimizerValues(*rule, settings.learning_rate) {}
  State(const State& other) : OptimizerSetup(other), OptimizerValues(other) { find_places(); }

  bool is_bound(const Variable& variable) const { return places.contains(variable.cell().get()); }
  std::size_t place_of(const Variable& variable) const { return places.at(variable.cell().get()); }
  void find_places();
  /// Makes what belongs to this variable, if it is new.
  void add(const Variable& variable);
  /// The first values of its slots, and of its average. Those that ranks will divide take no memory yet.
  Tensors first_values(const Variable& variable, bool is_divided = false) const;

  std::size_t group_of(const Variable& variable) const;
  bool decays(const Variable& variable) const;
  /// After groups or exclusions have changed.
  void sort_variables();
  void require_untraced(std::string_view what) const;
  /// Notes that the program, or a callback, has set this rate.
  void note_said(std::size_t group, const Schedule& rate) {
    if (trains) return;
    groups[group].last = rate;
    if (!stepped) groups[group].first = rate;
  }
  /// The group whose rate this one has.
  std::size_t leader_of(std::size_t group) const { return groups[group].has_rate ? group : 0; }
  /// The rate of the present step as an f64 scalar.
  Tensor rate_now(std::size_t group) const;

  /// Outside of traces an assignment waits for the value before: here, so that none of a step fails, and before its
  /// formulas are recorded, since what waits is computed as one program.
  void settle(const Variables& variables) const;
};

/// The writes of a step: all of them or none. Everything that may fail, as memory may be short, comes before commit().
class VariableChanges {
 public:
  void add(Variable& variable, Tensor next) { all_.emplace_back(&variable, std::move(next)); }
  void commit() {
    for (auto& [variable, next] : all_) variable->assign(next);
  }

 private:
  std::vector<std::pair<Variable*, Tensor>> all_;
};

}  // namespace gradus
