/// The parts of a formula that only a rare select needs (select_rarely): readers that can branch skip them if the
/// condition holds for no element at hand. Bits do not depend on it.
#pragma once
#include <vector>
#include "gradus/scalar/scalar.h"

namespace gradus::scalar {

/// select(which, rare, usual) for a condition that hardly ever holds. Instructions on which only `rare` depends are
/// computed if the condition holds for an element at hand, and cost a test otherwise.
Value select_rarely(const Value& which, const Value& rare, const Value& usual);
inline Real select_rarely(Real which, Real rare, Real usual) { return select(which, rare, usual); }

/// Only operand b of instruction `choice`, a rare select, needs the instructions [first, choice).
struct RarePart {
  int first = -1, choice = -1;
};

/// A formula whose rare parts are contiguous, each before its select.
struct Arranged {
  Code code;
  std::vector<RarePart> rare;  // in order; they do not overlap
};

/// The same formula, instruction for instruction, with its rare parts moved together. A part within a part belongs to
/// the outer one.
Arranged arranged(const Code& code);

/// The number of instructions that run if no condition of a rare part holds.
std::int64_t usual_instructions(const Code& code);

}  // namespace gradus::scalar
