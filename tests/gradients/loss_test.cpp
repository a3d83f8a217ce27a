/// Loss, Gradients, ClippedGradients, micro_batches: what adds up, what is divided, what is refused.
#include <gtest/gtest.h>
#include <cmath>
#include <limits>
#include "gradus/function/function.h"
#include "gradus/gradients/micro_batches.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"

namespace gradus::loss_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> values(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

TEST(Loss, MeansKnowTheirWeight) {
  const Loss loss = Loss::mean(constant({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}));
  EXPECT_EQ(loss.item(), 3.5);
  EXPECT_EQ(loss.weight().item(), 6);
  EXPECT_EQ(loss.sum().item(), 21);
  EXPECT_EQ(Loss::of(constant(2.0)).weight().item(), 1);
  EXPECT_EQ(Loss().item(), 0);
  EXPECT_EQ(Loss().weight().item(), 0);
}

TEST(Loss, SampleWeights) {
  const Loss weighted = Loss::mean(constant({1.0, 4.0}), constant({3.0, 1.0}));
  EXPECT_EQ(weighted.item(), 1.75);
  EXPECT_EQ(weighted.weight().item(), 4);
  EXPECT_EQ((2 * weighted + weighted).item(), 5.25);
  EXPECT_EQ(Loss::mean(constant({1.0, 4.0}), constant({0.0, 0.0})).item(), 0);
}

TEST(Loss, PartsAddUpExactly) {
  Loss joined;
  joined += Loss::mean(constant({1.0, 4.0}), constant({3.0, 1.0}));
  joined += Loss::mean(constant({0.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(joined.item(), 0.875);
  EXPECT_EQ(joined.weight().item(), 8);
}

TEST(Loss, RefusesOtherWeights) {
  const Loss two = Loss::mean(constant({1.0, 2.0})), three = Loss::mean(constant({1.0, 2.0, 3.0}));
  EXPECT_THROW(two + three, InvalidArgument);
  EXPECT_EQ((two + Loss::mean(constant({5.0, 7.0}))).item(), 7.5);
  EXPECT_EQ((two + constant(1.0)).item(), 2.5);
  const Loss penalized = two + constant({{1.0}});
  EXPECT_EQ(penalized.item(), 2.5);
  EXPECT_EQ(penalized.value().shape(), Shape{}) << "it stays a scalar";
  EXPECT_THROW(two + constant({1.0, 2.0}), InvalidArgument);
  EXPECT_THROW(Loss::mean(constant({1, 2})), InvalidArgument);
  EXPECT_THROW(Loss::mean(constant({1.0, 2.0}), constant({1.0})), InvalidArgument);
  EXPECT_THROW(Loss::of(constant({1.0, 2.0})), InvalidArgument);
}

/// Gradients of mean(square(x w)) over the rows given.
Gradients gradients_of(Variable& w, const Tensor& x) {
  GradientTape tape;
  return tape.gradient(Loss::mean(reduce_sum(square(x * w), {.axis = {1}})), Variables{w});
}

TEST(Gradients, AccumulationIsTheJointMean) {
  Variable w(random::normal({3}, {.dtype = f64, .seed = 1}), "w");
  const Tensor x = random::normal({11, 3}, {.dtype = f64, .seed = 2});
  Gradients total;
  for (auto [part] : micro_batches({x}, 4)) total += gradients_of(w, part);
  EXPECT_EQ(total.weight().item(), 11);
  EXPECT_LT(max_abs_difference(total[0], gradients_of(w, x)[0]), 1e-14);
}

TEST(Gradients, BelongToTheirVariables) {
  Variable v(constant({1.0}), "v"), w(constant({2.0}), "w"), other(constant({3.0}), "other");
  GradientTape tape;
  const Gradients g = tape.gradient(Loss::of(v * w), Variables{v, w});
  EXPECT_EQ(g[v].item(), 2);
  EXPECT_EQ(g[w].item(), 1);
  EXPECT_EQ(g.size(), 2u);
  EXPECT_THROW(g[other], InvalidArgument);
  EXPECT_THROW(g[2], OutOfRange);
  GradientTape swapped;
  Gradients sum = g;
  EXPECT_THROW(sum += swapped.gradient(Loss::of(v * w), Variables{w, v}), InvalidArgument);
}

Gradients made(std::vector<Tensor> means) {
  Variables variables;
  for (const Tensor& mean : means) {
    const Variable variable{mean};
    variables.add(variable);
  }
  return Gradients(variables, std::move(means), constant(1.0));
}

TEST(Clipping, ByTheGlobalNormKeepsTheDirection) {
  const Gradients g = made({constant({3.0, 0.0}), constant({{0.0}, {4.0}})});
  EXPECT_EQ(global_norm(g).item(), 5);
  const ClippedGradients half = clip_by_global_norm(g, 2.5);
  EXPECT_EQ(values(half[0]), (std::vector<double>{1.5, 0}));
  EXPECT_EQ(values(half[1]), (std::vector<double>{0, 2}));
  EXPECT_EQ(values(clip_by_global_norm(g, 10)[0]), (std::vector<double>{3, 0}));
  const Gradients zero = made({constant({0.0, 0.0})});
  EXPECT_EQ(values(clip_by_global_norm(zero, 1)[0]), (std::vector<double>{0, 0}));
}

TEST(Clipping, EachOnItsOwnTurnsTheDirection) {
  const Gradients g = made({constant({3.0, 4.0}), constant({0.5})});
  const ClippedGradients clipped = clip_by_norm(g, 1);
  EXPECT_NEAR(values(clipped[0])[1], 0.8, 1e-6);
  EXPECT_EQ(values(clipped[1])[0], 0.5);
  EXPECT_EQ(values(clip_by_value(g, -1, 3.5)[0]), (std::vector<double>{3, 3.5}));
}

TEST(Clipping, ANormThatIsNotFiniteMakesEveryGradientNaN) {
  for (double bad : {infinity, -infinity, std::nan("")}) {
    const Gradients g = made({constant({1.0, bad}), constant({2.0})});
    const ClippedGradients clipped = clip_by_global_norm(g, 1);
    for (std::size_t i = 0; i < 2; ++i)
      for (double value : values(clipped[i])) EXPECT_TRUE(std::isnan(value)) << bad;
    EXPECT_FALSE(all_finite(g).item());
  }
  EXPECT_TRUE(all_finite(made({constant({1.0, 2.0})})).item());
}

TEST(Clipping, RefusesNormsThatAreNotPositive) {
  const Gradients g = made({constant({1.0})});
  EXPECT_THROW(clip_by_global_norm(g, 0), InvalidArgument);
  EXPECT_THROW(clip_by_norm(g, -1), InvalidArgument);
  EXPECT_THROW(clip_by_value(g, 1, -1), InvalidArgument);
}

TEST(MicroBatches, TheLastMayBeSmaller) {
  const Tensor x = random::normal({7, 2}, {.seed = 1}), y = constant({0, 1, 2, 3, 4, 5, 6});
  std::vector<std::int32_t> seen;
  std::vector<std::int64_t> sizes;
  for (auto [a, b] : micro_batches({x, y}, 3)) {
    EXPECT_EQ(a.shape()[0], b.shape()[0]);
    sizes.push_back(a.shape()[0]);
    for (std::int32_t v : b.to_vector<std::int32_t>()) seen.push_back(v);
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 3, 1}));
  EXPECT_EQ(seen, y.to_vector<std::int32_t>());
  EXPECT_THROW(micro_batches({x, y}, 0), InvalidArgument);
  EXPECT_THROW(micro_batches({x, constant({1, 2})}, 2), InvalidArgument);
}

TEST(Gradients, ComeOutOfAFunction) {
  Variable w(constant({1.0, 2.0}), "w");
  const auto f = function([&](Tensor x) {
    GradientTape tape;
    return tape.gradient(Loss::mean(x * w), Variables{w});
  });
  Gradients total = f(constant({1.0, 3.0}));
  EXPECT_EQ(values(total[0]), (std::vector<double>{0.5, 1.5}));
  total += f(constant({3.0, 1.0}));
  EXPECT_EQ(values(total[w]), (std::vector<double>{1, 1}));
  EXPECT_EQ(total.weight().item(), 4);
}

}  // namespace
}  // namespace gradus::loss_test
