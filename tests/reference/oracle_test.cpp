/// The oracle against values worked out by hand.
#include "tests/reference/oracle.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>

namespace gradus::reference::oracle_test {
namespace {

using Numbers = std::vector<double>;

Numbers first_output(const std::string& graph, const std::vector<Numbers>& inputs) {
  return evaluate(parse_graph(graph), inputs)[0];
}

TEST(Oracle, Formulas) {
  const Numbers got =
      first_output("%0 = input : f64[3]\n%1 = exp %0 : f64[3]\n%2 = add %1 %0 : f64[3]\nreturn %2\n", {{0, 1, -2}});
  for (std::size_t i = 0; i < 3; ++i) {
    const double x[] = {0, 1, -2};
    EXPECT_EQ(got[i], std::exp(x[i]) + x[i]);
  }
}

TEST(Oracle, IntegersWrapAndTruncate) {
  EXPECT_EQ(first_output("%0 = input : u8[3]\n%1 = input : u8[3]\n%2 = add %0 %1 : u8[3]\nreturn %2\n",
                         {{250, 1, 255}, {10, 2, 255}}),
            (Numbers{4, 3, 254}));
  EXPECT_EQ(first_output("%0 = input : i32[3]\n%1 = input : i32[3]\n%2 = divide %0 %1 : i32[3]\nreturn %2\n",
                         {{-7, 7, 5}, {2, -2, 0}}),
            (Numbers{-3, -3, 0}));
}

TEST(Oracle, ReductionsOverAnyAxis) {
  const Numbers x{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(first_output("%0 = input : f32[2,2,2]\n%1 = sum{axis=-1} %0 : f32[2,2,1]\nreturn %1\n", {x}),
            (Numbers{3, 7, 11, 15}));
  EXPECT_EQ(first_output("%0 = input : f32[2,2,2]\n%1 = sum{axis=-2} %0 : f32[2,1,2]\nreturn %1\n", {x}),
            (Numbers{4, 6, 12, 14}));
  EXPECT_EQ(first_output("%0 = input : f32[2,2,2]\n%1 = max{axis=-3} %0 : f32[1,2,2]\nreturn %1\n", {x}),
            (Numbers{5, 6, 7, 8}));
  EXPECT_EQ(first_output("%0 = input : i32[0,2]\n%1 = sum{axis=-2} %0 : i32[1,2]\nreturn %1\n", {{}}), (Numbers{0, 0}));
}

TEST(Oracle, ViewsConstantsAndIndexes) {
  const Numbers x{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(first_output("%0 = input : f32[2,3]\n%1 = transpose{order=[0,1]} %0 : f32[3,2]\nreturn %1\n", {x}),
            (Numbers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(first_output("%0 = input : f32[2,3]\n%1 = reverse{dimensions=1} %0 : f32[2,3]\nreturn %1\n", {x}),
            (Numbers{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(first_output("%0 = input : f32[2,3]\n%1 = slice{begin=[1,1]; size=[1,2]} %0 : f32[1,2]\nreturn %1\n", {x}),
            (Numbers{5, 6}));
  EXPECT_EQ(first_output("%0 = constant{0xbf800000} : f32[2]\nreturn %0\n", {}), (Numbers{-1, -1}));
  EXPECT_EQ(first_output("%0 = constant{0xffffffff} : i32[2]\nreturn %0\n", {}), (Numbers{-1, -1}));
}

/// The second difference of 6 points, two rows exchanged: determinant -7, an inverse that is known.
TEST(Oracle, LargerMatricesAreEliminated) {
  const std::size_t n = 6;
  Numbers a(n * n), inverse(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = i < 2 ? 1 - i : i;
    for (std::size_t j = 0; j < n; ++j) {
      a[row * n + j] = i == j ? 2 : i + 1 == j || j + 1 == i ? -1 : 0;
      inverse[j * n + row] =
          static_cast<double>((std::min(i, j) + 1) * (n - std::max(i, j))) / static_cast<double>(n + 1);
    }
  }
  EXPECT_NEAR(first_output("%0 = input : f64[6,6]\n%1 = det %0 : f64[]\nreturn %1\n", {a})[0], -7, 1e-13);
  const Numbers got = first_output("%0 = input : f64[6,6]\n%1 = inverse %0 : f64[6,6]\nreturn %1\n", {a});
  for (std::size_t i = 0; i < n * n; ++i) EXPECT_NEAR(got[i], inverse[i], 1e-14);
}

TEST(Oracle, LibraryKernels) {
  EXPECT_EQ(first_output("%0 = input : f32[2,3]\n%1 = input : f32[2,2]\n"
                         "%2 = matmul{transpose_a=true; transpose_b=false} %0 %1 : f32[3,2]\nreturn %2\n",
                         {{1, 2, 3, 4, 5, 6}, {1, 0, 2, 1}}),
            (Numbers{9, 4, 12, 5, 15, 6}));
  EXPECT_EQ(
      first_output("%0 = input : f32[2,2]\n%1 = input : i32[3]\n%2 = gather{axis=-1} %0 %1 : f32[2,3]\nreturn %2\n",
                   {{1, 2, 3, 4}, {1, 0, 1}}),
      (Numbers{2, 1, 2, 4, 3, 4}));
  EXPECT_EQ(first_output("%0 = input : i32[3]\n%1 = input : f32[3,1]\n"
                         "%2 = scatter_add{axis=-2; extent=4} %0 %1 : f32[4,1]\nreturn %2\n",
                         {{2, 0, 2}, {1, 2, 3}}),
            (Numbers{2, 0, 4, 0}));
  EXPECT_EQ(
      first_output("%0 = input : f32[2,1]\n%1 = input : f32[2,2]\n%2 = concat{axis=-1} %0 %1 : f32[2,3]\nreturn %2\n",
                   {{1, 2}, {3, 4, 5, 6}}),
      (Numbers{1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(
      first_output("%0 = input : i32[4]\n%1 = cumsum{axis=-1; exclusive=true; reverse=true} %0 : i32[4]\nreturn %1\n",
                   {{1, 2, 3, 4}}),
      (Numbers{9, 7, 4, 0}));
  EXPECT_THROW(
      first_output("%0 = input : i32[1]\n%1 = check_range{limit=3; labels=true} %0 : i32[1]\nreturn %1\n", {{3}}),
      OutOfRange);
}

}  // namespace
}  // namespace gradus::reference::oracle_test
