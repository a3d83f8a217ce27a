/// Products that run with what is made of them within loops and branches, whose bodies write carries in place.
#include <gtest/gtest.h>
#include <cstring>
#include "gradus/function/function.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"
#include "tests/threads.h"

namespace gradus::epilogues_test {
namespace {

using Floats = std::vector<float>;

/// Weights and a momentum after some steps of descent, each in a branch within a loop.
Floats descend(int threads, const std::vector<std::string>& disable) {
  const Threads scope(threads);
  set_seed(3);
  const Tensor x = random::normal({24, 150}), y = random::normal({24, 90}), w = random::normal({150, 90});
  const auto step = [&](const Tensor& weights, const Tensor& momentum) {
    const Tensor error = matmul(x, weights) - y;
    const Tensor next = momentum * 0.9 + matmul(transpose(x), error) * 0.001;
    return std::tuple(weights - next, next);
  };
  const auto loop = function(
      [&](Tensor weights, Tensor momentum) {
        return while_loop([](Tensor, Tensor, Tensor k) { return k < 5; },
                          [&](Tensor a, Tensor b, Tensor k) {
                            const auto [c, d] = cond(
                                k < 4, [&] { return step(a, b); },
                                [&] { return std::tuple(a * 2, b + matmul(transpose(x), y)); });
                            return std::tuple(c, d, k + 1);
                          },
                          std::tuple(weights, momentum, constant(0)));
      },
      {.disable = disable});
  Floats all;
  for (int again = 0; again < 2; ++again) {
    const auto [weights, momentum, count] = loop(w, w * 0.5);
    for (const Tensor& result : {weights, momentum})
      for (const float v : result.to_vector<float>()) all.push_back(v);
  }
  return all;
}

TEST(Epilogues, HaveTheSameBitsWithinLoopsAndBranches) {
  const Floats expected = descend(1, {"epilogues", "reuse"});
  for (const int threads : {1, 2, 3}) {
    const Floats got = descend(threads, {});
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << threads << " threads";
  }
}

}  // namespace
}  // namespace gradus::epilogues_test
