/// Feature normalization by the statistics of a whole data set, which are computed before training.
#pragma once
#include <vector>
#include "gradus/data/dataset.h"
#include "gradus/nn/module.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// (x - mean) / max(sqrt(variance), 1e-7) for each feature, an index along `axis`, as Keras's Normalization. The
/// statistics of a whole data set are the variables `mean` and `variance`, which are not trained; they are 0 and 1
/// before adapt(). Integers give f32. The layer works on single elements and on batches alike.
struct Normalization : Module {
  Normalization();
  /// A negative axis counts from the end, others from the front of the input of adapt() or build().
  explicit Normalization(int axis);
  explicit Normalization(NamedAxis named) : Normalization(named.axis) {}
  /// With known statistics: one per feature of the last axis, or one for all. InvalidArgument unless there are as many
  /// variances as means, none of them negative; and at the first call if the number of features differs.
  Normalization(std::vector<double> mean, std::vector<double> variance);
  /// Reads field 0 of one pass over the dataset, epoch 0, and stores mean and biased variance, summed in f64.
  /// InvalidArgument if the dataset is endless, DataError if it is empty.
  template <std::size_t N> void adapt(const Dataset<N>& dataset) { adapt_to(dataset.pipeline()); }
  /// adapt() to one tensor.
  void adapt(const Tensor& x);

 private:
  void adapt_to(const Pipeline& dataset);
};

}  // namespace gradus
