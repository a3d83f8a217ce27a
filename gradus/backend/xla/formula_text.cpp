/// One case an opcode, and the search for functions within recorded formulas.
#include "gradus/backend/xla/formula_text.h"
#include <algorithm>
#include <array>
#include <functional>
#include "gradus/base/numbered.h"
#include "gradus/scalar/formulas.h"
#include "gradus/scalar/formulas_parts.h"
#include "gradus/scalar/formulas_special.h"

namespace gradus::xla {
namespace {

using scalar::Code;
using scalar::Instruction;
using scalar::Opcode;

// ---------------------------------------------------------------- instructions

/// x / 0 is 0; MIN / -1 is MIN in StableHLO as here.
HloValue integer_quotient(HloWriter& out, const HloValue& a, const HloValue& b) {
  const HloValue zero = out.zeros_like(b), one = out.integer(1, b.dtype(), b.shape());
  const HloValue is_zero = out.compare("EQ", b, zero);
  return out.select(is_zero, zero, out.divide(a, out.select(is_zero, one, b)));
}

HloValue truncation(HloWriter& out, const HloValue& x) {
  return out.select(out.compare("LT", x, out.zeros_like(x)), out.same("ceil", {x}), out.same("floor", {x}));
}

/// The op of the same meaning that takes and gives one type, if there is one.
std::string_view plain_name(Opcode op) {
  switch (op) {
    case Opcode::add: return "add";
    case Opcode::subtract: return "subtract";
    case Opcode::multiply: return "multiply";
    case Opcode::negate: return "negate";
    case Opcode::square_root: return "sqrt";
    case Opcode::round_even: return "round_nearest_even";
    case Opcode::floor: return "floor";
    case Opcode::ceil: return "ceil";
    case Opcode::bit_and: return "and";
    case Opcode::bit_or: return "or";
    case Opcode::bit_xor: return "xor";
    case Opcode::shift_left: return "shift_left";
    case Opcode::shift_right_logical: return "shift_right_logical";
    default: return {};
  }
}

}  // namespace

HloValue write_instruction(HloWriter& out, Opcode op, const HloValues& x, DType type) {
  if (const std::string_view name = plain_name(op); !name.empty()) return out.same(name, x);
  switch (op) {
    case Opcode::divide: return is_floating(type) ? out.divide(x[0], x[1]) : integer_quotient(out, x[0], x[1]);
    case Opcode::absolute: return is_integer(type) && !is_signed(type) ? x[0] : out.same("abs", x);
    case Opcode::truncate: return truncation(out, x[0]);
    case Opcode::fma: return out.add(out.multiply(x[0], x[1]), x[2]);
    // StableHLO's own give NaN if either is one, or whatever a platform finds fast.
    case Opcode::minimum: return out.select(out.compare("LT", x[0], x[1]), x[0], x[1]);
    case Opcode::maximum: return out.select(out.compare("GT", x[0], x[1]), x[0], x[1]);
    case Opcode::less: return out.compare("LT", x[0], x[1]);
    case Opcode::less_equal: return out.compare("LE", x[0], x[1]);
    case Opcode::equal: return out.compare("EQ", x[0], x[1]);
    case Opcode::shift_right: return out.same(is_signed(type) ? "shift_right_arithmetic" : "shift_right_logical", x);
    case Opcode::select: return out.select(x[0], x[1], x[2]);
    case Opcode::convert: return out.convert(x[0], type);
    case Opcode::bitcast: return out.typed("bitcast_convert", x[0].name, {x[0]}, {type, x[0].shape()});
    default: break;
  }
  throw InternalError("StableHLO text of an instruction that has no operands");
}

namespace {

// ---------------------------------------------------------------- functions within formulas

using Writer = std::function<HloValue(HloWriter&, const HloValues&)>;

/// The record of a function on inputs of type `t`: its instructions without the inputs, which are operands -2, -3 ...
/// of them, and the same function as StableHLO.
struct Recorded {
  Writer write;
  DType type = f32;
  int arity = 1;
  std::vector<Instruction> instructions;
};

template <class... Inputs> Recorded recorded(Writer write, DType t, scalar::Value (*function)(const Inputs&...)) {
  constexpr int arity = sizeof...(Inputs);
  Code code;
  std::vector<scalar::Value> in;
  for (int k = 0; k < arity; ++k) in.emplace_back(&code, code.add({.op = Opcode::input, .type = t, .a = k}));
  int result = -1;
  if constexpr (arity == 1) result = function(in[0]).id();
  else result = function(in[0], in[1]).id();
  internal_check(result + 1 == std::ssize(code.instructions), "a function does not end with its result");
  Recorded made{std::move(write), t, arity, {}};
  for (std::size_t k = arity; k < code.instructions.size(); ++k) {
    Instruction i = code.instructions[k];
    for (int* operand : {&i.a, &i.b, &i.c})
      if (*operand >= 0) *operand = *operand < arity ? -2 - *operand : *operand - arity;
    made.instructions.push_back(i);
  }
  return made;
}

Writer named(std::string_view name) {
  return [name](HloWriter& out, const HloValues& x) { return out.same(name, x); };
}

HloValue tangent(HloWriter& out, const HloValues& x) { return out.divide(out.same("sine", x), out.same("cosine", x)); }

/// Computes scalar::floor_mod; StableHLO's remainder is exact, too.
HloValue floor_remainder(HloWriter& out, const HloValues& x) {
  const HloValue &a = x[0], &b = x[1], zero = out.zeros_like(a);
  const HloValue rest = out.same("remainder", {a, b}), sum = out.add(rest, b);
  const HloValue differs = out.same("xor", {out.compare("LT", rest, zero), out.compare("LT", b, zero)});
  const HloValue moves = out.same("and", {differs, out.compare("NE", rest, zero)});
  const HloValue floored = out.select(moves, sum, rest);
  const HloValue signed_zero = out.select(out.compare("LT", b, zero), out.same("negate", {zero}), zero);
  return out.select(out.compare("EQ", floored, zero), signed_zero, floored);
}

std::vector<Recorded> all_recorded() {
  using One = scalar::Value (*)(const scalar::Value&);
  using Two = scalar::Value (*)(const scalar::Value&, const scalar::Value&);
  std::vector<Recorded> all;
  for (const DType t : {f32, f64}) {
    all.push_back(recorded(named("exponential"), t, One(scalar::exp)));
    all.push_back(recorded(named("exponential_minus_one"), t, One(scalar::expm1)));
    all.push_back(recorded(named("logistic"), t, One(scalar::sigmoid)));
    all.push_back(recorded(named("tanh"), t, One(scalar::tanh)));
    all.push_back(recorded(named("log"), t, One(scalar::log)));
    all.push_back(recorded(named("log_plus_one"), t, One(scalar::log1p)));
    all.push_back(recorded(named("sine"), t, One(scalar::sin)));
    all.push_back(recorded(named("cosine"), t, One(scalar::cos)));
    all.push_back(recorded(named("sine"), t, One(scalar::bounded_sin)));
    all.push_back(recorded(named("cosine"), t, One(scalar::bounded_cos)));
    all.push_back(recorded(tangent, t, One(scalar::tan)));
    all.push_back(recorded(named("remainder"), t, Two(scalar::fmod)));
    all.push_back(recorded(floor_remainder, t, Two(scalar::floor_mod)));
  }
  // One that is part of another is looked for after it.
  std::ranges::stable_sort(all, std::greater(), [](const Recorded& r) { return r.instructions.size(); });
  return all;
}

/// The arguments of `function` if the instructions from `begin` on are its record; else none.
std::vector<int> arguments_of(const Recorded& function, const Code& code, std::size_t begin) {
  if (begin + function.instructions.size() > code.instructions.size()) return {};
  std::vector<int> arguments(at(function.arity), -1);
  for (std::size_t k = 0; k < function.instructions.size(); ++k) {
    const Instruction &want = function.instructions[k], &have = code.instructions[begin + k];
    if (want.op != have.op || want.type != have.type || want.bits != have.bits) return {};
    const std::array wants{want.a, want.b, want.c}, haves{have.a, have.b, have.c};
    for (std::size_t o = 0; o < 3; ++o) {
      if (wants[o] == -1 ? haves[o] != -1 : wants[o] >= 0 && haves[o] != wants[o] + static_cast<int>(begin)) return {};
      if (wants[o] > -2) continue;
      int& argument = arguments[at(-2 - wants[o])];
      if (argument >= 0 && argument != haves[o]) return {};
      argument = haves[o];
    }
  }
  for (const int argument : arguments)
    if (argument < 0 || code.instructions[at(argument)].type != function.type) return {};
  return arguments;
}

/// Per instruction: the function whose result it is.
struct Call {
  const Recorded* function = nullptr;
  std::vector<int> arguments = {};
};

std::vector<Call> calls_in(const Code& code) {
  static const std::vector<Recorded> functions = all_recorded();
  std::vector<Call> calls(code.instructions.size());
  for (std::size_t begin = 0; begin < code.instructions.size(); ++begin)
    for (const Recorded& function : functions)
      if (std::vector<int> arguments = arguments_of(function, code, begin); !arguments.empty()) {
        begin += function.instructions.size() - 1;
        calls[begin] = {&function, std::move(arguments)};
        break;
      }
  return calls;
}

std::vector<bool> needed_in(const Code& code, const std::vector<Call>& calls) {
  std::vector<bool> needed(code.instructions.size());
  needed[at(code.result)] = true;
  for (int i = code.result; i >= 0; --i) {
    if (!needed[at(i)]) continue;
    const Instruction& in = code.instructions[at(i)];
    if (calls[at(i)].function)
      for (const int argument : calls[at(i)].arguments) needed[at(argument)] = true;
    else if (in.op != Opcode::input)
      for (const int operand : {in.a, in.b, in.c})
        if (operand >= 0) needed[at(operand)] = true;
  }
  return needed;
}

/// Constants that are added or taken away: XLA makes x of (x + C) - C.
std::vector<bool> added_constants(const Code& code, const std::vector<bool>& needed, const std::vector<Call>& calls) {
  std::vector<bool> added(code.instructions.size());
  int arithmetic = 0;
  for (std::size_t k = 0; k < code.instructions.size(); ++k) {
    const Instruction& i = code.instructions[k];
    if (!needed[k] || calls[k].function || !is_floating(i.type)) continue;
    const bool adds = i.op == Opcode::add || i.op == Opcode::subtract, fuses = i.op == Opcode::fma;
    arithmetic += adds || fuses;
    for (const int operand : {adds ? i.a : -1, adds ? i.b : -1, fuses ? i.c : -1})
      if (operand >= 0) added[at(operand)] = true;
  }
  if (arithmetic < 2) added.assign(added.size(), false);  // one sum alone stays as it is
  return added;
}

}  // namespace

HloValue write_formula(HloWriter& out, const Code& code, const HloValues& inputs, const Shape& shape,
                       bool uses_functions) {
  const std::vector<Call> calls = uses_functions ? calls_in(code) : std::vector<Call>(code.instructions.size());
  const std::vector<bool> needed = needed_in(code, calls), added = added_constants(code, needed, calls);
  std::vector<HloValue> values(code.instructions.size());
  for (std::size_t k = 0; k < code.instructions.size(); ++k) {
    if (!needed[k]) continue;
    const Instruction& i = code.instructions[k];
    if (calls[k].function) {
      HloValues arguments;
      for (const int argument : calls[k].arguments) arguments.push_back(values[at(argument)]);
      values[k] = calls[k].function->write(out, arguments);
    } else if (i.op == Opcode::input) {
      values[k] = inputs[at(i.a)];
    } else if (i.op == Opcode::constant || i.op == Opcode::extent) {
      values[k] = added[k] && is_floating(i.type) ? out.hidden_constant(i.type, i.bits, shape)
                                                  : out.constant(i.type, i.bits, shape);
    } else {
      HloValues operands;
      for (const int operand : {i.a, i.b, i.c})
        if (operand >= 0) operands.push_back(values[at(operand)]);
      values[k] = write_instruction(out, i.op, operands, i.type);
    }
  }
  return values[at(code.result)];
}

}  // namespace gradus::xla
