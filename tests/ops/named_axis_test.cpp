/// An axis by its name is the one by its place.
#include <gtest/gtest.h>
#include "gradus/gradus.h"

namespace gradus::named_axis_test {
namespace {

void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(bitwise_equal(a[i], b[i])) << i;
}

TEST(NamedAxis, IsTheOneByPlace) {
  const Tensor x = random::normal({4, 6}, {.seed = 3}), one = expand_dims(x, 0);
  const Tensor places = constant({{1, 0, 2, 3, 1, 1}}), few = constant({1, 0}),
               truth = constant({true, false, true, true});
  expect_same(
      {concat({x, x}, {.axis = 1}), stack({x, x}, {.axis = 2}), expand_dims(x, {.axis = -1}),
       squeeze(one, {.axis = {0}}), reverse(x, {.axis = {1}}), roll(x, 2, {.axis = 1}), flip(x, {.axis = {0}}),
       repeat(x, 2, {.axis = 1}), repeat(x, constant({1, 0, 2, 1}), {.axis = 0}), roll(x, {1, 2}, {.axis = {0, 1}})},
      {concat({x, x}, 1), stack({x, x}, 2), expand_dims(x, -1), squeeze(one, {0}), reverse(x, {1}), roll(x, 2, 1),
       flip(x, {0}), repeat(x, 2, 1), repeat(x, constant({1, 0, 2, 1}), 0), roll(x, {1, 2}, {0, 1})});
  expect_same(split(x, 3, {.axis = 1}), split(x, 3, 1));
  expect_same(split(x, {1, -1}, {.axis = 1}), split(x, {1, -1}, 1));
  expect_same(unstack(x, {.axis = 1}), unstack(x, 1));
  expect_same(
      {gather(x, few, {.axis = 1}), gather(x, constant({{0, 1}, {2, 3}, {4, 5}, {5, 5}}), {.axis = 1, .batch_dims = 1}),
       take_along_axis(x, places, {.axis = 0}), put_along_axis(x, places, zeros({1, 6}), {.axis = 0}),
       boolean_mask(x, truth, {.axis = 0}), compress(x, truth, {.axis = 1}),
       reverse_sequence(x, constant({1, 2, 3, 4}), {.seq_axis = 1})},
      {gather(x, few, 1), gather(x, constant({{0, 1}, {2, 3}, {4, 5}, {5, 5}}), 1, 1), take_along_axis(x, places, 0),
       put_along_axis(x, places, zeros({1, 6}), 0), boolean_mask(x, truth, 0), compress(x, truth, 1),
       reverse_sequence(x, constant({1, 2, 3, 4}), 1)});
  expect_same(
      {sort(x, {.axis = 0}), argsort(x, {.axis = 0, .direction = Direction::descending}), softmax(x, {.axis = 0}),
       log_softmax(x, {.axis = 0}), masked_softmax(x, x > 0, {.axis = 0}), hardmax(x, {.axis = 0}), glu(x, {.axis = 0}),
       sparsemax(x, {.axis = 0}), crelu(x, {.axis = 0}), cummax(x, {.axis = 1}), cummin(x, {.axis = 1}),
       cumsum(x, {.axis = 1}), argmax(x, {.axis = 0}), softmax_cross_entropy_with_logits(softmax(x), x, {.axis = 0})},
      {sort(x, 0), argsort(x, 0, Direction::descending), softmax(x, 0), log_softmax(x, 0), masked_softmax(x, x > 0, 0),
       hardmax(x, 0), glu(x, 0), sparsemax(x, 0), crelu(x, 0), cummax(x, 1), cummin(x, 1), cumsum(x, 1), argmax(x, 0),
       softmax_cross_entropy_with_logits(softmax(x), x, 0)});
  expect_same(
      {diff(x, {.n = 2, .axis = 0}), trapezoid(x, {.dx = 0.5, .axis = 0}), average(x, ones({4}), {.axis = 0}),
       l2_normalize(x, {.axis = {0}}), lp_normalize(x, {.p = 1, .axis = 0}), normalize(x, {.axis = {0}}).norm,
       mean_variance_normalization(x, {.axis = {0}}), center_crop_pad(x, {2}, {.axis = {0}}),
       fftshift(x, {.axis = {0}}), ifftshift(x, {.axis = {0}}), constraints::unit_norm(x, {.axis = {1}}),
       constraints::max_norm(x, 1, {.axis = {1}}), constraints::min_max_norm(x, 0.5, 1, 1, {.axis = {1}}),
       cosine_similarity(x, x, {.axis = 0}), all_gather(x, {.axis = 1}), reduce_scatter(x, {.axis = 1})},
      {diff(x, 2, 0), trapezoid(x, 0.5, 0), average(x, ones({4}), 0), l2_normalize(x, {0}), lp_normalize(x, 1, 0),
       normalize(x, 2, {0}).norm, mean_variance_normalization(x, {0}), center_crop_pad(x, {2}, {0}), fftshift(x, {0}),
       ifftshift(x, {0}), constraints::unit_norm(x, {1}), constraints::max_norm(x, 1, {1}),
       constraints::min_max_norm(x, 0.5, 1, 1, {1}), cosine_similarity(x, x, 0), x, x});
  expect_same({Softmax({.axis = 1})(one), UnitNormalization({.axis = {1}})(one), Normalization({.axis = -1})(x)},
              {Softmax(1)(one), UnitNormalization(std::vector<int>{1})(one), Normalization(-1)(x)});
}

}  // namespace
}  // namespace gradus::named_axis_test
