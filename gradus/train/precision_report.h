/// Report of the layers where a model leaves the range of its dtypes.
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

/// Counts over all numbers that the ops of a layer gave in one pass.
struct NumberRange {
  std::int64_t numbers = 0, not_finite = 0;  // all numbers; those that are infinite or NaN
  /// Numbers that were flushed to zero, where the same op on the same operands gives another number in a wider dtype;
  /// or subnormal ones, with fewer digits than the dtype has.
  std::int64_t underflowed = 0;
  double largest = 0;  // largest magnitude of the finite ones

  /// Their share of all numbers.
  double share_not_finite() const { return share(not_finite); }
  /// Their share of all numbers.
  double share_underflowed() const { return share(underflowed); }

 private:
  double share(std::int64_t n) const { return numbers ? static_cast<double>(n) / static_cast<double>(numbers) : 0; }
};

/// Ranges of the narrowest floats that the layer's ops gave; wider ones are not counted. Ops that only move numbers are
/// left out.
struct LayerPrecision {
  std::string layer;                   // "sequential/dense_1"; "loss" for ops outside of all layers
  DType dtype = f32;                   // the narrowest one
  NumberRange activations, gradients;  // gradients: multiplied by the loss scale, as they are computed
};

/// Result of precision_report.
struct PrecisionReport {
  std::vector<LayerPrecision> layers;  // in the order in which the forward pass enters them
  double loss_scale = 1;               // factor on the gradients
  /// The first op of the forward pass, else of the backward pass, whose result is not finite: "the output of layer
  /// net/boom: `exp` gives inf in f16". Empty if there is none.
  std::string overflow;
  std::string overflowing_layer;    // its layer
  std::string underflowing_layer;   // layer whose gradients lose the largest share; empty: none loses a hundredth
  std::vector<std::string> advice;  // remedies

  /// Prints a table, then the findings.
  friend std::ostream& operator<<(std::ostream& out, const PrecisionReport& report);
};

/// Options of precision_report.
struct PrecisionReportOptions {
  bool sample_weight = false;  // the last field of an element is the weight
  bool unbatched = false;      // as in fit
};

namespace detail {
PrecisionReport precision_report(const Module& model, const Task& task, const Pipeline& dataset, bool unbatched);
}  // namespace detail

/// Runs forward and backward pass, in training mode and op by op, over the first batch of epoch 0, keeping all results
/// in memory. For any policy. Ops that are fused in a compiled step may use wider registers in between, but round
/// alike. The model stays as it is, its moving statistics too. DataError for an empty data set.
template <class M, class L, std::size_t N>
  requires LossFor<L, M, N>
PrecisionReport precision_report(const M& model, const L& loss, const Dataset<N>& dataset,
                                 PrecisionReportOptions options = {}) {
  return detail::precision_report(model, task_of<N>(model, loss, options.sample_weight), dataset.pipeline(),
                                  options.unbatched);
}

}  // namespace gradus
