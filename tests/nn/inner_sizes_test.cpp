/// Open sizes from which sizes within follow: where one of these is 1, library functions leave ops away, which is no
/// mistake of the C++.
#include <gtest/gtest.h>
#include "gradus/gradus.h"

namespace gradus::inner_sizes_test {
namespace {

/// Strides of 16 in all: inputs of up to 16 have one place at the end.
TEST(InnerSizes, OfOneAreNoMistake) {
  Sequential model{Conv2D(4, 3, {.strides = 4, .padding = Padding::same, .activation = relu}),
                   Conv2D(4, 3, {.strides = 4, .padding = Padding::same, .activation = relu}), GlobalMaxPooling2D(),
                   Dense(1)};
  model.build({f32, {any_size, any_size, any_size, 2}});
  const auto slopes = [&](Tensor x) {
    GradientTape tape;
    const Tensor loss = reduce_sum(square(model(x)));
    return tape.gradient(loss, model.trainable_variables());
  };
  const auto open = function(slopes, {.input_signature = {{f32, {any_size, any_size, any_size, 2}}}});
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{40, 33}, {16, 17}, {16, 16}, {5, 20}, {3, 2}}) {
    const Tensor x = random::normal({2, rows, columns, 2}, {.seed = 1});
    const Gradients want = slopes(x), got = open(x);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(bitwise_equal(got[i], want[i])) << rows << ' ' << columns;
  }
}

TEST(InnerSizes, OfDifferences) {
  const auto variation =
      function([](Tensor x) { return total_variation(x); }, {.input_signature = {{f32, {any_size, 6, 1}}}});
  for (const std::int64_t n : {8, 2, 1, 3}) {
    const Tensor x = random::normal({n, 6, 1}, {.seed = 1});
    EXPECT_TRUE(bitwise_equal(variation(x), total_variation(x))) << n;
  }
}

}  // namespace
}  // namespace gradus::inner_sizes_test
