/// A random program as data: inputs, applications of op rows, outputs. It runs wherever tensors do, prints itself, and
/// can be made smaller while it still fails.
#pragma once
#include <functional>
#include <string>
#include <vector>
#include "tests/ops/rows.h"

namespace gradus::properties {

using rows::Array;

/// One value of a program: an input, or an op applied to earlier values.
struct Step {
  std::string what;                 // the row's name; of an input: why it is there
  std::function<Tensor(In)> apply;  // empty: an input
  std::vector<int> in;              // earlier steps
  DType dtype;
  Array value;  // by the float64 oracle, at the program's own arguments
};

struct Program {
  std::uint64_t seed = 0;
  std::vector<Step> steps;
  std::vector<int> outputs;

  /// What it is called with.
  Tensors arguments() const;
  /// Which of the arguments have gradients.
  std::vector<bool> are_floats() const;
  Tensors operator()(In arguments) const;
  /// Applications of ops.
  int length() const;
  const Step& step(int i) const { return steps[static_cast<std::size_t>(i)]; }
};

/// `program` without the steps that no output needs.
Program pruned(const Program& program);
/// The smallest program found that `fails`, by cutting steps off: at the end, or by putting their value in as an input.
Program shrunk(Program program, const std::function<bool(const Program&)>& fails);

std::ostream& operator<<(std::ostream& out, const Program& program);

}  // namespace gradus::properties
