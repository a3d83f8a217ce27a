/// What the ops that rearrange elements give, and that sizes which are not known when tracing go through them.
#include <gtest/gtest.h>
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "tests/errors.h"

namespace gradus::shape_test {
namespace {

using Numbers = std::vector<std::int32_t>;

Tensor counted(const Shape& shape) { return reshape(range(shape.size()), shape); }
Numbers numbers(const Tensor& x) { return x.to_vector<std::int32_t>(); }

TEST(Reshape, WorksOutOneDimension) {
  EXPECT_EQ(reshape(zeros({2, 6}), {-1, 4}).shape(), (Shape{3, 4}));
  EXPECT_EQ(reshape(zeros({0, 6}), {-1, 3}).shape(), (Shape{0, 3}));
  EXPECT_EQ(reshape(zeros({1}), {}).shape(), Shape{});
  EXPECT_THROW(reshape(zeros({0, 6}), {0, -1}), InvalidArgument);
}

TEST(Squeeze, DropsOnesAndExpandDimsAddsThem) {
  const Tensor x = zeros({1, 2, 1, 3});
  EXPECT_EQ(squeeze(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(squeeze(x, {-2}).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(expand_dims(zeros({2, 3}), 0).shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(expand_dims(zeros({2, 3}), -1).shape(), (Shape{2, 3, 1}));
}

TEST(Transpose, Reorders) {
  EXPECT_EQ(numbers(transpose(counted({2, 3}))), (Numbers{0, 3, 1, 4, 2, 5}));
  const Tensor y = transpose(counted({2, 3, 2}), {2, 0, 1});
  EXPECT_EQ(y.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(numbers(y), (Numbers{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(numbers(transpose(y, {1, 2, 0})), numbers(counted({2, 3, 2})));
}

TEST(Slice, CutsBoxes) {
  EXPECT_EQ(numbers(slice(counted({3, 4}), {1, 1}, {2, -1})), (Numbers{5, 6, 7, 9, 10, 11}));
  EXPECT_EQ(slice(counted({3, 4}), {3, 0}, {-1, -1}).shape(), (Shape{0, 4}));
  EXPECT_EQ(numbers(counted({3, 2})[1]), (Numbers{2, 3}));
  EXPECT_EQ(numbers(counted({3, 2})[-1]), (Numbers{4, 5}));
  EXPECT_EQ(numbers(counted({3, 2}).rows(1, 3)), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(counted({3, 2}).rows(1, 1).shape(), (Shape{0, 2}));
}

TEST(Join, ConcatStackSplitUnstack) {
  const Tensor x = counted({2, 2});
  EXPECT_EQ(numbers(concat({x, x + 10}, 1)), (Numbers{0, 1, 10, 11, 2, 3, 12, 13}));
  EXPECT_EQ(numbers(concat({x, x.rows(0, 1), x.rows(0, 0)})), (Numbers{0, 1, 2, 3, 0, 1}));
  EXPECT_EQ(numbers(stack({x, x + 10}, -1)), (Numbers{0, 10, 1, 11, 2, 12, 3, 13}));
  const auto parts = split(counted({2, 4}), 2, -1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(numbers(parts[1]), (Numbers{2, 3, 6, 7}));
  const auto columns = unstack(x, 1);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(numbers(columns[1]), (Numbers{1, 3}));
}

TEST(Rearrange, TileReverseRollPadFlip) {
  EXPECT_EQ(numbers(tile(counted({2, 2}), {2, 2})), (Numbers{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(tile(counted({2, 2}), {0, 1}).shape(), (Shape{0, 2}));
  EXPECT_EQ(numbers(reverse(counted({2, 3}), {0, -1})), (Numbers{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(numbers(reverse(counted({2, 3}), {1})), (Numbers{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(reverse(counted({0, 3}), {0, 1}).shape(), (Shape{0, 3}));
  EXPECT_EQ(numbers(roll(counted({5}), 2, 0)), (Numbers{3, 4, 0, 1, 2}));
  EXPECT_EQ(numbers(roll(counted({5}), -6, 0)), (Numbers{1, 2, 3, 4, 0}));
  EXPECT_EQ(numbers(pad(counted({1, 2}) + 1, {{1, 0}, {1, 2}}, 7)), (Numbers{7, 7, 7, 7, 7, 7, 1, 2, 7, 7}));
  EXPECT_EQ(numbers(flip_left_right(counted({1, 2, 3}))), (Numbers{3, 4, 5, 0, 1, 2}));
}

TEST(Meshgrid, VariesAlongEachAxisAsTensorFlowDoes) {
  const auto grid = meshgrid({counted({3}), counted({2}) + 10});
  ASSERT_EQ(grid.size(), 2u);
  EXPECT_EQ(grid[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(numbers(grid[0]), (Numbers{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(numbers(grid[1]), (Numbers{10, 10, 10, 11, 11, 11}));
}

TEST(BroadcastTo, RepeatsOnesAndNewLeadingDimensions) {
  EXPECT_EQ(numbers(broadcast_to(counted({2, 1}), {2, 2, 2})), (Numbers{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(broadcast_to(counted({1, 3}), {0, 3}).shape(), (Shape{0, 3}));
}

/// As a trace, of which only the symbols matter here, and what slices of unknown dimensions rest on.
struct Symbols : Context {
  Tensor read(VariableCell&) override { return {}; }
  void assign(VariableCell&, const Tensor&) override {}
  void require_not_negative(std::int64_t dimension, const std::string& otherwise) override {
    bounds.emplace_back(dimension, otherwise);
  }
  std::vector<std::pair<std::int64_t, std::string>> bounds;
};

TEST(SymbolicSizes, GoThroughEveryOp) {
  Symbols trace;
  const std::int64_t n = dimension::symbol(0), m = dimension::symbol(1);
  const Tensor x = Tensor::parameter({f32, {n, 28, 28}}, trace.id());
  const std::int64_t all = dimension::multiply(n, 784);
  EXPECT_EQ(reshape(x, {-1, 784}).shape(), (Shape{n, 784}));
  EXPECT_EQ(reshape(x, {n, -1}).shape(), (Shape{n, 784}));
  EXPECT_EQ(reshape(x, {-1}).shape(), Shape{all});
  EXPECT_EQ(transpose(x, {2, 0, 1}).shape(), (Shape{28, n, 28}));
  EXPECT_EQ(tile(x, {2, 1, 1}).shape(), (Shape{dimension::multiply(n, 2), 28, 28}));
  EXPECT_EQ(reverse(x, {0}).shape(), x.shape());
  EXPECT_EQ(broadcast_to(zeros({1, 28}), {n, 28, 28}).shape(), x.shape());
  EXPECT_EQ(reduce_sum(x, {.axis = {0, 1}}).shape(), Shape{28});
  EXPECT_EQ(reduce_mean(x, {.axis = {0}, .keepdims = true}).shape(), (Shape{1, 28, 28}));
  EXPECT_EQ(element_count(x, f32).shape(), Shape{});
  EXPECT_EQ(matmul(reshape(x, {-1, 784}), zeros({784, 10})).shape(), (Shape{n, 10}));
  EXPECT_EQ(matmul(x, zeros({28, 5})).shape(), (Shape{n, 28, 5}));
  EXPECT_EQ(one_hot(Tensor::parameter({i32, {n}}, trace.id()), 10).shape(), (Shape{n, 10}));
  EXPECT_EQ(gather(x, zeros({3}, i32)).shape(), (Shape{3, 28, 28}));
  EXPECT_TRUE(trace.bounds.empty());
  EXPECT_EQ(argmax(x, 0).shape(), (Shape{28, 28}));
  ASSERT_EQ(trace.bounds.size(), 1u);
  expect_says(trace.bounds[0].second, "argmax: i32 does not hold numbers to ");
  const Tensor y = Tensor::parameter({f32, {m, 28, 28}}, trace.id());
  EXPECT_EQ(concat({x, y}).shape(), (Shape{dimension::add(n, m), 28, 28}));
  EXPECT_THROW(concat({x, y}, 1), InvalidArgument);
  EXPECT_THROW(x + y, InvalidArgument);
  EXPECT_THROW(unstack(x), InvalidArgument);
  EXPECT_THROW(reshape(x, {-1, 783}), InvalidArgument);
}

TEST(SymbolicSizes, SlicesNoteWhatTheyRestOn) {
  Symbols trace;
  const std::int64_t n = dimension::symbol(0);
  const Tensor x = Tensor::parameter({f32, {n, 3}}, trace.id());
  EXPECT_EQ(x.rows(16, 48).shape(), (Shape{32, 3}));
  ASSERT_EQ(trace.bounds.size(), 1u);
  EXPECT_EQ(trace.bounds[0].first, dimension::subtract(n, 48));
  EXPECT_NE(trace.bounds[0].second.find("rows: [16, 48) is outside dimension 0"), std::string::npos);
  EXPECT_EQ(slice(x, {5, 0}, {-1, 2}).shape(), (Shape{dimension::subtract(n, 5), 2}));
  EXPECT_EQ(trace.bounds.back().first, dimension::subtract(n, 5));
  EXPECT_EQ(x[-1].shape(), Shape{3});
  EXPECT_EQ(trace.bounds.back().first, dimension::subtract(n, 1));
  EXPECT_EQ(roll(x, -2, 0).shape(), x.shape());  // past the extent, too
  EXPECT_EQ(trace.bounds.back().first, dimension::subtract(n, 1));
  const Context plain;
  const Tensor y = Tensor::parameter({f32, {n, 3}}, plain.id());
  trace.bounds.clear();
  EXPECT_EQ(y.rows(0, 1).shape(), (Shape{1, 3}));
  EXPECT_EQ(trace.bounds.size(), 1u) << "the context around sees to it";
}

TEST(SymbolicSizes, WithoutATraceSlicesOfThemAreErrors) {
  const Context plain;
  const Tensor x = Tensor::parameter({f32, {dimension::symbol(0), 3}}, plain.id());
  EXPECT_THROW(x.rows(0, 1), InvalidArgument);
}

}  // namespace
}  // namespace gradus::shape_test
