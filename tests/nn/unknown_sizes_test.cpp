/// Running products, norms, indices and losses of sizes that are known at each call alone: the bits of the same without
/// a trace.
#include <gtest/gtest.h>
#include "gradus/function/function.h"
#include "gradus/nn/class_losses.h"
#include "gradus/nn/regression_losses.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/special.h"

namespace gradus::unknown_sizes_test {
namespace {

using Map = std::function<Tensor(const Tensor&)>;

TEST(UnknownSizes, OfMatrices) {
  const std::pair<const char*, Map> maps[] = {
      {"cumprod", [](const Tensor& x) { return cumprod(x, {.axis = 1, .exclusive = true, .reverse = true}); }},
      {"norm", [](const Tensor& x) { return norm(x, 3, {.axis = {1}}); }},
      {"l2_normalize", [](const Tensor& x) { return l2_normalize(x, {0}); }},
      {"hardmax", [](const Tensor& x) { return hardmax(x, 0); }},
      {"argmax", [](const Tensor& x) { return argmax(x, {.axis = 1, .select_last_index = true}); }},
      {"count_nonzero", [](const Tensor& x) { return count_nonzero(x, {.axis = {0}}); }},
      {"sparsemax", [](const Tensor& x) { return sparsemax(x); }},
      {"lbeta", [](const Tensor& x) { return lbeta(square(x)); }},
      {"hinge", [](const Tensor& x) { return hinge(x, x * 2); }},
      {"categorical_hinge", [](const Tensor& x) { return categorical_hinge(x, x * 2); }},
      {"tversky", [](const Tensor& x) { return tversky(x, x * 2, {.axis = {1}}); }},
  };
  for (const auto& [name, map] : maps) {
    const auto traced = function([&](Tensor x) { return map(x); }, {.input_signature = {{f32, {any_size, any_size}}}});
    for (const Shape& shape : {Shape{3, 5}, Shape{1, 4}, Shape{7, 2}}) {
      const Tensor x = random::normal(shape, {.seed = 5});
      EXPECT_TRUE(bitwise_equal(traced(x), map(x))) << name << ' ' << shape;
    }
  }
}

}  // namespace
}  // namespace gradus::unknown_sizes_test
