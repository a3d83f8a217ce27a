/// Batches too large for one pass: functions of rows, and gradients of their sum, computed one part of the batch at a
/// time.
#pragma once
#include <functional>
#include <utility>
#include "gradus/base/ranges.h"
#include "gradus/gradients/functional.h"

namespace gradus {

/// Options of map_batches: one of the two.
struct MapBatchesOptions {
  std::size_t max_bytes = 0;    // bytes that may be live above inputs and result
  std::int64_t batch_size = 0;  // rows per slice
  static constexpr auto ranges() { return std::array{Allowed::any("max_bytes"), Allowed::not_negative("batch_size")}; }
};
/// Options of accumulated_gradients: one of the two.
struct AccumulateOptions {
  std::int64_t micro_batch = 0;  // rows per micro-batch
  std::size_t max_bytes = 0;     // bytes that may be live above inputs, variables and gradients
  static constexpr auto ranges() { return std::array{Allowed::not_negative("micro_batch"), Allowed::any("max_bytes")}; }
};

namespace detail {
Tensor map_batches(const TensorMap& f, const Tensor& xs, const MapBatchesOptions& options);
LossAndGradients accumulated_gradients(const std::function<Loss(In parts)>& loss, const Variables& sources, In batch,
                                       const AccumulateOptions& options);
}  // namespace detail

/// Applies f to slices of axis 0 and joins the results along axis 0: one loop in one program, with the memory of one
/// slice. xs: [n, x...], n known. f must give as many rows as it receives (else InvalidArgument). The last slice may be
/// smaller. A max_bytes that does not suffice for one row is a ResourceExhausted that names the smallest one that does.
template <TensorFunction F> Tensor map_batches(F&& f, const Tensor& xs, MapBatchesOptions options) {
  return detail::map_batches([&](const Tensor& slice) -> Tensor { return f(slice); }, xs, options);
}

/// Gradient accumulation: sums loss(parts...) over micro-batches of the tensors in `batch`. It gives the Loss and
/// Gradients of the whole batch in the memory of one micro-batch, exactly as `+=` does, also with a smaller last
/// micro-batch. One loop in one program; `loss` is called while it is traced and may not assign Variables. For a large
/// table that is gathered from, the rows that all parts read are kept, unless the sum in full is smaller. Errors as for
/// map_batches.
template <class F, std::size_t N>
LossAndGradients accumulated_gradients(F&& loss, const Variables& sources, const Tensor (&batch)[N],
                                       AccumulateOptions options) {
  const auto of_parts = [&](In in) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) -> Loss {
      return loss(in[i]...);
    }(std::make_index_sequence<N>());
  };
  return detail::accumulated_gradients(of_parts, sources, batch, options);
}

}  // namespace gradus
