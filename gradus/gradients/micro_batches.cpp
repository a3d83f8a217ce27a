/// The check that opens a range of micro-batches.
#include "gradus/gradients/micro_batches.h"

namespace gradus {

std::int64_t rows_of_batch(std::string_view op, std::span<const Tensor> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Spec& spec = batch[i].spec();
    require(spec.shape.rank() > 0, op, ": tensor ", i, " is a scalar; it has no rows to divide");
    require(spec.shape[0] == batch[0].shape()[0], op, ": tensor ", i, " is ", spec, ", but tensor 0 is ",
            batch[0].spec(), ": they must have the same number of rows");
  }
  return batch[0].shape()[0];
}

std::int64_t known_rows_of_batch(std::string_view op, std::span<const Tensor> batch) {
  const std::int64_t rows = rows_of_batch(op, batch);
  require(rows >= 0, op,
          ": the number of rows is not known while tracing; give the function an input signature "
          "with a fixed first dimension");
  return rows;
}

std::int64_t detail::rows_to_divide(std::span<const Tensor> batch, std::int64_t size) {
  require(size > 0, "micro_batches: the size must be positive, got ", size);
  return known_rows_of_batch("micro_batches", batch);
}

}  // namespace gradus
