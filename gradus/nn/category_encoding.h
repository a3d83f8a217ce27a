/// Layers that number categories without a vocabulary: integers that are numbers already, and ranges of numbers.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/data/dataset.h"
#include "gradus/nn/module.h"
#include "gradus/text/category_modes.h"

namespace gradus {

/// Options of CategoryEncoding.
struct CategoryEncodingOptions {
  OutputMode output_mode = OutputMode::multi_hot;  // one_hot, multi_hot or count
};
/// Integers in [0, num_tokens) as rows of f32, in the form of the OutputMode. Numbers outside are ignored, as in Keras.
struct CategoryEncoding : Module {
  explicit CategoryEncoding(std::int64_t num_tokens, CategoryEncodingOptions options = {});
  using Module::operator();
  /// With count: the sum of the weights, which have the shape of x, instead of the number of occurrences.
  Tensor operator()(const Tensor& x, const Tensor& count_weights) const;
};

/// Options of Discretization: either bin_boundaries, or num_bins for adapt().
struct DiscretizationOptions {
  std::vector<double> bin_boundaries = {};    // ascending
  std::optional<std::int64_t> num_bins = {};  // bins to find: quantiles of the data
  double epsilon = 0.01;                      // tolerance of the quantiles
  OutputMode output_mode = OutputMode::ids;   // not tf_idf
  static constexpr auto ranges() {
    return std::array{Allowed::finite("bin_boundaries"), Allowed::within(2, 1 << 24, "num_bins"),
                      Allowed::between_zero_and_one("epsilon")};
  }
};
/// The number of the range that each element is in: i64 [...], or a row of f32 in the form of the OutputMode. Range 0
/// is below the first boundary, range i begins with boundary i - 1, which it includes; NaN is in the last one. The
/// boundaries are the variable `bin_boundaries`, which is not trained and is saved with a model.
struct Discretization : Module {
  /// InvalidArgument unless one of bin_boundaries and num_bins is given, with boundaries that ascend.
  explicit Discretization(DiscretizationOptions options);
  /// Finds the boundaries: quantiles of field 0 of epoch 0, summed up element by element as Keras does batch by batch.
  /// InvalidArgument with bin_boundaries, or if the dataset is endless, DataError if it is empty.
  template <std::size_t N> void adapt(const Dataset<N>& dataset) { adapt_to(dataset.pipeline()); }
  /// adapt() to one tensor.
  void adapt(const Tensor& x);

 private:
  void adapt_to(const Pipeline& dataset);
};

}  // namespace gradus
