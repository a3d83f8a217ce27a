/// Every number of the options of every op: what its ranges() leave out is an InvalidArgument; whatever else it is, the
/// op gives a result or an Error, and never crashes, hangs or throws something else. tests/house looks that no struct
/// is missing.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/base/ranges.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/decompositions.h"
#include "gradus/ops/deform_conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/grid_sample.h"
#include "gradus/ops/image.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/linear_attention.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/select.h"
#include "gradus/ops/signal.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/spectral.h"
#include "gradus/ops/strided.h"
#include "gradus/ops/tensorflow_names.h"
#include "gradus/tensor/memory.h"
#include "tests/odd_numbers.h"

namespace gradus::op_options_test {
namespace {

/// `good` has an element in each list of numbers.
template <class Options, class Use> void try_numbers(std::string_view name, const Options& good, const Use& use) {
  SCOPED_TRACE(name);
  ASSERT_NO_THROW(use(good).observed());
  int tried = 0;
  reflect::for_each_field(good, [&](std::string_view field, const auto&) {
    for (const double value : odd_numbers) {
      Options options = good;
      bool is_set = false;
      reflect::for_each_field(options, [&](std::string_view other, auto& place) {
        if (other == field) is_set = set_number(place, value);
      });
      if (!is_set) continue;
      ++tried;
      bool is_allowed = true;
      if constexpr (requires { Options::ranges(); })
        for (const Allowed& range : Options::ranges())
          is_allowed = is_allowed && (!range.names(field) || range.holds(value));
      try {
        use(options).observed();
        EXPECT_TRUE(is_allowed) << field << " = " << value << " was accepted";
      } catch (const Error& error) {
        EXPECT_TRUE(is_allowed || dynamic_cast<const InvalidArgument*>(&error)) << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << field << " = " << value << " throws what is no Error: " << error.what();
      }
    }
  });
  EXPECT_GT(tried, 0);
}

struct LittleMemory {
  const std::size_t before = memory_use().limit_bytes;
  LittleMemory() { set_memory_limit(cpu(), memory_use().live_bytes + (std::size_t{64} << 20)); }
  ~LittleMemory() { set_memory_limit(cpu(), before); }
};

TEST(OpOptions, OddNumbersDoNoHarm) {
  const LittleMemory memory;
  const Tensor x = constant({{0.5, -1.0, 2.0, 0.25}, {1.0, 3.0, -2.0, 0.5}}), labels = constant({0, 1});
  const Tensor image = ones({1, 6, 6, 2}), kernel = ones({2, 2, 2, 2}), rows = ones({1, 6, 4});
  try_numbers("argmax", ArgOptions{}, [&](const auto& o) { return argmax(x, o); });
  try_numbers("convolution", ConvolutionOptions{.strides = {1, 1}, .dilations = {1, 1}},
              [&](const auto& o) { return convolution(image, kernel, o); });
  try_numbers("conv_transpose", ConvolutionTransposeOptions{.strides = {1, 1}, .dilations = {1, 1}},
              [&](const auto& o) { return conv_transpose(image, kernel, o); });
  try_numbers("conv_transpose, output_shape", ConvolutionTransposeOptions{.output_shape = {6, 6}},
              [&](const auto& o) { return conv_transpose(image, kernel, o); });
  try_numbers("roi_align", RoiAlignOptions{.sampling_ratio = 2},
              [&](const auto& o) { return roi_align(image, constant({{0.0, 0.0, 3.0, 3.0}}), constant({0}), o); });
  try_numbers("non_max_suppression", NonMaxSuppressionOptions{.max_output_size = 2},
              [&](const auto& o) { return non_max_suppression(ones({1, 3, 4}), ones({1, 1, 3}), o); });
  try_numbers("random::categorical", random::CategoricalOptions{.seed = 1},
              [&](const auto& o) { return random::categorical(x, 2, o); });
  try_numbers("random::shuffle", random::ShuffledOptions{.seed = 1},
              [&](const auto& o) { return random::shuffle(x, o); });
  try_numbers("random::gamma", random::GammaOptions{.seed = 1},
              [&](const auto& o) { return random::gamma({2}, 1.5, o); });
  try_numbers("random::beta", random::BetaOptions{.seed = 1},
              [&](const auto& o) { return random::beta({2}, 1.5, 0.5, o); });
  try_numbers("one_hot", OneHotOptions{},
              [&](const auto& o) { return one_hot(labels, 3, constant(1.0), constant(0.0), o); });
  try_numbers("top_k", TopKOptions{}, [&](const auto& o) { return top_k(x, 2, o).values; });
  try_numbers("unique", UniqueOptions{}, [&](const auto& o) { return unique(x, o).values; });
  try_numbers("elu", AlphaOptions{}, [&](const auto& o) { return elu(x, o); });
  try_numbers("celu", AlphaOptions{}, [&](const auto& o) { return celu(x, o); });
  try_numbers("hard_shrink", ThresholdOptions{}, [&](const auto& o) { return hard_shrink(x, o); });
  try_numbers("hard_sigmoid", HardSigmoidOptions{}, [&](const auto& o) { return hard_sigmoid(x, o); });
  try_numbers("shrink", ShrinkOptions{}, [&](const auto& o) { return shrink(x, o); });
  try_numbers("silu", SiluOptions{}, [&](const auto& o) { return silu(x, o); });
  try_numbers("squareplus", SquareplusOptions{}, [&](const auto& o) { return squareplus(x, o); });
  try_numbers("relu", ReluOptions{}, [&](const auto& o) { return relu(x, o); });
  try_numbers("pinv", PinvOptions{.rcond = 1e-3}, [&](const auto& o) { return pinv(ones({2, 2}), o); });
  try_numbers("matrix_rank", MatrixRankOptions{.tol = 1e-3},
              [&](const auto& o) { return matrix_rank(ones({2, 2}), o); });
  try_numbers("lstsq", LstsqOptions{.fast = false, .rcond = 1e-3},
              [&](const auto& o) { return lstsq(ones({2, 2}), ones({2, 1}), o); });
  try_numbers("gemm", GemmOptions{}, [&](const auto& o) { return gemm(ones({2, 2}), ones({2, 2}), o); });
  try_numbers("gemm of integers", GemmOptions{},
              [&](const auto& o) { return gemm(ones({2, 2}, i32), ones({2, 2}, i32), o); });
  try_numbers("reduce_sum", ReduceOptions{.axis = {0}}, [&](const auto& o) { return reduce_sum(x, o); });
  try_numbers("strided_slice", StridedSliceOptions{.strides = {1, 1}},
              [&](const auto& o) { return strided_slice(x, {0, 0}, {2, 2}, o); });
  try_numbers("ssim", SsimOptions{.filter_size = 3}, [&](const auto& o) { return ssim(image, image, 1, o); });
  try_numbers("crop_and_resize", CropAndResizeOptions{}, [&](const auto& o) {
    return crop_and_resize(image, constant({{0.0, 0.0, 1.0, 1.0}}), constant({0}), {2, 2}, o);
  });
  try_numbers("group_normalization", ChannelNormalizationOptions{},
              [&](const auto& o) { return instance_normalization(image, o); });
  try_numbers("layer_normalization", LayerOptions{}, [&](const auto& o) { return layer_normalization(x, o); });
  try_numbers("local_response_normalization", LocalResponseOptions{},
              [&](const auto& o) { return local_response_normalization(image, o); });
  const Tensor q = ones({1, 2, 3, 4});
  try_numbers("dot_product_attention", DotProductAttentionOptions{},
              [&](const auto& o) { return scaled_dot_product_attention(q, q, q, o); });
  try_numbers("dilation2d", DilationOptions{.strides = {1, 1}, .dilations = {1, 1}},
              [&](const auto& o) { return dilation2d(image, ones({2, 2, 2}), o); });
  try_numbers("deform_conv2d", DeformableOptions{.strides = {1, 1}, .dilations = {1, 1}},
              [&](const auto& o) { return deform_conv2d(image, kernel, zeros({1, 5, 5, 8}), Tensor(), o); });
  try_numbers("max_pool", PoolingOptions{.strides = {1, 1}, .dilations = {1, 1}},
              [&](const auto& o) { return max_pool(image, {2, 2}, o); });
  try_numbers("avg_pool", PoolingOptions{.strides = {1, 1}, .dilations = {1, 1}},
              [&](const auto& o) { return avg_pool(image, {2, 2}, o); });
  try_numbers("extract_patches", PatchOptions{.strides = {1, 1}, .rates = {1, 1}},
              [&](const auto& o) { return extract_patches(image, {2, 2}, o); });
  try_numbers("resample", ResampleOptions{.axis = {0}, .sizes = {3}}, [&](const auto& o) { return resample(x, o); });
  try_numbers("resample, scales", ResampleOptions{.axis = {0}, .scales = {1.5}},
              [&](const auto& o) { return resample(x, o); });
  try_numbers("dft", DftOptions{}, [&](const auto& o) { return dft(ones({1, 6, 1}), o); });
  try_numbers("stft", StftOptions{.frame_length = 2}, [&](const auto& o) { return stft(ones({1, 6, 1}), o); });
  try_numbers("dct", DctOptions{}, [&](const auto& o) { return dct(x, o); });
  try_numbers("frame", FrameOptions{.pad_end = true}, [&](const auto& o) { return frame(x, 2, 3, o); });
  try_numbers("frame of integers", FrameOptions{.pad_end = true},
              [&](const auto& o) { return frame(cast(x, i32), 2, 3, o); });
  try_numbers("linear_to_mel_weight_matrix", LinearToMelOptions{},
              [&](const auto& o) { return linear_to_mel_weight_matrix(o); });
  try_numbers("nan_to_num", NanToNumOptions{}, [&](const auto& o) { return nan_to_num(x, o); });
  try_numbers("isclose", IsCloseOptions{}, [&](const auto& o) { return isclose(x, x, o); });
  try_numbers("quantile", QuantileOptions{.axis = {0}}, [&](const auto& o) { return quantile(x, 0.5, o); });
  try_numbers("cumsum", CumulativeOptions{}, [&](const auto& o) { return cumsum(x, o); });
  try_numbers("sort", SortOptions{}, [&](const auto& o) { return sort(x, o); });
  try_numbers("gather", GatherOptions{}, [&](const auto& o) { return gather(x, labels, o); });
  try_numbers("diff", DiffOptions{}, [&](const auto& o) { return diff(x, o); });
  try_numbers("trapezoid", TrapezoidOptions{}, [&](const auto& o) { return trapezoid(x, o); });
  try_numbers("l2_normalize", L2NormalizeOptions{.axis = {0}}, [&](const auto& o) { return l2_normalize(x, o); });
  try_numbers("lp_normalize", LpNormalizeOptions{}, [&](const auto& o) { return lp_normalize(x, o); });
  try_numbers("normalize", NormalizeOptions{.axis = {0}}, [&](const auto& o) { return normalize(x, o).output; });
  try_numbers("reverse_sequence", ReverseSequenceOptions{.seq_axis = 1},
              [&](const auto& o) { return reverse_sequence(x, zeros({x.shape()[0]}, i32), o); });
  try_numbers("rotary_embedding", RotaryOptions{},
              [&](const auto& o) { return rotary_embedding(ones({1, 2, 3, 4}), ones({1, 3, 2}), ones({1, 3, 2}), o); });
  try_numbers("linear_attention", LinearAttentionOptions{},
              [&](const auto& o) { return linear_attention(rows, rows, rows, o).output; });
}

}  // namespace
}  // namespace gradus::op_options_test
