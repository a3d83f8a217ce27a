/// The loss and the gradients of a batch, as a whole or in parts: of fit's step, and of the step that the command
/// exports.
#pragma once
#include <functional>
#include <vector>
#include "gradus/gradients/gradients.h"
#include "gradus/train/task.h"

namespace gradus {

/// The fields of each part of a batch. `micro_batch`: rows of a part; 0: the batch is one part.
std::vector<Tensors> parts_of_batch(In fields, std::int64_t micro_batch);

struct BatchGradients {
  Loss loss;
  Gradients gradients;
};

/// Forward, loss, penalties and backward of all parts. `is_whole`: there is one part, which is no shard of several.
/// `visit` receives each part after its backward. InvalidArgument for losses that parts do not add up to.
BatchGradients batch_gradients(Module& model, const detail::Task& task, const std::vector<Tensors>& parts,
                               bool is_whole, const std::function<void(const detail::Examined&)>& visit = {});

}  // namespace gradus
