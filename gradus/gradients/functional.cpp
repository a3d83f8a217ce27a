/// The transforms behind their templates.
#include "gradus/gradients/functional.h"

namespace gradus {

Tensor detail::vectorized_map(const TensorsFunction& f, const Tensor& xs) {
  require(xs.shape().rank() > 0, "vectorized_map: xs is ", xs.spec(), ", which has no rows; expected [n, ...]");
  const TensorsFunction checked = [&](In row) {
    Tensors y = f(row);
    require(y[0].defined(), "vectorized_map: the function gave an empty tensor for a row ", row[0].spec());
    return y;
  };
  return vmap(checked, {&xs, 1}, xs.shape()[0])[0];
}

}  // namespace gradus
