/// Gradients of slices, with and without the rule of `simplify` that puts sums of padded parts together.
#include <gtest/gtest.h>
#include <cstring>
#include <functional>
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/image.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/random.h"
#include "gradus/ops/shape.h"

namespace gradus::padded_sums_test {
namespace {

using Formula = std::function<Tensor(const Tensor&)>;

struct Slices {
  const char* name;
  Shape shape;
  Formula formula;
};
void PrintTo(const Slices& slices, std::ostream* out) { *out << slices.name; }

Tensor column(const Tensor& x, std::int64_t begin, std::int64_t count = 1) {
  return slice(x, {0, begin}, {x.shape()[0], count});
}

const Slices all[] = {
    {"cross", {33, 3}, [](const Tensor& x) { return cross(x, reverse(x, {0})); }},
    {"grayscale", {2, 5, 7, 3}, [](const Tensor& x) { return rgb_to_grayscale(x); }},
    {"gates",
     {9, 20},
     [](const Tensor& x) { return column(x, 0, 5) * column(x, 5, 5) + column(x, 10, 5) * column(x, 15, 5); }},
    {"rows", {6, 4}, [](const Tensor& x) { return slice(x, {0, 0}, {2, 4}) * slice(x, {4, 0}, {2, 4}); }},
    {"overlapping", {9, 20}, [](const Tensor& x) { return column(x, 1, 19) - column(x, 0, 19); }},
    {"corners", {8, 8}, [](const Tensor& x) { return slice(x, {0, 0}, {4, 4}) * slice(x, {4, 4}, {4, 4}); }},
    {"many",
     {3, 70},
     [](const Tensor& x) {
       Tensor sum = column(x, 0);
       for (std::int64_t i = 1; i < 70; ++i) sum = sum + column(x, i) * column(x, 69 - i);
       return sum;
     }},
};

class PaddedSums : public testing::TestWithParam<Slices> {};

// Cotangents are zeros of both signs and subnormal numbers, too.
TEST_P(PaddedSums, HaveTheSameBits) {
  const Slices& slices = GetParam();
  for (const DType dtype : {f32, f64, bf16}) {
    const auto gradient_with = [&](std::vector<std::string> disable) {
      const auto gradient = function(
          [&](Tensor x, Tensor dy) {
            GradientTape tape;
            tape.watch(x);
            const Tensor y = slices.formula(x);
            return tape.gradient(y, x, {.output_gradients = dy});
          },
          {.disable = std::move(disable)});
      const Tensor x = cast(random::normal(slices.shape, {.seed = 3}), dtype);
      const Tensor y = slices.formula(x), drawn = random::normal(y.shape(), {.seed = 4});
      const Tensor dy = cast(where(drawn > 1.0, 0.0 * drawn, where(drawn < -1.0, 0.0 * drawn, drawn * 1e-37)), dtype);
      return cast(gradient(x, dy), f64).to_vector<double>();
    };
    const std::vector<double> joined = gradient_with({}), padded = gradient_with({"simplify"});
    ASSERT_EQ(joined.size(), padded.size());
    EXPECT_EQ(std::memcmp(joined.data(), padded.data(), joined.size() * sizeof(double)), 0) << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(Slices, PaddedSums, testing::ValuesIn(all), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace gradus::padded_sums_test
