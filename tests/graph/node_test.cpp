/// Nodes: who holds them, and the order in which they were made.
#include "gradus/base/rooms.h"
#include "gradus/graph/node.h"
#include <gtest/gtest.h>
#include <thread>
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus::node_test {
namespace {

std::uint32_t holders(const Tensor& x) { return x.node()->refs.load(); }

TEST(Node, AnOperandIsHeldOnceByEachNodeAndNotLonger) {
  const Tensor x = zeros({2}), y = ones({2});
  ASSERT_EQ(holders(x), 1u);
  {
    const Tensor sum = x + y, square = x * x, chosen = where(x < y, x, y);
    EXPECT_EQ(holders(sum), 1u);
    EXPECT_EQ(holders(x), 1u + 1 + 2 + 2) << "sum, square twice, less, chosen";
    EXPECT_EQ(holders(y), 1u + 1 + 1 + 1);
    EXPECT_THROW(x + zeros({3}), InvalidArgument) << "nothing is made";
    EXPECT_EQ(holders(x), 6u);
  }
  EXPECT_EQ(holders(x), 1u);
  EXPECT_EQ(holders(y), 1u);
}

TEST(Node, NumbersGrowWhoeverMakesIt) {
  const Tensor first = zeros({1});
  std::uint64_t elsewhere = 0;
  std::thread([&] { elsewhere = zeros({1}).node()->sequence; }).join();
  const std::uint64_t now = new_sequence();
  EXPECT_GT(elsewhere, first.node()->sequence);
  EXPECT_GT(now, elsewhere);
  EXPECT_GT(zeros({1}).node()->sequence, now);
}

}  // namespace
}  // namespace gradus::node_test
