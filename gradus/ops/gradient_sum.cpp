#include "gradus/ops/gradient_sum.h"
#include "gradus/ops/disjoint_sum.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/widened.h"

namespace gradus {

void GradientSum::add(const Tensor& term) {
  if (!defined()) {
    value_ = term;
  } else if (std::optional<Tensor> joined = wide_.defined() ? std::nullopt : disjoint_sum(value_, term)) {
    value_ = std::move(*joined);
  } else if (!is_narrow(term.dtype())) {
    value_ = value_ + term;
  } else {
    const bool are_two = !wide_.defined();
    wide_ = (are_two ? widened(value_) : wide_) + widened(term);
    value_ = are_two ? value_ + term : cast(wide_, term.dtype());
  }
}

}  // namespace gradus
