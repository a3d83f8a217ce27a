/// Sizes at which kernels once read or wrote beyond their memory, or gave other bits to other numbers of threads.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include "gradus/base/rooms.h"
#include "gradus/base/threads.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/random.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"
#include "tests/errors.h"

namespace gradus::edges_of_kernels_test {
namespace {

/// A product of fewer columns may pack them in wider blocks, and so need more memory.
TEST(EdgesOfKernels, ALongCacheThatIsNotFullHasTheBitsOfItsKeys) {
  struct Cache {
    std::int64_t keys, seen, width;
    DType dtype;
  };
  for (const Cache c : {Cache{81921, 80900, 128, f32},
                        {20481, 19969, 128, f32},
                        {40961, 39937, 256, f32},
                        {40961, 40449, 128, f64},
                        {20481, 19000, 128, f64}}) {
    const auto made = [&](std::int64_t places, std::uint64_t seed) {
      return random::normal({1, 1, places, c.width}, {.dtype = c.dtype, .seed = seed});
    };
    const Tensor query = made(1, 1), key = made(c.keys, 2), value = made(c.keys, 3);
    const auto head = [&](const Tensor& x) { return slice(x, {0, 0, 0, 0}, {1, 1, c.seen, c.width}); };
    const auto attended = function([](Tensor q, Tensor k, Tensor v, Tensor mask) {
      return scaled_dot_product_attention(q, k, v, {.mask = mask});
    });
    const Tensor mask = range(c.keys) < c.seen;
    EXPECT_TRUE(bitwise_equal(attended(query, key, value, reshape(mask, {1, 1, 1, c.keys})),
                              attended(query, head(key), head(value), ones({1, 1, 1, c.seen}, boolean))))
        << c.keys << " " << c.seen;
  }
}

TEST(EdgesOfKernels, RunningSumsFlushTheirFirstElementForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const std::int64_t columns : {1, 5, 1025}) {
    const Tensor x = fill({1000, columns}, 1e-40, f32);
    for (const int threads : {1, 2, 3}) {
      set_num_threads(threads);
      const std::vector<float> sums = function([](Tensor a) { return cumsum(a, {.axis = 0}); })(x).to_vector<float>();
      EXPECT_TRUE(std::ranges::all_of(sums, [](float sum) { return sum == 0; })) << columns << " " << threads;
    }
  }
  set_num_threads(before);
}

TEST(EdgesOfKernels, IndicesIntoATargetWithoutRowsAreRefused) {
  for (const std::int64_t columns : {3, 16}) {
    const Tensor updates = ones({1, columns});
    expect_error<OutOfRange>(
        [&] { tensor_scatter_nd_add(zeros({0, columns}), constant({{0}}), updates).to_vector<float>(); }, {"0"});
  }
}

TEST(EdgesOfKernels, TheGradientOfADeterminantKeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = constant({{nan, 0.0F}, {0.0F, 0.0F}});
  const std::vector<float> slope = gradient([](Tensor a) { return det(a); }, x).to_vector<float>();
  EXPECT_TRUE(std::isnan(slope[3]));
}

}  // namespace
}  // namespace gradus::edges_of_kernels_test
