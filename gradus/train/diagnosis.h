/// The origin of a loss that is not finite.
#pragma once
#include <string>
#include "gradus/data/pipeline.h"
#include "gradus/optim/optimizer.h"
#include "gradus/train/task.h"

namespace gradus {

using detail::Task;

/// Runs the step's forward and backward pass op by op, on the batch at which it diverged and with the weights of that
/// moment. Tells where the first value that is not finite appeared: in the batch, in a variable, or in a layer.
std::string find_divergence(const Module& model, const Task& task, Optimizer& optimizer, const Tensors& batch);

}  // namespace gradus
