/// Indexing by data: what is out of range, and what repeated indices do.
#include <gtest/gtest.h>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/gather_ops.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/reduce.h"

namespace gradus::index_test {
namespace {

using Floats = std::vector<float>;

std::string failure_of(const Tensor& x) {
  try {
    x.observed();
  } catch (const OutOfRange& error) { return error.what(); }
  return "";
}

TEST(Gather, IndicesOutOfRangeAreNamed) {
  const Tensor x = ones({4, 2});
  for (int bad : {4, -1, 1000}) {
    const std::string message = failure_of(gather(x, constant({0, bad, 1})));
    EXPECT_NE(message.find("gather"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(bad)), std::string::npos) << message;
  }
  EXPECT_EQ(failure_of(gather(x, constant({0, 3, 1}))), "");
}

TEST(GatherNd, EveryNumberHasItsOwnRange) {
  const Tensor x = ones({2, 3});
  EXPECT_NE(failure_of(gather_nd(x, constant({{0, 3}}))), "");
  EXPECT_NE(failure_of(gather_nd(x, constant({{2, 0}}))), "");
  EXPECT_EQ(failure_of(gather_nd(x, constant({{1, 2}}))), "");
}

TEST(CheckRange, NamesLabels) {
  const std::string message = failure_of(check_range(constant({3, 10, 12}), 10, true) + 1);
  EXPECT_NE(message.find("label"), std::string::npos) << message;
  EXPECT_NE(message.find("10"), std::string::npos) << message;
}

TEST(Gather, RepeatedIndicesAdd) {
  const RecordingScope keep;
  const Tensor x = ones({3, 2}), indices = constant({2, 0, 2, 2});
  const Tensor y = gather(x, indices) * constant({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}, {7.0f, 8.0f}});
  EXPECT_EQ(vjp(y, std::span(&x, 1))[0].to_vector<float>(), (Floats{3, 4, 0, 0, 13, 16}));
}

TEST(Gather, TakesAnyIntegerAndKeepsTheirShape) {
  const Tensor x = constant({10, 11, 12});
  EXPECT_EQ(gather(x, constant({{2, 0}, {1, 1}}, u8)).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{12, 10, 11, 11}));
  EXPECT_EQ(gather(x, constant(1)).shape(), Shape{});
}

TEST(OneHot, LabelsOutsideGiveZeros) {
  EXPECT_EQ(one_hot(constant({1, -1, 3}), 3).to_vector<float>(), (Floats{0, 1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(one_hot(constant({255}, u8), 300, i32).shape(), (Shape{1, 300}));
  EXPECT_EQ(reduce_sum(one_hot(constant({255}, u8), 600)).item(), 1);
}

TEST(Linspace, HitsBothEnds) {
  EXPECT_EQ(linspace(0, 1, 5).to_vector<float>(), (Floats{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(linspace(2, 3, 1).to_vector<float>(), Floats{2});
  EXPECT_EQ(linspace(0.1, 0.7, 4, f64).to_vector<double>().back(), 0.7);
}

TEST(Geomspace, HitsBothEnds) {
  EXPECT_EQ(geomspace(1, 1000, 4).to_vector<float>(), (Floats{1, 10, 100, 1000}));
  EXPECT_EQ(geomspace(3, 5, 1).to_vector<float>(), Floats{3});
  const std::vector<double> falling = geomspace(-1000, -0.1, 5, f64).to_vector<double>();
  EXPECT_EQ(falling.front(), -1000);
  EXPECT_DOUBLE_EQ(falling[2], -10);
  EXPECT_EQ(falling.back(), -0.1);
  EXPECT_THROW(geomspace(-1, 1, 3), InvalidArgument);
}

TEST(Logspace, IsPowersOfItsBase) {
  EXPECT_EQ(logspace(-1, 2, 4).to_vector<float>(), (Floats{0.1f, 1, 10, 100}));
  EXPECT_EQ(logspace(0, 10, 3, 2, f64).to_vector<double>(), (std::vector<double>{1, 32, 1024}));
  EXPECT_THROW(logspace(0, 1, 3, -2), InvalidArgument);
}

}  // namespace
}  // namespace gradus::index_test
