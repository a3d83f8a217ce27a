/// Gradients that were not made by a tape, or were changed after it.
///
///   optimizer.apply_gradients(erased::gradients_of(variables, means, weight));
#pragma once
#include "gradus/gradients/gradients.h"

namespace gradus::erased {

/// One mean for each variable, in full, and the joint weight of the examples behind them, a scalar: the number of
/// examples, or 1 for plain gradients. InvalidArgument unless there are as many as variables, in their shapes.
inline Gradients gradients_of(Variables variables, std::vector<Tensor> means, Tensor weight) {
  require(variables.size() == means.size(), "gradients_of: ", means.size(), " gradients for ", variables.size(),
          " variables");
  for (std::size_t i = 0; i < means.size(); ++i)
    require(means[i].shape() == variables[i].shape(), "gradients_of: the gradient of ", variables[i].name(), " is ",
            means[i].spec(), ", the variable ", variables[i].value().spec());
  return Gradients(std::move(variables), std::move(means), std::move(weight));
}

}  // namespace gradus::erased
