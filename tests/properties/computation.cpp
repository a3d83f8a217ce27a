/// Gradients of programs, and comparing bits.
#include "tests/properties/computation.h"
#include <cmath>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"

namespace gradus::properties {

Tensors floats_of(In tensors) {
  Tensors result;
  for (const Tensor& x : tensors)
    if (x.defined() && is_floating(x.dtype())) result.push_back(x);
  return result;
}

Tensors Computation::operator()(In arguments) const {
  const RecordingScope keep;  // op by op everything is computed at once
  Tensors results = program_(arguments);
  const Tensors sources = floats_of(arguments), along = floats_of(along_);
  Tensor target = weighted_(results);
  for (int k = 0; k < order_ && target.defined(); ++k) {
    const Tensors gradients = vjp(target, sources);
    target = {};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (!gradients[i].defined()) continue;
      results.push_back(gradients[i]);
      const Tensor term = cast(reduce_sum(gradients[i] * along[i]), f64);
      target = target.defined() ? target + term : term;
    }
  }
  return results;
}

Tensors Computation::lazily() const {
  const Tensors results = (*this)(at_);
  for (const Tensor& x : results) x.observed();
  return results;
}

Tensors Computation::compiled(FunctionOptions options) const {
  TracedFunction function(std::move(options), nullptr, 0);
  call(function, at_);  // the first call of a small one is interpreted
  call(function, at_);  // which may be interpreted
  return call(function, at_);
}

Tensors Computation::called_once() const {
  TracedFunction function({}, nullptr, 0);
  call(function, at_);  // which may be interpreted
  return call(function, at_);
}

Tensors Computation::call(TracedFunction& function, In arguments) const {
  return function.call(arguments, {}, [&](In in) { return Called{(*this)(in), {}}; }).tensors;
}

namespace {
/// With one NaN for all: which it is, its sign and payload, is no part of the contract.
Tensor with_one_nan(const Tensor& x) {
  return is_floating(x.dtype()) ? where(is_nan(x), fill(x.shape(), NAN, x.dtype()), x) : x;
}
}  // namespace

std::string difference(In got, In want) {
  if (got.size() != want.size()) return text(got.size(), " results, not ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!bitwise_equal(got[i], want[i]) && !bitwise_equal(with_one_nan(got[i]), with_one_nan(want[i])))
      return text("result ", i, ", ", got[i].spec(), ", is off by ",
                  got[i].spec() == want[i].spec() ? max_abs_difference(got[i], want[i]) : NAN);
  return {};
}

Outcome same_bits(const std::string& way, In got, In want) {
  const std::string found = difference(got, want);
  return found.empty() ? holds() : fails(way + ": " + found);
}

}  // namespace gradus::properties
