/// Ops and layers on sizes that vary from run to run, lazily: the bits are those of a program for one size, in few
/// programs.
#include <gtest/gtest.h>
#include <map>
#include "gradus/function/function.h"
#include "gradus/function/program_cache.h"
#include "gradus/gradients/functional.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/recurrent.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/control.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/crossentropy.h"
#include "gradus/ops/cumulative.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/normalization.h"
#include "gradus/ops/numeric.h"
#include "gradus/ops/pool.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/resize.h"
#include "gradus/ops/scatter.h"
#include "gradus/ops/segment.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/signal.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/sort.h"
#include "gradus/ops/strided.h"
#include "gradus/ops/strided_ops.h"

namespace gradus::varying_ops_test {
namespace {

struct Case {
  std::string name;
  std::function<Tensor(const Tensor& x)> f;  // of [n, 12]
  bool has_gradient = true;
  std::int64_t most_compilations = 3;
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

struct Layers {
  Dense dense{5, tanh};
  LayerNormalization norm;
  LSTM lstm{3};
  Conv1D conv{4, 3, {.padding = Padding::same}};
  Embedding embedding{16, 4};
};
const Layers& layers() {
  static const auto* only = new Layers;
  return *only;
}

/// [n, 12] as one picture [1, n, 4, 3].
Tensor picture(const Tensor& x) { return reshape(x, {1, x.shape()[0], 4, 3}); }
Tensor filters() { return reshape(iota({3 * 3 * 3 * 2}, f32) * 0.03f - 0.7f, {3, 3, 3, 2}); }
/// 32 of 33 channels.
Tensor many_channels(const Tensor& x) {
  return slice(tile(picture(x), {1, 1, 4, 11}), {0, 0, 0, 0}, {1, x.shape()[0], 16, 32});
}
Tensor indices_of(const Tensor& x) { return cast(abs(x) * 3, i32); }

std::vector<Case> cases() {
  return {
      {"sum", [](const Tensor& x) { return reduce_sum(x); }},
      {"means along both axes", [](const Tensor& x) { return reduce_mean(reduce_mean(x, {.axis = {0}})); }},
      {"variance", [](const Tensor& x) { return reduce_variance(x, {.axis = {0}}); }},
      {"logsumexp", [](const Tensor& x) { return reduce_logsumexp(x, {.axis = {0}}); }},
      {"product", [](const Tensor& x) { return reduce_prod(x * 0.3f + 1, {.axis = {0}}); }},
      {"maximum", [](const Tensor& x) { return reduce_max(x, {.axis = {0}}); }},
      {"argmax", [](const Tensor& x) { return argmax(x, {.axis = 0}); }, false},
      {"softmax", [](const Tensor& x) { return softmax(transpose(x)); }},
      {"gram", [](const Tensor& x) { return matmul(x, transpose(x)); }},
      {"product of rows", [](const Tensor& x) { return matmul(transpose(x), x); }},
      {"cumsum", [](const Tensor& x) { return cumsum(x); }},
      {"cummax", [](const Tensor& x) { return cummax(x); }, true},
      {"sort", [](const Tensor& x) { return sort(x, 0); }},
      {"argsort", [](const Tensor& x) { return argsort(transpose(x)); }, false},
      {"top_k", [](const Tensor& x) { return top_k(transpose(x), 3).values; }},
      {"reverse", [](const Tensor& x) { return reverse(x, {0}) - x; }},
      {"roll", [](const Tensor& x) { return roll(x, 2, 0); }},
      {"every second", [](const Tensor& x) { return strided_slice(x, {0, 1}, {2, 12}, {.strides = {1, 2}}); }},
      {"pad", [](const Tensor& x) { return pad(x, {{2, 1}, {0, 3}}); }},
      {"concat", [](const Tensor& x) { return concat({x, x * 2, x[0][0] + zeros({3, 12})}, 0); }},
      {"tile", [](const Tensor& x) { return tile(x, {2, 1}); }},
      {"gather", [](const Tensor& x) { return gather(x, constant({0, 2, 1, 0})); }},
      {"gather rows by data", [](const Tensor& x) { return gather(transpose(x), mod(indices_of(x)[0], 12)); }},
      {"take_along_axis", [](const Tensor& x) { return take_along_axis(x, argsort(x), -1); }},
      {"one_hot", [](const Tensor& x) { return one_hot(indices_of(x), 7) * 2; }, false},
      {"scatter",
       [](const Tensor& x) { return tensor_scatter_nd_add(x, constant({{0}, {2}, {0}}), zeros({3, 12}) + 1); }},
      {"segments", [](const Tensor& x) { return unsorted_segment_sum(transpose(x), mod(iota({12}, i32), 4), 4); }},
      {"layer_normalization", [](const Tensor& x) { return layer_normalization(x); }},
      {"l2_normalize", [](const Tensor& x) { return l2_normalize(x, {0}); }},
      {"einsum", [](const Tensor& x) { return einsum("ab,cb->ac", {x, x}); }},
      {"attention",
       [](const Tensor& x) {
         const Tensor heads = expand_dims(expand_dims(x, 0), 0);
         return scaled_dot_product_attention(heads, heads * 0.5f, heads + 1);
       }},
      {"conv2d", [](const Tensor& x) { return conv2d(picture(x), filters(), {.padding = Padding::same}); }, true},
      {"max_pool",
       [](const Tensor& x) { return max_pool2d(picture(x), {2}, {.strides = {1}, .padding = Padding::same}); }},
      {"avg_pool",
       [](const Tensor& x) { return avg_pool2d(picture(x), {2}, {.strides = {1}, .padding = Padding::same}); }},
      {"Winograd",
       [](const Tensor& x) {
         const Tensor w = reshape(sin(iota({3 * 3 * 32 * 32}, f32)), {3, 3, 32, 32});
         return conv2d(many_channels(x), w, {.padding = Padding::same});
       }},
      {"diff", [](const Tensor& x) { return diff(x, 1, 0); }},
      {"outer", [](const Tensor& x) { return outer(reshape(x, {x.shape().size()}), iota({3}, f32)); }},
      {"bf16", [](const Tensor& x) { return cast(reduce_sum(cast(x, bf16) * 2, {.axis = {0}}), f32); }},
      {"f64", [](const Tensor& x) { return reduce_mean(cast(x, f64) / 3, {.axis = {0}}); }},
      {"integers", [](const Tensor& x) { return reduce_sum(indices_of(x), {.axis = {0}}); }, false},
      {"where", [](const Tensor& x) { return where(x > 0, x, transpose(transpose(x)) * 0.1f); }},
      {"cross entropy", [](const Tensor& x) { return sparse_softmax_cross_entropy_with_logits(argmax(x), x); }},
      {"a scan",
       [](const Tensor& x) {
         return scan([](Tensor s, Tensor row) { return std::pair{tanh(s + row), s * 2}; }, zeros({12}), x).second;
       }},
      {"a dense layer", [](const Tensor& x) { return layers().dense(x); }},
      {"LayerNormalization", [](const Tensor& x) { return layers().norm(x); }},
      {"an LSTM", [](const Tensor& x) { return layers().lstm(reshape(x, {1, x.shape()[0], 12})); }},
      {"a convolution of time", [](const Tensor& x) { return layers().conv(reshape(x, {1, x.shape()[0], 12})); }},
      {"an embedding", [](const Tensor& x) { return layers().embedding(mod(indices_of(x), 16)); }, false},
      {"a loss", [](const Tensor& x) { return MeanSquaredError()(x * 0, x).value(); }},
  };
}

class VaryingOps : public testing::TestWithParam<Case> {};
class VaryingGradients : public testing::TestWithParam<Case> {};

/// Rows of numbers that repeat nothing.
Tensor rows_of(std::int64_t n) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n * 12; ++i) values.push_back(static_cast<float>((i * 7919) % 4999) / 1999 - 1.2f);
  return from_values(values, {n, 12});
}

template <class T> std::vector<T> bits(const Tensor& y) { return cast(y, dtype_of<T>()).template to_vector<T>(); }

void expect_bits_of_one_size(const std::function<Tensor(const Tensor&)>& f, std::int64_t most) {
  const std::int64_t before = program_cache_use().compilations;
  std::map<std::int64_t, std::vector<double>> seen;
  for (int i = 0; i < 30; ++i) {
    const std::int64_t n = 3 + i * 7 % 31;
    const Tensor x = rows_of(n);
    const Tensor y = f(x);
    y.observed();
    seen[n] = bits<double>(y);
  }
  EXPECT_LE(program_cache_use().compilations - before, most + 1) << "one more for casts";
  for (const int i : {1, 5, 21, 29}) {
    const std::int64_t n = 3 + i * 7 % 31;
    const auto alone = function([&](Tensor x) { return f(x); });
    alone(rows_of(n)).observed();
    EXPECT_EQ(bits<double>(alone(rows_of(n))), seen.at(n)) << n;
  }
}

TEST_P(VaryingOps, HaveTheBitsOfOneSize) { expect_bits_of_one_size(GetParam().f, GetParam().most_compilations); }

TEST_P(VaryingGradients, AreThoseOfOneSize) {
  expect_bits_of_one_size(
      [](const Tensor& x) {
        return gradient([](const Tensor& in) { return reduce_sum(square(GetParam().f(in))); }, x);
      },
      GetParam().most_compilations);
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

std::vector<Case> differentiable() {
  std::vector<Case> all = cases();
  std::erase_if(all, [](const Case& each) { return !each.has_gradient; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, VaryingOps, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(All, VaryingGradients, testing::ValuesIn(differentiable()), name_of);

}  // namespace
}  // namespace gradus::varying_ops_test
