/// A program's statement of its optimizer, as text: a checkpoint keeps it, and a resumed training compares it.
#include "gradus/optim/option_text.h"
#include "gradus/optim/optimizer_state.h"

namespace gradus {
namespace {

std::string names_of(const Variables& variables) {
  std::string names;
  for (const Variable& variable : variables) names += (names.empty() ? "" : ", ") + variable.name();
  return names;
}

}  // namespace

NamedOptions Optimizer::said() const {
  const State& s = state();
  NamedOptions all = s.settings.said;
  std::string slots;
  for (const UpdateRule::Slot& slot : s.rule->slots()) slots += (slots.empty() ? "" : ", ") + std::string(slot.name);
  if (s.settings.use_ema) slots += slots.empty() ? "average" : ", average";
  all.emplace_back("slots", slots.empty() ? "none" : slots);
  std::string undecayed = names_of(s.undecayed);
  for (const std::string& part : s.undecayed_names) undecayed += text(undecayed.empty() ? "" : ", ", '*', part, '*');
  all.emplace_back("exclude_from_weight_decay", undecayed.empty() ? "none" : undecayed);
  all.emplace_back("parameter groups", std::to_string(s.groups.size() - 1));
  for (std::size_t i = 1; i < s.groups.size(); ++i) {
    all.emplace_back(text("weight_decay of group ", i), option_text(s.groups[i].weight_decay));
    all.emplace_back(text("variables of group ", i), names_of(s.groups[i].members));
  }
  return all;
}

std::vector<Optimizer::SaidRate> Optimizer::said_rates() const {
  const State& s = state();
  std::vector<SaidRate> all;
  for (std::size_t i = 0; i < s.groups.size(); ++i) {
    const ParameterGroup& group = s.groups[i];
    if (!group.has_rate) continue;
    all.push_back({i == 0 ? "learning_rate" : text("learning_rate of group ", i), &s.rates[i],
                   group.first.description(), group.last.description(), !group.schedule.is_constant()});
  }
  return all;
}

}  // namespace gradus
