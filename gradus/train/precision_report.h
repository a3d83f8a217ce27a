/// Where a model leaves the range of the types that it computes in.
///
///   std::cout << precision_report(model, MeanSquaredError(), dataset);
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>
#include "gradus/data/dataset.h"
#include "gradus/train/task.h"

namespace gradus {

/// Of all numbers that the ops of a layer gave in one pass.
struct NumberRange {
  std::int64_t numbers = 0, not_finite = 0;
  /// Flushed to zero, where the same op on the same operands gives another number in a wider type; or subnormal, with
  /// fewer digits than the type has.
  std::int64_t underflowed = 0;
  double largest = 0;  // magnitude of the finite ones

  double share_not_finite() const { return share(not_finite); }
  double share_underflowed() const { return share(underflowed); }

 private:
  double share(std::int64_t n) const { return numbers ? static_cast<double>(n) / static_cast<double>(numbers) : 0; }
};

/// The narrowest floats that the layer's ops gave; wider ones are not counted. Ops that only move numbers are none.
struct LayerPrecision {
  std::string layer;  // "sequential/dense_1"; "loss": what is outside of all layers
  DType dtype = f32;
  NumberRange activations, gradients;  // gradients: multiplied with the loss scale, as they are computed
};

struct PrecisionReport {
  std::vector<LayerPrecision> layers;  // in the order in which the forward pass enters them
  double loss_scale = 1;
  /// The first op of the forward pass, else of the backward pass, that gives what is not finite: "the output of layer
  /// net/boom: `exp` gives inf in f16". Empty: none.
  std::string overflow;
  std::string overflowing_layer;    // of it
  std::string underflowing_layer;   // whose gradients lose the largest share; empty: none loses a hundredth
  std::vector<std::string> advice;  // what to do

  /// A table, then what was found.
  friend std::ostream& operator<<(std::ostream& out, const PrecisionReport& report);
};

struct PrecisionReportOptions {
  bool sample_weight = false;  // the last field of an element is the weight
  bool unbatched = false;      // as in fit
};

namespace detail {
PrecisionReport precision_report(const Module& model, const Task& task, const Pipeline& dataset, bool unbatched);
}  // namespace detail

/// Forward and backward pass, in training mode and op by op, over the first batch of epoch 0, in memory for all that
/// they compute. Of any policy; what fuses in a compiled step may stay in wider registers in between, but is rounded
/// alike. The model stays as it is, its moving statistics too. DataError for an empty data set.
template <class M, class L, std::size_t N>
  requires LossFor<L, M, N>
PrecisionReport precision_report(const M& model, const L& loss, const Dataset<N>& dataset,
                                 PrecisionReportOptions options = {}) {
  return detail::precision_report(model, task_of<N>(model, loss, options.sample_weight), dataset.pipeline(),
                                  options.unbatched);
}

}  // namespace gradus
