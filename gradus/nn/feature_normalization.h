/// Normalising by the statistics of a whole data set, which are found before training.
#pragma once
#include <vector>
#include "gradus/data/dataset.h"
#include "gradus/nn/module.h"

namespace gradus {

/// (x - mean) / max(sqrt(variance), 1e-7) for each feature, an index along `axis`, with statistics of a whole data set
/// as Keras's Normalization has them: variables `mean` and `variance`, which are not trained; 0 and 1 before adapt().
/// Integers come out as f32. The layer works on single elements and on batches alike.
struct Normalization : Module {
  Normalization();
  /// axis counts from the end where it is negative; else from the front of what adapt() or build() sees.
  explicit Normalization(int axis);
  /// With statistics that are known: one for each feature of the last axis, or one for all. InvalidArgument unless
  /// there are as many variances as means, none of them negative; and at the first call if the features are others.
  Normalization(std::vector<double> mean, std::vector<double> variance);
  /// Reads field 0 of one pass over the dataset, epoch 0, and keeps mean and biased variance, summed in f64. The
  /// dataset must end: InvalidArgument; and hold something: DataError.
  template <std::size_t N> void adapt(const Dataset<N>& dataset) { adapt_to(dataset.pipeline()); }
  /// The same of one tensor.
  void adapt(const Tensor& x);

 private:
  void adapt_to(const Pipeline& dataset);
};

}  // namespace gradus
