/// Sums and products of f16 and bf16 add up in f32 and are rounded once, values and gradients: each number is within
/// three quarters of a unit in the last place of the one in f64. Sums go over many numbers of one sign, so that no
/// digit is lost by cancelling.
#include <gtest/gtest.h>
#include <functional>
#include "gradus/autodiff/vjp.h"
#include "gradus/graph/context.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/layout.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/segment.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/special.h"

namespace gradus::narrow_sums_test {
namespace {

struct Case {
  const char* name;
  std::vector<Shape> shapes;
  std::function<Tensor(In)> f;
  double low = 0.5, high = 1.5;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Tensor places(std::vector<std::int64_t> of) {
  const auto n = static_cast<std::int64_t>(of.size());
  return from_values(of, {n});
}

const Case cases[] = {
    {"sum_of_axes_apart", {{37, 3, 41}}, [](In in) { return reduce_sum(in[0], {.axis = {0, 2}}); }},
    {"broadcast_of_axes_apart",
     {{1, 3, 1}, {37, 3, 41}},
     [](In in) { return broadcast_to(in[0], {37, 3, 41}) + in[1]; }},
    {"maximum_of_axes_apart", {{37, 3, 41}}, [](In in) { return reduce_max(in[0], {.axis = {0, 2}}); }, 1, 1.0000001},
    {"many_ties", {{4, 257}}, [](In in) { return reduce_max(in[0], {.axis = {1}}); }, 1, 1.0000001},
    {"product", {{3, 9}}, [](In in) { return reduce_prod(in[0], {.axis = {1}}); }},
    {"product_of_axes_apart", {{3, 2, 4}}, [](In in) { return reduce_prod(in[0], {.axis = {0, 2}}); }},
    {"cumprod", {{3, 9}}, [](In in) { return cumprod(in[0], 1); }},
    {"cumulative_logsumexp", {{3, 9}}, [](In in) { return cumulative_logsumexp(in[0], 1); }},
    {"cummax", {{3, 9}}, [](In in) { return cummax(in[0], 1); }, 1, 1.0000001},
    {"norm_3", {{3, 50}}, [](In in) { return norm(in[0], 3, {.axis = {1}}); }},
    {"norm_1_of_axes_apart", {{9, 3, 9}}, [](In in) { return norm(in[0], 1, {.axis = {0, 2}}); }},
    {"clip_by_norm", {{50}}, [](In in) { return clip_by_norm(in[0], 0.7); }},
    {"multiply_by_a_row", {{90, 3}, {3}}, [](In in) { return in[0] * in[1]; }},
    {"multiply_by_a_scalar", {{90, 3}, {}}, [](In in) { return in[1] * in[0]; }},
    {"divide_by_a_row", {{90, 3}, {3}}, [](In in) { return in[0] / in[1]; }},
    {"divide_a_column", {{9, 1}, {9, 90}}, [](In in) { return in[0] / in[1]; }},
    {"squared_difference", {{90, 3}, {3}}, [](In in) { return squared_difference(in[0], in[1]); }},
    {"hypot", {{90, 3}, {3}}, [](In in) { return hypot(in[0], in[1]); }},
    {"divide_no_nan", {{90, 3}, {3}}, [](In in) { return divide_no_nan(in[0], in[1]); }},
    {"multiply_no_nan", {{90, 3}, {3}}, [](In in) { return multiply_no_nan(in[0], in[1]); }},
    {"average", {{9, 40}, {9}}, [](In in) { return average(in[0], in[1], 0); }},
    {"polyval", {{3}, {3}, {3}, {3}}, [](In in) { return polyval({in[0], in[1], in[2]}, in[3]); }},
    {"add_n", {{3}, {3}, {3}, {3}}, [](In in) { return add_n({in[0], in[1], in[2], in[3]}); }},
    {"matmul_of_one_matrix_and_a_batch", {{3, 4}, {60, 4, 2}}, [](In in) { return matmul(in[0], in[1]); }},
    {"matmul_of_a_repeated_batch", {{30, 1, 3, 4}, {1, 2, 4, 2}}, [](In in) { return matmul(in[0], in[1]); }},
    {"einsum_of_three",
     {{3, 20}, {20, 30}, {30, 2}},
     [](In in) { return einsum("ij,jk,kl->il", {in[0], in[1], in[2]}); }},
    {"einsum_that_sums_before", {{70, 3}, {3, 4}}, [](In in) { return einsum("ij,jk->k", {in[0], in[1]}); }},
    {"gemm", {{3, 20}, {20, 4}, {4}}, [](In in) { return gemm(in[0], in[1], in[2], {.alpha = 0.3, .beta = 0.7}); }},
    {"pad_edges", {{5, 6}}, [](In in) { return pad(in[0], {{9, 9}, {9, 9}}, PadMode::edge); }},
    {"pad_reflected", {{5, 6}}, [](In in) { return pad(in[0], {{4, 4}, {5, 5}}, PadMode::reflect); }},
    {"pad_wrapped", {{5, 6}}, [](In in) { return pad(in[0], {{5, 5}, {6, 6}}, PadMode::wrap); }},
    {"pad_value", {{5, 6}, {}}, [](In in) { return pad(in[0], {{4, 4}, {5, 5}}, in[1]); }},
    {"tile", {{2, 3}}, [](In in) { return tile(in[0], {20, 30}); }},
    {"gather_of_one_place", {{3, 4}}, [](In in) { return gather(in[0], fill({90}, 1, i32), 0); }},
    {"segment_prod", {{6, 3}}, [](In in) { return unsorted_segment_prod(in[0], places({0, 0, 0, 0, 1, 0}), 2); }},
    {"resize", {{1, 3, 3, 2}}, [](In in) { return resize(in[0], {20, 20}, {}); }},
    {"rotary_tables", {{4, 30, 3, 4}, {3, 2}, {3, 2}}, [](In in) { return rotary_embedding(in[0], in[1], in[2]); }},
    {"one_tensor_used_often", {{40}}, [](In in) { return concat(std::vector<Tensor>(12, in[0]), 0); }},
    {"constant_of_a_loop",
     {{3}, {60, 3}},
     [](In in) {
       const auto body = [w = in[0]](In at) { return Tensors{at[0], at[1] * w}; };
       return detail::scan(body, Tensors{fill({}, 0, f32)}, in[1]).back();
     }},
};

class NarrowSums : public testing::TestWithParam<Case> {};

Tensors values_and_gradients(const Case& c, In in, const Tensor& seed) {
  const Tensor y = c.f(in);
  Tensors all{y};
  for (const Tensor& g : vjp(y, in, seed)) all.push_back(g);
  return all;
}

TEST_P(NarrowSums, AreRoundedOnce) {
  const RecordingScope keep;
  const Case& c = GetParam();
  for (const DType t : {f16, bf16}) {
    Tensors in, wide;
    for (const Shape& shape : c.shapes) {
      in.push_back(
          random::uniform(shape, {.low = c.low, .high = c.high, .dtype = t, .seed = static_cast<int>(1 + in.size())}));
      wide.push_back(cast(in.back(), f64));
    }
    const Tensor seed = random::uniform(c.f(in).shape(), {.low = 0.5, .high = 1.5, .dtype = t, .seed = 9});
    const Tensors got = values_and_gradients(c, in, seed), want = values_and_gradients(c, wide, cast(seed, f64));
    const double unit = t == f16 ? 0x1p-10 : 0x1p-7, subnormal = t == f16 ? 0x1p-24 : 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
      ASSERT_EQ(got[k].dtype(), t);
      const Tensor allowed = abs(want[k]) * unit + (subnormal + 1e-30);
      EXPECT_LE(reduce_max(abs(cast(got[k], f64) - want[k]) / allowed).item(), 0.75)
          << t << (k ? text(", gradient ", k - 1) : ", value");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NarrowSums, testing::ValuesIn(cases), [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace gradus::narrow_sums_test
