/// What an optimizer consists of: how its steps are made, and the Variables that they read and write. Two structs whose
/// own copies are what a copy of the optimizer has; whatever an optimizer is to remember goes into one of them.
#pragma once
#include <limits>
#include <memory>
#include <string>
#include <vector>
#include "gradus/function/variable.h"
#include "gradus/optim/optimizer.h"
#include "gradus/optim/update_rule.h"

namespace gradus {

/// Variables with a learning rate and decay of their own; the first group is that of the optimizer's options.
struct ParameterGroup {
  Schedule schedule;
  double weight_decay;
  bool has_rate;  // else that of the first group
  Variables members;
};

/// What holds for a bound variable.
struct Membership {
  std::size_t group = 0;
  bool decays = true;
  bool operator==(const Membership&) const = default;
};

/// How steps are made, which compiled ones have taken in.
struct OptimizerSetup {
  std::shared_ptr<const UpdateRule> rule;
  OptimizerSettings settings;
  std::vector<ParameterGroup> groups;
  Variables undecayed;  // excluded, by identity and by name
  std::vector<std::string> undecayed_names;
  Variables bound;                      // the model's variables
  std::vector<Membership> memberships;  // of each of them

  OptimizerSetup(std::shared_ptr<const UpdateRule> r, OptimizerSettings s);
  /// These, as many as are bound, take the places of those.
  void rebind(const Variables& variables);
  /// Whether a compiled step of this one is what `other` would make for the variables that are bound here. Learning
  /// rates that are numbers are none of it: they are read.
  bool makes_the_steps_of(const OptimizerSetup& other) const;
};

/// What steps read and write. A copy has Variables of its own with the same values.
struct OptimizerValues {
  static constexpr double from_schedule = std::numeric_limits<double>::quiet_NaN();

  Variable iterations, skipped;
  std::vector<Variable> rates;  // of each group; from_schedule: its schedule's function says it
  std::vector<Variable> joint;
  std::vector<std::vector<Variable>> kept;  // for each bound variable: slots of the rule, then the moving average

  OptimizerValues(const UpdateRule& rule, const Schedule& learning_rate);
  static double initial_rate(const Schedule& schedule);
  static Variable own(const UpdateRule& rule, const std::string& what, double value, DType dtype);
};

}  // namespace gradus
