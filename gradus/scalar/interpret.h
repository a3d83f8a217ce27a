/// Runs recorded scalar formulas on arrays, bit for bit as generated code does: one loop per instruction, a block at a
/// time. Constant folding and the interpreted tier use it.
#pragma once
#include <cstddef>
#include <span>
#include <vector>
#include "gradus/scalar/loops.h"

namespace gradus::scalar {

/// A formula, ready to run on arrays.
class Interpreter {
 public:
  /// Most elements of one run.
  static constexpr std::int64_t block = 256;

  Interpreter() = default;
  /// `symbols`: the values of the symbols in the formula's extents.
  explicit Interpreter(const scalar::Code& code, std::span<const std::int64_t> symbols = {});

  /// result[i] = formula(inputs[0][i], inputs[1][i], ...) for i in [0, count), count <= block. `scratch` has
  /// scratch_bytes() and is aligned to 64 bytes. The result may overwrite an input of its width.
  void run(const void* const* inputs, void* result, std::int64_t count, void* scratch) const;
  std::int64_t scratch_bytes() const { return registers_ * register_bytes; }

 private:
  static constexpr std::int64_t register_bytes = block * 8;
  enum class Place : std::uint8_t { input, scratch, constant, result };
  struct Operand {
    Place place = Place::input;
    std::int64_t at = 0;  // number of the input, or a byte offset
  };
  struct Instruction {
    Loop loop;  // null: a test that skips the following instructions if `a`, a boolean, holds for no element
    Operand result, a, b, c;
    std::size_t skipped = 0;  // number of instructions
  };
  struct Placement;

  Operand add_constant(DType t, std::uint64_t bits);
  void* address(Operand operand, const void* const* inputs, void* result, void* scratch) const;

  std::vector<Instruction> instructions_;
  std::vector<std::uint64_t> constants_;  // each repeated over a block
  std::int64_t registers_ = 0;
};

/// The formula for one element: operands and result as bits in the low bytes.
std::uint64_t evaluate_bits(const scalar::Code& code, std::span<const std::uint64_t> operands,
                            std::span<const std::int64_t> symbols = {});

}  // namespace gradus::scalar
