/// Compiles a formula to a list of loops: dead instructions are dropped, registers are reused after their last read.
#include "gradus/scalar/interpret.h"
#include <cstring>
#include "gradus/scalar/rare_parts.h"
#include "gradus/tensor/dimension.h"

namespace gradus::scalar {
namespace {

using scalar::Code;
using scalar::Opcode;

const scalar::Instruction& at(const Code& code, int i) { return code.instructions[static_cast<std::size_t>(i)]; }

/// Per instruction the last one that reads it; -1: none, so it is dead.
std::vector<int> last_readers(const Code& code) {
  std::vector<int> last(code.instructions.size(), -1);
  last[static_cast<std::size_t>(code.result)] = code.result;
  for (int i = code.result; i >= 0; --i) {
    if (last[static_cast<std::size_t>(i)] < 0 || at(code, i).op == Opcode::input) continue;
    for (int operand : {at(code, i).a, at(code, i).b, at(code, i).c})
      if (operand >= 0) last[static_cast<std::size_t>(operand)] = std::max(last[static_cast<std::size_t>(operand)], i);
  }
  return last;
}

/// The type by which the loop of instruction `i` reads its operands.
DType operand_type(const Code& code, int i) {
  const scalar::Instruction& in = at(code, i);
  return in.op == Opcode::select ? in.type : at(code, in.a).type;
}

}  // namespace

/// Registers that are free, while instructions get theirs in order.
struct Interpreter::Placement {
  std::vector<std::int64_t> free;
  std::int64_t count = 0;
  std::int64_t take() {
    if (free.empty()) return count++;
    const std::int64_t found = free.back();
    free.pop_back();
    return found;
  }
};

Interpreter::Interpreter(const Code& formula, std::span<const std::int64_t> symbols) {
  const auto [code, rare_parts] = arranged(formula);
  auto part = rare_parts.begin();
  std::size_t test = 0;
  const std::vector<int> last = last_readers(code);
  std::vector<Operand> places(code.instructions.size());
  Placement placement;
  const auto place_of = [&](int i) { return i < 0 ? Operand{} : places[static_cast<std::size_t>(i)]; };
  for (int i = 0; i <= code.result; ++i) {
    const scalar::Instruction& in = at(code, i);
    Operand& place = places[static_cast<std::size_t>(i)];
    if (part != rare_parts.end() && i == part->first) {
      test = instructions_.size();
      instructions_.push_back({.loop = nullptr, .a = place_of(at(code, part->choice).a)});
    }
    if (part != rare_parts.end() && i == part->choice) {
      instructions_[test].skipped = instructions_.size() - test - 1;
      ++part;
    }
    if (last[static_cast<std::size_t>(i)] < 0) continue;
    if (in.op == Opcode::input) {
      place = {Place::input, in.a};
      continue;
    }
    if (in.op == Opcode::constant || in.op == Opcode::extent) {
      const bool known = in.op == Opcode::constant;
      place = add_constant(in.type, known ? in.bits
                                          : static_cast<std::uint64_t>(
                                                dimension::evaluate(static_cast<std::int64_t>(in.bits), symbols)));
      continue;
    }
    place = i == code.result ? Operand{Place::result, 0} : Operand{Place::scratch, placement.take() * register_bytes};
    instructions_.push_back(
        {loop_of(in.op, operand_type(code, i), in.type), place, place_of(in.a), place_of(in.b), place_of(in.c), 0});
    const int operands[] = {in.a, in.b, in.c};
    for (int k = 0; k < 3; ++k) {
      const int operand = operands[k];
      const bool repeated = (k > 0 && operand == operands[0]) || (k > 1 && operand == operands[1]);
      if (operand < 0 || repeated || last[static_cast<std::size_t>(operand)] != i) continue;
      if (place_of(operand).place == Place::scratch) placement.free.push_back(place_of(operand).at / register_bytes);
    }
  }
  registers_ = placement.count;
  if (const Operand result = place_of(code.result); result.place != Place::result)
    instructions_.push_back({copy_loop(at(code, code.result).type), {Place::result, 0}, result, {}, {}, 0});
}

Interpreter::Operand Interpreter::add_constant(DType t, std::uint64_t bits) {
  const std::size_t size = static_cast<std::size_t>(size_of(t)), begin = constants_.size();
  constants_.resize(begin + static_cast<std::size_t>(block) * size / 8);
  auto* bytes = reinterpret_cast<std::byte*>(constants_.data() + begin);
  for (std::size_t i = 0; i < static_cast<std::size_t>(block); ++i) std::memcpy(bytes + i * size, &bits, size);
  return {Place::constant, static_cast<std::int64_t>(begin * 8)};
}

void* Interpreter::address(Operand operand, const void* const* inputs, void* result, void* scratch) const {
  switch (operand.place) {
    case Place::input: return const_cast<void*>(inputs[operand.at]);
    case Place::scratch: return static_cast<std::byte*>(scratch) + operand.at;
    case Place::constant:
      return const_cast<std::byte*>(reinterpret_cast<const std::byte*>(constants_.data()) + operand.at);
    case Place::result: break;
  }
  return result;
}

void Interpreter::run(const void* const* inputs, void* result, std::int64_t count, void* scratch) const {
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Instruction& in = instructions_[i];
    if (!in.loop) {
      const void* condition = address(in.a, inputs, result, scratch);
      if (!std::memchr(condition, 1, static_cast<std::size_t>(count))) i += in.skipped;
      continue;
    }
    in.loop(address(in.result, inputs, result, scratch), address(in.a, inputs, result, scratch),
            address(in.b, inputs, result, scratch), address(in.c, inputs, result, scratch), count);
  }
}

std::uint64_t evaluate_bits(const Code& code, std::span<const std::uint64_t> operands,
                            std::span<const std::int64_t> symbols) {
  const Interpreter interpreter(code, symbols);
  std::vector<const void*> inputs;
  for (const std::uint64_t& operand : operands) inputs.push_back(&operand);
  std::vector<std::uint64_t> scratch(static_cast<std::size_t>(interpreter.scratch_bytes() / 8));
  std::uint64_t result = 0;
  interpreter.run(inputs.data(), &result, 1, scratch.data());
  return result;
}

}  // namespace gradus::scalar
