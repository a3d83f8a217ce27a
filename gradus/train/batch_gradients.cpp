#include "gradus/train/batch_gradients.h"
#include <algorithm>
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/train/part_penalties.h"

namespace gradus {

std::vector<Tensors> parts_of_batch(In fields, std::int64_t micro_batch) {
  const std::int64_t rows = micro_batch == 0 ? 0 : detail::rows_to_divide(fields, micro_batch);
  if (rows == 0) return {Tensors(fields.begin(), fields.end())};
  std::vector<Tensors> parts;
  for (std::int64_t begin = 0; begin < rows; begin += micro_batch) {
    parts.emplace_back();
    for (const Tensor& field : fields) parts.back().push_back(field.rows(begin, std::min(begin + micro_batch, rows)));
  }
  return parts;
}

BatchGradients batch_gradients(Module& model, const detail::Task& task, const std::vector<Tensors>& parts,
                               bool is_whole, const std::function<void(const detail::Examined&)>& visit) {
  std::int64_t rows = 0;  // that penalties of parts count by
  if (!is_whole)
    for (const Tensors& part : parts) rows += part[0].shape()[0];
  PartPenalties penalties(model, rows);
  BatchGradients all;
  for (const Tensors& part : parts) {
    GradientTape tape({.persistent = !is_whole});
    const detail::Examined examined = task.examine(part);
    require(parts.size() == 1 || !examined.loss.is_sum_with_penalty(), "fit: micro_batch: ", penalty_of_parts);
    require(is_whole || !examined.parts_differ, "fit: micro_batch: the losses of the model's outputs count different ",
            "numbers of examples, so the parts of a batch do not add up to it; leave out micro_batch");
    const Loss loss = is_whole ? examined.total() : examined.loss;
    all.gradients += is_whole ? tape.gradient(loss, model.trainable_variables())
                              : penalties.gradient(tape, examined, part[0].shape()[0]);
    all.loss += loss;
    if (visit) visit(examined);
  }
  if (!is_whole) penalties.add_to(all.loss, all.gradients);
  return all;
}

}  // namespace gradus
