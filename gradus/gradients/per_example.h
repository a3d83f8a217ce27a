/// Per-example gradients: norms, clipping of each example, private sums.
#pragma once
#include <array>
#include <functional>
#include <utility>
#include <vector>
#include "gradus/gradients/tape.h"

namespace gradus {

/// One gradient per example of a batch. For one example, the gradient of a layer's kernel is a product of the layer's
/// input and the cotangent of its output. Such gradients stay factors until they are read; the factors suffice for
/// norms and sums.
class PerExampleGradients {
 public:
  /// Number of examples.
  std::size_t size() const { return static_cast<std::size_t>(examples_); }
  /// The variables that the gradients belong to.
  const Variables& variables() const { return variables_; }
  /// The gradients by `variable`: [examples, variable...]. InvalidArgument for a variable that is none of the sources.
  Tensor operator[](const Variable& variable) const;
  /// [examples]: the norm of each example's gradient over all variables; f32 for narrow dtypes.
  Tensor norms() const;
  /// Multiplies each example's gradient by min(1, norm / its norm), as for differential privacy. InvalidArgument unless
  /// `norm` is positive.
  PerExampleGradients clip_by_norm(double norm) const;
  /// The sum over examples, as gradients of the mean with the weight size().
  Gradients sum() const;

  // For the rooms of the library.

  /// The gradients by one variable: either `whole`, [n, variable...], or the factors of left[i] right[i]: [n, rows, k]
  /// and [n, k, columns].
  struct Part {
    Tensor whole, left, right;  // the others are empty
  };
  /// From one part per variable.
  PerExampleGradients(Variables variables, std::vector<Part> parts, std::int64_t examples);

 private:
  Tensor scaled(const Tensor& x) const;
  Tensor whole(std::size_t i) const;
  Tensor sum_of(const Part& part) const;

  Variables variables_;
  std::vector<Part> parts_;
  Tensor scale_;  // [n], a factor per example; empty: 1
  std::int64_t examples_ = 0;
};

namespace detail {
PerExampleGradients per_example_gradients(const std::function<Tensor(In batch)>& losses, const Variables& sources,
                                          In batch, const JacobianOptions& options);
}  // namespace detail

/// The gradient of each example's own loss. per_example_losses(batch...) gives [examples]. It is called once, on a
/// batch of one example, and must treat all examples alike and separately: batch statistics are those of the one
/// example. The tensors of `batch` have the examples along axis 0. InvalidArgument if it gives another number of losses
/// than examples, if the batch is empty, or if a source has no part in the loss.
template <class F, std::size_t N>
PerExampleGradients per_example_gradients(F&& per_example_losses, const Variables& sources, const Tensor (&batch)[N],
                                          JacobianOptions options = {}) {
  const auto losses = [&](In in) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) -> Tensor {
      return per_example_losses(in[i]...);
    }(std::make_index_sequence<N>());
  };
  return detail::per_example_gradients(losses, sources, batch, options);
}

}  // namespace gradus
