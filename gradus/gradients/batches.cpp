/// Loops over chunks of rows.
#include "gradus/gradients/batches.h"
#include "gradus/gradients/chunks.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/graph/region.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control_ops.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

void require_one_of(std::string_view op, std::string_view rows_name, std::int64_t rows, std::size_t max_bytes) {
  require(rows >= 0, op, ": ", rows_name, " must be positive, got ", rows);
  require((rows > 0) != (max_bytes > 0), op, ": say one of ", rows_name, " and max_bytes, got ", rows_name, " ", rows,
          " and max_bytes ", max_bytes);
}

/// Gives the results when the loop within takes `rows` rows an iteration.
using ChunkedWork = std::function<Tensors(std::int64_t rows)>;

/// Either with the rows that the user said, or with as many as fit.
Tensors in_chunks(std::string_view op, const ChunkedWork& work, std::int64_t total, std::int64_t rows,
                  std::size_t max_bytes) {
  if (rows > 0) return work(std::min(rows, std::max<std::int64_t>(total, 1)));
  return within_budget(op, max_bytes, new_sequence(), total, work);
}

/// What a loss of parts adds up to: the loss, the weight and the gradients, as means of one part or as sums of several.
struct Sums {
  const std::function<Loss(In)>& loss;
  const Variables& sources;

  Tensors means_of(In part) const {
    GradientTape tape;
    const Loss value = loss(part);
    const Gradients gradients = tape.gradient(value, sources);
    Tensors means{value.value(), value.weight()};
    for (std::size_t i = 0; i < gradients.size(); ++i) means.push_back(gradients[i]);
    return means;
  }
  Tensors of(In part) const {
    Tensors sums = means_of(part);
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (i != 1) sums[i] = sums[i] * cast(sums[1], sums[i].dtype());
    return sums;
  }
  /// Their specs, for batches with this many rows.
  Tensors zeros_for(In batch, std::int64_t rows) const {
    std::vector<Spec> specs;
    for (const Tensor& x : batch) {
      specs.push_back(x.spec());
      specs.back().shape.set(0, rows);
    }
    const RegionTrace trace("accumulated_gradients", specs, [&](In parts) { return of(parts); });
    Tensors zero;
    for (const Tensor& sum : trace.results()) zero.push_back(fill(sum.shape(), 0, sum.dtype()));
    return zero;
  }
};

}  // namespace

Tensor detail::map_batches(const TensorMap& f, const Tensor& xs, const MapBatchesOptions& options) {
  constexpr std::string_view op = "map_batches";
  require_one_of(op, "batch_size", options.batch_size, options.max_bytes);
  const std::int64_t total = known_rows_of_batch(op, {&xs, 1});
  const auto of_rows = [&](In, In slices) {
    const Tensor y = f(slices[0]);
    require(y.defined() && y.shape().rank() > 0 && y.shape()[0] == slices[0].shape()[0], op,
            ": the function must give as many rows as it gets: of ", slices[0].spec(), " it gave ",
            y.defined() ? text(y.spec()) : "nothing");
    return Tensors{y};
  };
  const ChunkedWork work = [&](std::int64_t rows) {
    return rows >= total ? of_rows({}, {&xs, 1}) : scan_rows(op, of_rows, {}, {&xs, 1}, rows);
  };
  return in_chunks(op, work, total, options.batch_size, options.max_bytes)[0];
}

LossAndGradients detail::accumulated_gradients(const std::function<Loss(In)>& loss, const Variables& sources, In batch,
                                               const AccumulateOptions& options) {
  constexpr std::string_view op = "accumulated_gradients";
  require_one_of(op, "micro_batch", options.micro_batch, options.max_bytes);
  const std::int64_t total = known_rows_of_batch(op, batch);
  require(total > 0, op, ": the batch has no rows");
  const Sums sums{loss, sources};
  const auto add_part = [&](In so_far, In parts) {
    Tensors next = sums.of(parts);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = so_far[i] + next[i];
    return next;
  };
  bool in_parts = false;
  const ChunkedWork work = [&](std::int64_t rows) {
    in_parts = rows < total;
    return in_parts ? scan_rows(op, add_part, sums.zeros_for(batch, rows), batch, rows) : sums.means_of(batch);
  };
  Tensors found = in_chunks(op, work, total, options.micro_batch, options.max_bytes);
  Tensors gradients(found.begin() + 2, found.end());
  if (!in_parts) return {Loss::of_mean(found[0], found[1]), Gradients(sources, std::move(gradients), found[1])};
  return {Loss::of_sums(found[0], found[1]), Gradients::of_sums(sources, std::move(gradients), found[1])};
}

}  // namespace gradus
