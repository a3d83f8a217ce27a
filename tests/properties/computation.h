/// A program with its gradients, as one function of its arguments with many results, run in one way or another.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/function/traced_function.h"
#include "tests/properties/check.h"

namespace gradus::properties {

/// The outputs, the gradients of their weighted sum by all float arguments, and of second order those of the gradients'
/// products with fixed directions.
class Computation {
 public:
  explicit Computation(const Program& program, int order = 1)
      : program_(program),
        order_(order),
        weighted_(program),
        at_(program.arguments()),
        along_(noise(at_, program.seed)) {}

  const Tensors& arguments() const { return at_; }
  Tensors operator()(In arguments) const;
  Tensors lazily() const;
  /// Through a function of its own.
  Tensors compiled(FunctionOptions options) const;
  Tensors called_once() const;
  Tensors call(TracedFunction& function, In arguments) const;

 private:
  const Program& program_;
  int order_;
  Weighted weighted_;
  Tensors at_, along_;
};

/// Says which result differs in a bit; nothing if none does.
std::string difference(In got, In want);
/// Holds if no result differs in a bit from what is wanted.
Outcome same_bits(const std::string& way, In got, In want);

/// The float tensors among these.
Tensors floats_of(In tensors);

}  // namespace gradus::properties
