/// Every op row with sizes that are known at each call alone: one program of open sizes gives, value and gradients,
/// what the op gives at each of them.
#include <cstdlib>
#include <optional>
#include <set>
#include "gradus/function/traced_function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "tests/ops/row_fixture.h"

namespace gradus::rows::open_sizes_test {
namespace {

using Shapes = std::vector<Shape>;

/// Whether all sizes are tried, of every case of every row: that takes minutes.
bool is_thorough() {
  const char* given = std::getenv("GRADUS_SIZES");
  return given && std::string_view(given) == "all";
}

/// What rows begin with whose op, or what this file opens of it, has to know a size, so that there are several
/// programs. Extents that are equal are opened together: channels with a width, filters with their kernel.
const char* const knowing[] = {
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adjugate",
    "attention after past keys",
    "attention within lengths and a window",
    "attention_gradient",
    "batch_to_space_nd",
    "center_crop_pad",
    "central_crop",
    "conv1d_transpose, valid, stride 3",
    "conv2d, groups",
    "conv2d, pointwise",
    "conv2d_transpose, depthwise",
    "conv2d_transpose, output_padding, groups",
    "conv2d_transpose, same",
    "conv3d, same",
    "dct",
    "dft",
    "diag_part",
    "dilation2d",
    "einsum of three",
    "erosion2d",
    "fft",
    "further names",
    "ifft",
    "irfft",
    "linear_attention",
    "lstsq of any rank",
    "matrix_rank",
    "median",
    "mfccs_from_log_mel_spectrograms",
    "pad reflect far",
    "pinv",
    "qr",
    "quantile",
    "resample",
    "resize",
    "rfft",
    "separable_conv2d",
    "set_diag",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_softmax_cross_entropy_with_logits",
    "ssim",
    "strided_slice",
    "svd",
    "trace",
    "unstack",
};
bool has_to_know(std::string_view row) {
  return std::ranges::any_of(knowing, [&](std::string_view name) { return row.starts_with(name); });
}

/// The same numbers: 0 and -0 are, since sums of one element may be left away.
bool are_equal(const Tensor& a, const Tensor& b) {
  if (a.spec() != b.spec()) return false;
  return std::ranges::equal(to_array(a).values, to_array(b).values,
                            [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

class OpenSizes : public RowTest {
 protected:
  DType dtype() const { return row().dtypes.front(); }

  /// `shapes` with `n` wherever an extent is `open`.
  static Shapes resized(Shapes shapes, std::int64_t open, std::int64_t n) {
    for (Shape& shape : shapes)
      for (int axis = 0; axis < shape.rank(); ++axis)
        if (shape[axis] == open) shape.set(axis, n);
    return shapes;
  }
  std::vector<Spec> signature(const Shapes& shapes, std::int64_t open) const {
    std::vector<Spec> specs;
    const Shapes declared = resized(shapes, open, any_size);
    for (std::size_t i = 0; i < shapes.size(); ++i) specs.push_back({dtype_of(i, dtype()), declared[i]});
    return specs;
  }
  static std::vector<std::int64_t> extents(const Shapes& shapes) {
    std::set<std::int64_t> all;
    for (const Shape& shape : shapes)
      for (const std::int64_t d : shape)
        if (d > 1) all.insert(d);
    return {all.begin(), all.end()};
  }
  /// What is usually open: the last dimension of the first operand, where there are more than two the one before it.
  static std::int64_t usual_of(const Shapes& shapes) {
    const Shape& first = shapes[0];
    for (const int axis : {first.rank() > 2 ? first.rank() - 2 : first.rank() - 1, first.rank() - 1, 0})
      if (axis >= 0 && first[axis] > 1) return first[axis];
    return extents(shapes).front();
  }
  static std::vector<std::int64_t> sizes_about(std::int64_t n) {
    std::vector<std::int64_t> sizes{n, 2 * n, n + 1, 3 * n, n + 4};
    if (!is_thorough()) return sizes;
    for (std::int64_t size = 2; size <= 40; ++size) sizes.push_back(size);
    sizes.insert(sizes.end(), {63, 64, 65, 257});
    return sizes;
  }
  /// Nothing: a mistake, which the row is not about.
  std::optional<Tensors> results_of_known(const Case& c) const {
    try {
      Tensors all = results(c.inputs, dtype());
      for (const Tensor& x : all) x.observed();
      return all;
    } catch (const Error&) { return {}; } catch (const std::out_of_range&) {
      return {};  // the row reads a result that there is not at this size
    }
  }

  /// Wherever the op takes a size in place of `open`, one program for all of them gives what it gives.
  void check(const Shapes& shapes, std::int64_t open) {
    SCOPED_TRACE(text(row().name, ' ', listed(shapes), "with ", open, " open"));
    TracedFunction traced({.name = row().name, .input_signature = signature(shapes, open)}, nullptr, 0);
    for (const std::int64_t n : sizes_about(open)) check_at(n, shapes, open, traced);
    const Explanation e = traced.explain();
    for (const Retrace& retrace : e.retraces)
      EXPECT_EQ(retrace.reason.find("the C++ of the function"), std::string::npos) << retrace.reason;
    const int most = is_thorough() || has_to_know(row().name) ? FunctionOptions().max_variants : 1;
    EXPECT_LE(e.variants, most) << e.retraces.back().reason;
    for (const std::int64_t small : {2, 1, 0}) check_at(small, shapes, open, traced);  // may be programs of their own
  }
  void check_at(std::int64_t n, const Shapes& shapes, std::int64_t open, TracedFunction& traced) {
    const Shapes given = resized(shapes, open, n);
    if (std::ranges::any_of(given, [](const Shape& shape) { return shape.size() > 200'000; })) return;
    const Case c = make_case(given, dtype());
    const std::optional<Tensors> want = results_of_known(c);
    if (!want) return;
    try {
      const Called called = traced.call(c.inputs, {}, [&](In in) { return Called{results(in, dtype()), {}}; });
      ASSERT_EQ(called.tensors.size(), want->size());
      for (std::size_t i = 0; i < want->size(); ++i)
        EXPECT_TRUE(are_equal(called.tensors[i], (*want)[i])) << "at " << n << ", result " << i;
    } catch (const std::exception& error) { ADD_FAILURE() << "at " << n << ": " << error.what(); }
  }
};

/// Of the usual tests one extent of each row that is not elementwise: those are all alike.
TEST_P(OpenSizes, AreOneProgram) {
  if (is_thorough()) {
    for (const Shapes& shapes : row().shapes)
      for (const std::int64_t open : extents(shapes)) check(shapes, open);
    return;
  }
  if (row().elementwise) GTEST_SKIP() << "elementwise";
  const auto some = std::ranges::find_if(row().shapes, [](const Shapes& shapes) {
    return !extents(shapes).empty() &&
           std::ranges::all_of(shapes, [](const Shape& shape) { return shape.size() > 0 && shape.size() <= 64; });
  });
  if (some == row().shapes.end()) GTEST_SKIP() << "no small case";
  check(*some, usual_of(*some));
}

INSTANTIATE_TEST_SUITE_P(Ops, OpenSizes, ::testing::ValuesIn(all_rows()), test_name);

}  // namespace
}  // namespace gradus::rows::open_sizes_test
