/// Finds rare parts from the result backwards: an instruction belongs to a rare select if all of its readers do.
/// Decision 356 has the reasons.
#include "gradus/scalar/rare_parts.h"
#include <algorithm>
#include <array>

namespace gradus::scalar {
namespace {

constexpr int nobody = -1, unread = -2;

bool is_rare(const Instruction& in) { return in.op == Opcode::select && in.bits != 0; }
bool is_free(const Instruction& in) {
  return in.op == Opcode::input || in.op == Opcode::constant || in.op == Opcode::extent;
}

/// For each instruction, the only rare select that needs it; `nobody`: it is always computed.
std::vector<int> owners_in(const Code& code) {
  std::vector<int> owners(code.instructions.size(), unread);
  owners[static_cast<std::size_t>(code.result)] = nobody;
  for (int i = code.result; i >= 0; --i) {
    const Instruction& in = code.instructions[static_cast<std::size_t>(i)];
    int& own = owners[static_cast<std::size_t>(i)];
    if (own == unread || is_free(in)) own = nobody;
    if (is_free(in)) continue;
    const bool chooses = own == nobody && is_rare(in);
    const std::array operands{in.a, in.b, in.c};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (operands[k] < 0) continue;
      const int reader = chooses && k == 1 ? i : own;
      int& owner = owners[static_cast<std::size_t>(operands[k])];
      owner = owner == unread || owner == reader ? reader : nobody;
    }
  }
  for (int& owner : owners) owner = owner == unread ? nobody : owner;
  return owners;
}

bool has_rare(const Code& code) { return std::ranges::any_of(code.instructions, is_rare); }

}  // namespace

Value select_rarely(const Value& which, const Value& rare, const Value& usual) {
  const Value chosen = select(which, rare, usual);
  chosen.code()->instructions[static_cast<std::size_t>(chosen.id())].bits = 1;
  return chosen;
}

Arranged arranged(const Code& code) {
  if (!has_rare(code)) return {code, {}};
  const std::vector<int> owners = owners_in(code);
  std::vector<int> places(code.instructions.size(), -1);
  Arranged made;
  const auto append = [&](int i) {
    Instruction in = code.instructions[static_cast<std::size_t>(i)];
    if (!is_free(in))
      for (int* operand : {&in.a, &in.b, &in.c})
        if (*operand >= 0) *operand = places[static_cast<std::size_t>(*operand)];
    places[static_cast<std::size_t>(i)] = made.code.add(in);
  };
  for (int i = 0; i < static_cast<int>(code.instructions.size()); ++i) {
    if (owners[static_cast<std::size_t>(i)] != nobody) continue;
    const int first = static_cast<int>(made.code.instructions.size());
    if (is_rare(code.instructions[static_cast<std::size_t>(i)]))
      for (int k = 0; k < i; ++k)
        if (owners[static_cast<std::size_t>(k)] == i) append(k);
    append(i);
    const int choice = places[static_cast<std::size_t>(i)];
    if (choice > first) made.rare.push_back({first, choice});
  }
  made.code.result = places[static_cast<std::size_t>(code.result)];
  return made;
}

std::int64_t usual_instructions(const Code& code) {
  if (!has_rare(code)) return std::ssize(code.instructions);
  return std::ranges::count(owners_in(code), nobody);
}

}  // namespace gradus::scalar
