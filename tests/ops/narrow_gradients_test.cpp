/// Gradients of f16 and bf16: an op's formula in f32, rounded once, so that each number is within a unit in the last
/// place of the gradient in f64, where functions are steep and where they are flat.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/special.h"

namespace gradus::narrow_gradients_test {
namespace {

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
  double low = -4, high = 4;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case cases[] = {
    {"tanh", tanh},
    {"sigmoid", sigmoid, -8, 8},
    {"softplus", softplus, -8, 8},
    {"exp", exp},
    {"expm1", expm1},
    {"exp2", exp2},
    {"log1p", log1p, -0.9, 4},
    {"log2", log2, 0.1, 4},
    {"log10", log10, 0.1, 4},
    {"sqrt", sqrt, 0.1, 4},
    {"rsqrt", rsqrt, 0.1, 4},
    {"cbrt", cbrt, 0.1, 4},
    {"sin", sin},
    {"cos", cos},
    {"tan", tan, -1.4, 1.4},
    {"asin", asin, -0.9, 0.9},
    {"acos", acos, -0.9, 0.9},
    {"atan", atan},
    {"sinh", sinh},
    {"cosh", cosh},
    {"asinh", asinh},
    {"acosh", acosh, 1.1, 4},
    {"atanh", atanh, -0.9, 0.9},
    {"erf", erf, -2.5, 2.5},
    {"erfc", erfc, -2.5, 2.5},
    {"erfinv", erfinv, -0.9, 0.9},
    {"ndtri", ndtri, 0.1, 0.9},
    {"lgamma", lgamma, 2, 6},
    {"digamma", digamma, 0.5, 6},
    {"bessel_i0e", bessel_i0e},
    {"bessel_j0", bessel_j0, 0.2, 3},
    {"bessel_y0", bessel_y0, 0.3, 1.9},
    {"bessel_k0", bessel_k0, 0.2, 4},
    {"expint", expint, 0.5, 4},
    {"spence", spence, 0.2, 4},
    {"dawsn", dawsn, 1.2, 4},
    {"reciprocal", reciprocal, 0.3, 4},
    {"cube", [](const Tensor& x) { return pow(x, 3); }},
    {"power", [](const Tensor& x) { return pow(x, 0.75); }, 0.1, 4},
    {"power_of_number", [](const Tensor& x) { return pow(3, x); }},
    {"divisor", [](const Tensor& x) { return full({}, 1.75, x.dtype()) / x; }, 0.3, 4},
    {"atan2", [](const Tensor& x) { return atan2(full({}, 1.5, x.dtype()), x); }},
    {"logaddexp", [](const Tensor& x) { return logaddexp(x, full({}, 0.5, x.dtype())); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }, 0, 4},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x, {.approximate = true}); }, 0, 4},
    {"mish", mish, 0, 4},
    {"silu", [](const Tensor& x) { return silu(x, {.beta = 1.3}); }, 0, 4},
    {"swish", swish, 0, 4},
    {"softsign", softsign},
    {"celu", [](const Tensor& x) { return celu(x, {.alpha = 1.3}); }},
    {"elu", [](const Tensor& x) { return elu(x, {.alpha = 0.7}); }},
    {"hard_swish", hard_swish, 0, 4},
    {"tanh_shrink", tanh_shrink, 0.5, 4},
    {"log_sigmoid", log_sigmoid},
    {"squareplus", [](const Tensor& x) { return squareplus(x); }, 0, 4},
};

class NarrowGradients : public testing::TestWithParam<Case> {};

TEST_P(NarrowGradients, AreRoundedOnce) {
  const RecordingScope keep;
  const Case& c = GetParam();
  for (const DType t : {f16, bf16}) {
    const Tensor x = random::uniform({500}, {.low = c.low, .high = c.high, .dtype = t, .seed = 1});
    const Tensor seed = random::uniform({500}, {.low = 0.5, .high = 2, .dtype = t, .seed = 2}), wide = cast(x, f64);
    const Tensor got = vjp(c.f(x), Tensors{x}, seed)[0], want = vjp(c.f(wide), Tensors{wide}, cast(seed, f64))[0];
    ASSERT_EQ(got.dtype(), t);
    const double unit = t == f16 ? 0x1p-10 : 0x1p-7, subnormal = t == f16 ? 0x1p-24 : 0;
    const Tensor allowed = abs(want) * unit + subnormal;
    EXPECT_LE(reduce_max(abs(cast(got, f64) - want) / allowed).item(), 0.75) << t;  // 0.5, but for what f32 cancels
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowGradients, testing::ValuesIn(cases), [](const auto& c) { return c.param.name; });

/// Its weights are rounded for the products with them, so nothing is within a unit in the last place.
TEST(NarrowGradientsOfAttention, OfBothOrdersFollowWideOnes) {
  const RecordingScope keep;
  Tensors in, wide;
  for (const Shape& shape : {Shape{2, 4, 5, 6}, {2, 2, 7, 6}, {2, 2, 7, 3}}) {
    in.push_back(random::normal(shape, {.dtype = bf16, .seed = 1 + in.size()}));
    wide.push_back(cast(in.back(), f64));
  }
  const auto both_orders = [](In x) {
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true});
    Tensors all = vjp(y, x, ones_like(y));
    const Tensor by_query = all[0] * all[0];
    for (const Tensor& g : vjp(by_query, x, ones_like(by_query))) all.push_back(g);
    return all;
  };
  const Tensors got = both_orders(in), want = both_orders(wide);
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].dtype(), bf16);
    const double largest = reduce_max(abs(want[k])).item();
    EXPECT_LE(reduce_max(abs(cast(got[k], f64) - want[k])).item(), 0.04 * largest) << "gradient " << k;
  }
}

}  // namespace
}  // namespace gradus::narrow_gradients_test
