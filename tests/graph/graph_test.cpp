/// Graphs: what they say of themselves.
#include "gradus/graph/graph.h"
#include <gtest/gtest.h>
#include "gradus/ops/gather_ops.h"
#include "gradus/tensor/dimension.h"

namespace gradus::graph_test {
namespace {

/// The bound of a check is in no shape.
TEST(Graph, SymbolsThatStandInAnOpAloneCount) {
  Graph checked;
  checked.inputs = {checked.add({.spec = {i64, {3}}})};
  EXPECT_EQ(checked.symbols(), 0);
  checked.add({.op = AnyOp::of(CheckRange{.limit = dimension::symbol(1)}), .in = {0}, .spec = {i64, {3}}});
  EXPECT_EQ(checked.symbols(), 2);
}

}  // namespace
}  // namespace gradus::graph_test
