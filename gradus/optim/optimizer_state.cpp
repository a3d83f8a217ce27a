/// Creation, rebinding and comparison. Formulas are equal if tracing them gives the same region.
#include "gradus/optim/optimizer_state.h"
#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/graph/region.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/optim/checked_rule.h"

namespace gradus {
namespace {

/// The Variables that were read, and the nodes of the reads.
struct Readings final : ReadListener {
  struct Reading {
    Tensor value;  // so that no other node gets its address
    std::uint64_t cell;
  };
  std::unordered_map<const Node*, Reading> all;
  bool are_apart = true;  // no two Variables hold one node
  void on_read(VariableCell& cell, const Tensor& value) override {
    const auto [read, is_first] = all.try_emplace(value.node().get(), value, cell.id);
    are_apart = are_apart && (is_first || read->second.cell == cell.id);
  }
  bool knows(const Tensor&) const override { return false; }
};

struct Formula {
  Captured captured;
  std::vector<std::uint64_t> cells;  // per capture: the number of the Variable whose value it is; 0: of none
  bool is_comparable;
};

/// The formula that `f` makes from `scalars` scalars.
Formula formula(std::string_view of, std::size_t scalars, DType t, const std::function<Tensors(In)>& f) {
  const std::vector<Spec> specs(scalars, Spec{t, {}});
  Readings readings;
  Formula made{capture(RegionTrace(of, specs, f)), {}, readings.are_apart};
  for (const Tensor& capture : made.captured.captures) {
    const auto read = readings.all.find(capture.node().get());
    made.cells.push_back(read == readings.all.end() ? 0 : read->second.cell);
  }
  return made;
}

/// Numbers that a formula creates are another tensor each time that it is traced.
bool same_numbers(const Tensor& a, const Tensor& b) {
  return a.node() == b.node() || (!a.is_symbolic() && !b.is_symbolic() && bitwise_equal(a, b));
}

bool same_formula(const Formula& a, const Formula& b) {
  const Tensors &x = a.captured.captures, &y = b.captured.captures;
  if (!a.is_comparable || !b.is_comparable || a.captured.region != b.captured.region || a.cells != b.cells)
    return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (a.cells[i] == 0 && !same_numbers(x[i], y[i])) return false;
  return true;
}

Formula formula_of(const UpdateRule& rule) {
  const std::size_t joint = rule.joint_state().size(), slots = rule.slots().size();
  return formula("the rule of an optimizer", 4 + joint + slots, f64, [&](In x) {
    const UpdateRule::Shared shared = shared_by(rule, {x[0], x[1]}, x.subspan(4, joint));
    const UpdateRule::Updated next = updated_by(rule, x[2], x[3], x.subspan(4 + joint), shared.numbers);
    return concatenated({shared.numbers, shared.state, {&next.variable, 1}, next.slots});
  });
}
Formula formula_of(const Schedule& schedule) {
  return formula("a schedule", 1, i64, [&](In x) { return Tensors{schedule.at(x[0])}; });
}

bool same_rule(const UpdateRule& a, const UpdateRule& b) {
  if (&a == &b) return true;
  return a.name() == b.name() && a.unmoved_by_zero() == b.unmoved_by_zero() && a.slots().size() == b.slots().size() &&
         same_formula(formula_of(a), formula_of(b));
}

bool same_schedule(const Schedule& a, const Schedule& b) {
  if (a.is_constant() || b.is_constant()) return a.is_constant() && b.is_constant();
  try {
    return same_formula(formula_of(a), formula_of(b));
  } catch (const InvalidArgument&) {  // it branches on the step
    return false;
  }
}

bool same_group(const ParameterGroup& a, const ParameterGroup& b) {
  return a.weight_decay == b.weight_decay && a.has_rate == b.has_rate && same_schedule(a.schedule, b.schedule);
}

/// All but what the first group has.
auto of_all_groups(const OptimizerSettings& s) {
  return std::tie(s.clipnorm, s.global_clipnorm, s.clipvalue, s.use_ema, s.ema_momentum, s.ema_overwrite_frequency,
                  s.lazy);
}

}  // namespace

OptimizerSetup::OptimizerSetup(std::shared_ptr<const UpdateRule> r, OptimizerSettings s)
    : rule(std::move(r)), settings(std::move(s)) {
  groups.push_back(
      {settings.learning_rate, settings.weight_decay, true, {}, settings.learning_rate, settings.learning_rate});
}

void OptimizerSetup::rebind(const Variables& variables) {
  const auto rebound = [&](const Variables& list) {
    Variables result;
    for (const Variable& variable : list) {
      const std::ptrdiff_t i = bound.find(*variable.cell());
      result.add(i < 0 ? variable : variables[static_cast<std::size_t>(i)]);
    }
    return result;
  };
  for (ParameterGroup& group : groups) group.members = rebound(group.members);
  undecayed = rebound(undecayed);
  bound = variables;
}

bool OptimizerSetup::has_step_of(const OptimizerSetup& other) const {
  return of_all_groups(settings) == of_all_groups(other.settings) && memberships == other.memberships &&
         std::ranges::equal(groups, other.groups, same_group) && same_rule(*rule, *other.rule);
}

OptimizerValues::OptimizerValues(const UpdateRule& rule, const Schedule& learning_rate)
    : iterations(own(rule, "iterations", 0, i64)), skipped(own(rule, "skipped_steps", 0, i64)) {
  rates.push_back(own(rule, "learning_rate", initial_rate(learning_rate), f64));
  for (double value : rule.joint_state()) joint.push_back(own(rule, text("joint_", joint.size()), value, f64));
}

double OptimizerValues::initial_rate(const Schedule& schedule) {
  return schedule.is_constant() ? schedule.constant() : from_schedule;
}

Variable OptimizerValues::own(const UpdateRule& rule, const std::string& what, double value, DType dtype) {
  const Untraced outside;
  return Variable(full({}, value, dtype), text(rule.name(), "/", what), {.trainable = false});
}

}  // namespace gradus
