/// Ops that move elements about, beyond their rows: shapes that depend on data, ties and NaN, duplicates, sizes that
/// are not known when tracing, mistakes.
#include <gtest/gtest.h>
#include <cmath>
#include <functional>
#include <limits>
#include "gradus/autodiff/vjp.h"
#include "gradus/function/function.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/diagonals.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/segment.h"
#include "gradus/ops/select.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/strided.h"

namespace gradus::moving_test {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;
constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

Tensor by_rows(const Tensor& x) { return reshape(x, {2, 2}); }

TEST(Select, PositionsAndElements) {
  const Tensor x = constant({{0.0f, 3.0f, nan}, {-2.0f, -0.0f, 0.0f}});
  EXPECT_EQ(nonzero(x).to_vector<std::int64_t>(), (Longs{0, 0, 1, 1, 2, 0}));
  EXPECT_EQ(where(x > 0).to_vector<std::int64_t>(), (Longs{0, 1}));
  EXPECT_EQ(nonzero(zeros({0, 3})).shape(), (Shape{2, 0}));
  EXPECT_EQ(nonzero(constant(5)).shape(), (Shape{0, 1}));
  EXPECT_EQ(boolean_mask(constant({1, 2, 3}), constant({true, false, true})).to_vector<std::int32_t>(), (Ints{1, 3}));
  EXPECT_EQ(boolean_mask(ones({2, 3, 4}), zeros({3, 4}, boolean), 1).shape(), (Shape{2, 0}));
  EXPECT_EQ(compress(by_rows(range(4)), constant({false, true}), 1).to_vector<std::int32_t>(), (Ints{1, 3}));
  EXPECT_EQ(compress(by_rows(range(4)), constant({false, true, true})).to_vector<std::int32_t>(), (Ints{1, 2}));
  EXPECT_EQ(repeat(constant({5, 6, 7}), constant({2, 0, 1}), 0).to_vector<std::int32_t>(), (Ints{5, 5, 7}));
}

TEST(Select, SelectedElementsKeepTheirGradients) {
  const RecordingScope keep;
  const Tensor x = constant({1.0f, -2.0f, 3.0f});
  const Tensor y = square(boolean_mask(x, x > 0));
  EXPECT_EQ(vjp(y, std::span(&x, 1))[0].to_vector<float>(), (Floats{2, 0, 6}));
}

TEST(Select, UniqueHasFourResults) {
  const Unique by_occurrence = unique(constant({2, 1, 1, 3, 2}));
  EXPECT_EQ(by_occurrence.values.to_vector<std::int32_t>(), (Ints{2, 1, 3}));
  EXPECT_EQ(by_occurrence.index.to_vector<std::int32_t>(), (Ints{0, 1, 1, 2, 0}));
  EXPECT_EQ(by_occurrence.count.to_vector<std::int32_t>(), (Ints{2, 2, 1}));
  EXPECT_EQ(by_occurrence.indices.to_vector<std::int32_t>(), (Ints{0, 1, 3}));
  const Unique sorted = unique(constant({nan, 1.0f, -inf, nan, 1.0f}), {.sorted = true});
  EXPECT_EQ(sorted.count.to_vector<std::int32_t>(), (Ints{1, 2, 2}));
  EXPECT_EQ(sorted.indices.to_vector<std::int32_t>(), (Ints{2, 1, 0}));
  const Unique rows = unique(constant({{1, 0}, {1, 0}, {0, 3}}), {.axis = 0, .sorted = true});
  EXPECT_EQ(rows.values.to_vector<std::int32_t>(), (Ints{0, 3, 1, 0}));
  EXPECT_EQ(rows.index.to_vector<std::int32_t>(), (Ints{1, 1, 0}));
  EXPECT_EQ(unique(zeros({0})).values.shape(), Shape{0});
  EXPECT_EQ(unique_with_counts(constant({2, 1, 1})).count.to_vector<std::int32_t>(), (Ints{1, 2}));
}

TEST(Select, Bins) {
  EXPECT_EQ(bincount(constant({1, 3, 1}), 3).to_vector<std::int32_t>(), (Ints{0, 2, 0, 1}));
  EXPECT_EQ(bincount(zeros({0}, i32)).shape(), Shape{0});
  EXPECT_EQ(histogram_fixed_width(constant({-1.0f, 0.0f, 1.5f, 2.0f, 5.0f, 15.0f}), 0, 5, 5).to_vector<std::int32_t>(),
            (Ints{2, 1, 1, 0, 2}));
}

TEST(Select, IsAnErrorWithinATrace) {
  const auto f = function([](Tensor x) { return boolean_mask(x, x > 0); });
  try {
    f(ones({3}));
    ADD_FAILURE() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("use where("), std::string::npos) << error.what();
  }
}

TEST(Sort, NanStandsLastAndZerosAreEqual) {
  const Tensor x = constant({nan, 0.0f, -0.0f, inf, -1.0f, nan, -inf});
  EXPECT_EQ(argsort(x).to_vector<std::int32_t>(), (Ints{6, 4, 1, 2, 3, 0, 5}));
  EXPECT_EQ(argsort(x, 0, Direction::descending).to_vector<std::int32_t>(), (Ints{3, 1, 2, 4, 6, 0, 5}));
  EXPECT_EQ(top_k(x, 3).indices.to_vector<std::int32_t>(), (Ints{3, 1, 2}));
}

TEST(Sort, TiesOfTopKGoToTheFirst) {
  const RecordingScope keep;
  const Tensor x = constant({{2.0f, 5.0f, 5.0f}, {7.0f, 7.0f, 7.0f}});
  const TopK top = top_k(x, 2);
  EXPECT_EQ(top.indices.to_vector<std::int32_t>(), (Ints{1, 2, 0, 1}));
  EXPECT_EQ(vjp(top.values, std::span(&x, 1))[0].to_vector<float>(), (Floats{0, 1, 1, 1, 1, 0}));
}

/// Selection finds the first ones in no order; many of them are sorted by digits where all of a row are.
TEST(Sort, TopKOfLongRowsIsTheBeginOfTheirOrder) {
  for (const int distinct : {1, 7, 100000}) {
    const Tensor x = mod(range(20000, i64) * 7919, distinct);
    const auto order = argsort(x, 0, Direction::descending).to_vector<std::int32_t>();
    for (const std::int64_t k : {1, 100, 300, 3000, 4700, 4800, 20000})
      ASSERT_EQ(top_k(x, k).indices.to_vector<std::int32_t>(), Ints(order.begin(), order.begin() + k))
          << k << " of " << distinct << " numbers";
  }
}

TEST(Sort, LongRowsEqualShortWork) {
  const Tensor x = mod(range(100000, i64) * 7919, 1000);
  const auto order = argsort(x).to_vector<std::int32_t>();
  const auto values = x.to_vector<std::int64_t>();
  for (std::size_t i = 1; i < order.size(); ++i) {
    const auto a = static_cast<std::size_t>(order[i - 1]), b = static_cast<std::size_t>(order[i]);
    ASSERT_TRUE(values[a] < values[b] || (values[a] == values[b] && a < b));
  }
}

TEST(Scatter, TheLastUpdateWinsAndGetsTheGradient) {
  const RecordingScope keep;
  const Tensor x = constant({1.0f, 2.0f, 3.0f}), updates = constant({10.0f, 20.0f, 30.0f});
  const Tensor y = tensor_scatter_nd_update(x, constant({{1}, {0}, {1}}), updates);
  EXPECT_EQ(y.to_vector<float>(), (Floats{20, 30, 3}));
  const Tensor sources[] = {x, updates};
  const Tensors gradients = vjp(y, sources, constant({5.0f, 6.0f, 7.0f}));
  EXPECT_EQ(gradients[0].to_vector<float>(), (Floats{0, 0, 7}));
  EXPECT_EQ(gradients[1].to_vector<float>(), (Floats{0, 5, 6}));
}

TEST(Scatter, AddsSubtractsAndTakesTheLeast) {
  const Tensor x = constant({4.0f, 1.0f, 7.0f}), updates = constant({3.0f, 5.0f, 2.0f});
  const Tensor places = constant({{0}, {0}, {1}});
  EXPECT_EQ(tensor_scatter_nd_add(x, places, updates).to_vector<float>(), (Floats{12, 3, 7}));
  EXPECT_EQ(tensor_scatter_nd_sub(x, places, updates).to_vector<float>(), (Floats{-4, -1, 7}));
  EXPECT_EQ(tensor_scatter_nd_min(x, places, updates).to_vector<float>(), (Floats{3, 1, 7}));
}

TEST(Scatter, TiesShareEvenly) {
  const RecordingScope keep;
  const Tensor x = constant({4.0f, 1.0f}), updates = constant({4.0f, 4.0f, 9.0f});
  const Tensor y = tensor_scatter_nd_max(x, constant({{0}, {0}, {1}}), updates), sources[] = {x, updates};
  const Tensors gradients = vjp(y, sources, constant({3.0f, 1.0f}));
  EXPECT_EQ(gradients[0].to_vector<float>(), (Floats{1, 0}));
  EXPECT_EQ(gradients[1].to_vector<float>(), (Floats{1, 1, 1}));
}

TEST(Scatter, ProductsWithZerosHaveGradients) {
  const RecordingScope keep;
  const Tensor x = constant({2.0f}), updates = constant({0.0f, 3.0f, 5.0f}), sources[] = {x, updates};
  const Tensor y = tensor_scatter_nd(x, constant({{0}, {0}, {0}}), updates, Reduction::mul);
  const Tensors gradients = vjp(y, sources);
  EXPECT_EQ(gradients[0].to_vector<float>(), Floats{0});
  EXPECT_EQ(gradients[1].to_vector<float>(), (Floats{30, 0, 0}));
  EXPECT_EQ(vjp(gradients[1][0], sources)[1].to_vector<float>(), (Floats{0, 10, 6}));
}

TEST(Scatter, IndicesOutOfRangeAreErrors) {
  const Tensor x = ones({3});
  for (int bad : {3, -1}) {
    EXPECT_THROW(tensor_scatter_nd_update(x, constant({{bad}}), ones({1})).observed(), OutOfRange);
    EXPECT_THROW(take_along_axis(x, constant({bad})).observed(), OutOfRange);
  }
  EXPECT_THROW(unsorted_segment_sum(x, constant({0, 1, 2}), 2).observed(), OutOfRange);
}

TEST(Segment, NothingHasItsValue) {
  const Tensor x = constant({1.0f, 2.0f}), to = constant({2, -1});
  EXPECT_EQ(unsorted_segment_sum(x, to, 3).to_vector<float>(), (Floats{0, 0, 1}));
  EXPECT_EQ(unsorted_segment_prod(x, to, 3).to_vector<float>(), (Floats{1, 1, 1}));
  EXPECT_EQ(unsorted_segment_mean(x, to, 3).to_vector<float>(), (Floats{0, 0, 1}));
  constexpr float lowest = std::numeric_limits<float>::lowest();
  EXPECT_EQ(unsorted_segment_max(x, to, 3).to_vector<float>(), (Floats{lowest, lowest, 1}));
  EXPECT_EQ(unsorted_segment_max(constant({-inf}), constant({0}), 1).to_vector<float>(), Floats{-inf});
  EXPECT_EQ(segment_max(constant({4, 9, 5}), constant({0, 0, 2})).to_vector<std::int32_t>(), (Ints{9, 0, 5}));
  EXPECT_EQ(segment_mean(constant({4.0f, 8.0f, 5.0f}), constant({0, 0, 1})).to_vector<float>(), (Floats{6, 5}));
  EXPECT_THROW(segment_sum(x, constant({1, 0})), InvalidArgument);
}

TEST(Det, OfSingularMatricesHasGradients) {
  const RecordingScope keep;
  const Tensor x = constant({{1.0f, 2.0f}, {2.0f, 4.0f}}), y = det(x);
  EXPECT_EQ(y.item(), 0);
  EXPECT_EQ(vjp(y, std::span(&x, 1))[0].to_vector<float>(), (Floats{4, -2, -2, 1}));
  EXPECT_TRUE(std::isnan(det(constant({{0.0f, 1.0f}, {nan, 1.0f}})).item()));
}

/// Ops on [s0, 4] and [s0]: what is traced once serves every size, and is what lazy execution gives.
TEST(Moving, SizesThatAreNotKnownWhenTracing) {
  const std::vector<std::pair<const char*, std::function<Tensor(Tensor)>>> ops{
      {"strided",
       [](Tensor x) { return strided_slice(x, {0, 0}, {0, 4}, {.strides = {-1, 2}, .begin_mask = 1, .end_mask = 1}); }},
      {"tail", [](Tensor x) { return strided_slice(x, {-2}, {0}, {.end_mask = 1}); }},
      {"sort", [](Tensor x) { return sort(x, 0); }},
      {"top_k", [](Tensor x) { return top_k(x, 2, {.axis = 0}).values; }},
      {"take_along_axis", [](Tensor x) { return take_along_axis(x, argsort(x, 1), 1); }},
      {"triu", [](Tensor x) { return triu(x); }},
      {"diag", [](Tensor x) { return diag_part(matmul(x, transpose(x))); }},
      {"pad", [](Tensor x) { return pad(x, {{1, 2}, {1, 0}}, PadMode::reflect); }},
      {"edge", [](Tensor x) { return pad(x, {{1, 2}, {0, 0}}, PadMode::edge); }},
      {"repeat", [](Tensor x) { return repeat(x, 3, 0); }},
      {"segments",
       [](Tensor x) { return unsorted_segment_max(x, mod(cast(reduce_sum(x, {.axis = {1}}), i32), 2), 2); }},
      {"update", [](Tensor x) { return tensor_scatter_nd_update(x, constant({{0}, {1}}), ones({2, 4})); }},
      {"shape", [](Tensor x) { return cast(shape(x), f32) * cast(size(x), f32) * reduce_sum(x); }}};
  for (const auto& [name, op] : ops) {
    SCOPED_TRACE(name);
    const auto f = function([&op = op](Tensor x) { return op(x); }, {.input_signature = {{f32, {any_size, 4}}}});
    const auto g = function(
        [&op = op](Tensor x) {
          const Tensor y = op(x);
          const Tensor dx = vjp(reduce_sum(y * y), std::span(&x, 1))[0];
          return dx.defined() ? dx : x;
        },
        {.input_signature = {{f32, {any_size, 4}}}});
    for (std::int64_t n : {3, 7}) {
      const Tensor x = reshape(cast(mod(range(4 * n) * 7, 11), f32), {n, 4});
      EXPECT_TRUE(bitwise_equal(f(x), op(x))) << n;
      const RecordingScope keep;
      const Tensor y = op(x), dx = vjp(reduce_sum(y * y), std::span(&x, 1))[0];
      EXPECT_TRUE(bitwise_equal(g(x), dx.defined() ? dx : x)) << n;
    }
    EXPECT_EQ(f.explain().variants, 1);
  }
}

struct Mistake {
  const char* name;
  std::function<void()> make;
  const char* says;
};

TEST(Moving, MistakesSayWhatWasGiven) {
  const Tensor x = zeros({2, 3}), ids = constant({0, 1});
  const std::vector<Mistake> mistakes{
      {"step", [&] { strided_slice(x, {0}, {1}, {.strides = {0}}); }, "the step along dimension 0 of f32[2,3] is 0"},
      {"lengths", [&] { strided_slice(x, {0}, {1, 2}); }, "they must agree"},
      {"shrink", [&] { strided_slice(x, {2}, {3}, {.shrink_axis_mask = 1}); }, "index 2 is outside dimension 0"},
      {"dimensions", [&] { strided_slice(x, {0, 0, 0}, {1, 1, 1}); }, "3 dimensions are named of f32[2,3]"},
      {"batch", [&] { gather(x, zeros({3, 1}, i32), 1, 1); }, "they must agree"},
      {"depth", [&] { gather_nd(x, zeros({1, 3}, i32)); }, "positions of 3 numbers for x f32[2,3]"},
      {"indices", [&] { take_along_axis(x, zeros({2, 3}), 1); }, "expected an integer type"},
      {"ranks", [&] { take_along_axis(x, ids, 1); }, "expected as many dimensions"},
      {"updates", [&] { tensor_scatter_nd_update(x, zeros({1, 1}, i32), zeros({1, 2})); }, "expected shape (1, 3)"},
      {"dtypes", [&] { tensor_scatter_nd_update(x, zeros({1, 1}, i32), zeros({1, 3}, f64)); }, "cast one of them"},
      {"k", [&] { top_k(x, 4); }, "k is 4, but dimension 1 of f32[2,3] has 3 elements"},
      {"negative k", [&] { top_k(x, -1); }, "k is -1"},
      {"axis", [&] { sort(constant(1.0f)); }, "has no axis"},
      {"reflect", [&] { pad(zeros({0}), {{1, 0}}, PadMode::reflect); }, "has no element to repeat"},
      {"paddings", [&] { pad(x, {{1, 0}}, PadMode::edge); }, "1 pairs of paddings for f32[2,3]"},
      {"crop", [&] { pad(x, {{-2, -1}, {0, 0}}, PadMode::constant); }, "take 3 elements from dimension 0 of f32[2,3]"},
      {"too many", [&] { split(x, {2, 2}, 1); }, "do not add up to dimension 1"},
      {"block", [&] { space_to_depth(zeros({1, 3, 4, 1}), 2); }, "3 of f32[1,3,4,1] is no multiple of 2"},
      {"square", [&] { det(x); }, "expected square matrices [..., n, n], got f32[2,3]"},
      {"segments", [&] { unsorted_segment_sum(x, constant({0, 1, 2}), 3); }, "not the first dimensions of x f32[2,3]"},
      {"mask", [&] { boolean_mask(x, constant({true})); }, "does not fit x f32[2,3]"},
      {"steps", [&] { range(0, 5, 0); }, "steps of 0"},
      {"fraction", [&] { range(0.5, 5, 1, i32); }, "a fraction"},
      {"holds", [&] { range(0, 300, 1, u8); }, "299"},
      {"tensordot", [&] { tensordot(x, x, 1); }, "they must agree"},
      {"diagonal", [&] { set_diag(x, zeros({3})); }, "expected f32[2]"}};
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.name);
    try {
      mistake.make();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(mistake.says), std::string::npos) << error.what();
    }
  }
}

TEST(Moving, RangesAreClampedAsInNumPy) {
  const Tensor x = range(5);
  const auto slice = [&](std::int64_t begin, std::int64_t end, std::int64_t step) {
    return strided_slice(x, {begin}, {end}, {.strides = {step}}).to_vector<std::int32_t>();
  };
  EXPECT_EQ(slice(-100, 100, 2), (Ints{0, 2, 4}));
  EXPECT_EQ(slice(100, -100, -2), (Ints{4, 2, 0}));
  EXPECT_EQ(slice(3, 1, 1), Ints{});
  EXPECT_EQ(slice(-2, 0, -1), (Ints{3, 2, 1}));
  EXPECT_EQ(slice(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), 3), (Ints{0, 3}));
  EXPECT_EQ(pad(x, {{-1, 2}}, PadMode::wrap).to_vector<std::int32_t>(), (Ints{1, 2, 3, 4, 1, 2}));
}

}  // namespace
}  // namespace gradus::moving_test
