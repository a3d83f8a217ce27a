/// What is exported is read back with the same values. That ONNX's own checker takes it is asked in checker_test.
#include "gradus/onnx/export.h"
#include <gtest/gtest.h>
#include <cstdlib>
#include <filesystem>
#include "gradus/nn/convolutions.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/pools.h"
#include "gradus/ops/control.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/creation.h"
#include "gradus/ops/indexing.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/softmax.h"
#include "gradus/ops/spectral.h"
#include "tests/onnx/sample_models.h"
#include "tests/test_directory.h"

namespace gradus::onnx::export_test {
namespace {

namespace fs = std::filesystem;
using Function = std::function<Tensors(std::span<const Tensor>)>;

/// Where exported files go: ONNX_EXPORTS names a folder to keep them in, for the checker.
fs::path place(const std::string& name) {
  const char* kept = std::getenv("ONNX_EXPORTS");
  static const TestDirectory temporary("onnx_export");
  const fs::path folder = kept ? fs::path(kept) : temporary.path();
  fs::create_directories(folder);
  return folder / (name + ".onnx");
}

struct Case {
  std::string name;
  std::vector<Spec> specs;
  Function f;
};

/// Numbers in (0.1, 1), another extent in place of any_size.
Tensor sample(const Spec& spec, std::int64_t open, std::uint64_t seed) {
  Shape shape = spec.shape;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] == any_size) shape.set(d, open);
  return cast(random::uniform(shape, {.low = 0.1, .seed = seed}) * (is_integer(spec.dtype) ? 3 : 1), spec.dtype);
}

const Case cases[] = {
    {"arithmetic",
     {{f32, {2, 3}}, {f32, {3}}},
     [](auto in) { return Tensors{(in[0] + in[1]) * 2 - in[0] / in[1], maximum(in[0], in[1]), pow(in[0], 3)}; }},
    {"functions",
     {{f32, {5}}},
     [](auto in) {
       return Tensors{exp(in[0]),    log(in[0]),
                      sqrt(in[0]),   sigmoid(in[0]),
                      tanh(in[0]),   erf(in[0]),
                      relu(in[0]),   leaky_relu(in[0] - 0.5, 0.1),
                      square(in[0]), clip_by_value(in[0], 0.2, 0.7),
                      rsqrt(in[0]),  silu(in[0])};
     }},
    {"choices",
     {{f32, {4}}},
     [](auto in) {
       return Tensors{where(in[0] > 0.5, in[0], -in[0]), cast(in[0] < 0.5, i32), logical_not(in[0] >= 0.5)};
     }},
    {"reductions",
     {{f32, {3, any_size}}},
     [](auto in) {
       return Tensors{reduce_sum(in[0], {.axis = {1}}),
                      reduce_mean(in[0]),
                      reduce_max(in[0], {.axis = {0}, .keepdims = true}),
                      softmax(in[0]),
                      reduce_any(in[0] > 0.9),
                      cumsum(in[0], 1)};
     }},
    {"shapes",
     {{f32, {any_size, 4}}},
     [](auto in) {
       return Tensors{
           reshape(in[0], {-1}),          transpose(in[0]),      reverse(in[0], {0, 1}), split(in[0], 2, 1)[1],
           concat({in[0], in[0] * 2}, 1), expand_dims(in[0], 1), tile(in[0], {2, 1})};
     }},
    {"indices",
     {{f32, {4, 3}}, {i32, {2}}},
     [](auto in) { return Tensors{gather(in[0], in[1]), one_hot(in[1], 4), cast(range(6), f32)}; }},
    {"loops",
     {{f32, {5, 2}}, {f32, {2}}},
     [](auto in) {
       const auto step = [&](const Tensor& s, const Tensor& x) { return std::pair{tanh(s * in[1] + x), s - x}; };
       const auto [last, all] = scan(step, in[1], in[0]);
       const Tensor chosen = cond(reduce_sum(last) > 0, [&] { return last * 2; }, [&] { return last - 1; });
       return Tensors{last, all, chosen};
     }},
    {"spectra",
     {{f32, {any_size, 12}}},
     [](auto in) { return Tensors{rfft(in[0]), ifft(rfft(in[0])), irfft(rfft(in[0]))}; }},
    {"products",
     {{f32, {any_size, 3}}, {f32, {4, 3}}},
     [](auto in) { return Tensors{matmul(in[0], transpose(in[1])), einsum("ij,kj->ik", {in[0], in[1]})}; }},
};

TEST(OnnxExport, ComesBack) {
  for (const Case& each : cases) {
    const fs::path file = place(each.name);
    export_onnx(file, each.f, each.specs);
    const Model model = load(file);
    for (const std::int64_t open : {1, 3}) {
      Tensors in;
      for (const Spec& spec : each.specs) in.push_back(sample(spec, open, in.size() + 1));
      const Tensors want = each.f(in), got = model(std::span<const Tensor>(in));
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].spec(), want[i].spec()) << each.name << " output " << i;
        EXPECT_LE(max_abs_difference(got[i], want[i]), 1e-6) << each.name << " output " << i;
      }
    }
  }
}

TEST(OnnxExport, AModelKeepsTheNamesOfItsWeights) {
  Sequential model{Dense(8, relu, {.name = "hidden"}), Dense(3, linear, {.name = "scores"})};
  model.build({f32, {any_size, 4}});
  export_onnx(place("model"), model, {f32, {any_size, 4}});
  const Model read = load(place("model"));
  EXPECT_TRUE(bitwise_equal(read.variables()["hidden/kernel"], model.variables()["hidden/kernel"]));
  const Tensor x = random::normal({5, 4}, {.seed = 1});
  EXPECT_TRUE(bitwise_equal(read(x), model(x)));
}

TEST(OnnxExport, ConvolutionsAndPooling) {
  Sequential model{Conv2D(4, 3, {.strides = 2, .padding = Padding::same, .activation = relu}),
                   MaxPooling2D(2),
                   DepthwiseConv2D(3),
                   Conv2DTranspose(3, 3, {.strides = 2}),
                   AveragePooling2D(2),
                   Flatten(),
                   Dense(2)};
  const Spec input{f32, {any_size, 17, 16, 3}};
  model.build(input);
  export_onnx(place("images"), model, input);
  const Tensor x = random::normal({2, 17, 16, 3}, {.seed = 1});
  const Tensor want = model(x), got = load(place("images"))(x);
  ASSERT_EQ(got.spec(), want.spec());
  EXPECT_LE(max_abs_difference(got, want), 1e-6);
}

TEST(OnnxExport, WhatHasNoForm) {
  const auto said = [](const Function& f) {
    return complaint([&] { export_onnx(place("refused"), f, {{f32, {3}}}); });
  };
  EXPECT_NE(said([](auto in) { return Tensors{in[0] * random::uniform({3})}; }).find("no form in ONNX"),
            std::string::npos);
  EXPECT_NE(said([](auto in) { return Tensors{reduce_sum(in[0]) > 0 ? in[0] : -in[0]}; }), "");
  for (const std::int64_t bound : {0, 5}) {
    const auto doubled = [bound](const Tensor& x) {
      return while_loop([](Tensor t) { return reduce_sum(t) < 5; }, [](Tensor t) { return t * 2; }, x,
                        {.max_iterations = bound});
    };
    const std::string message = said([&](auto in) { return Tensors{doubled(in[0])}; });
    EXPECT_NE(message.find("the op while has no form in ONNX: a loop whose end depends on data"), std::string::npos)
        << message;
    EXPECT_NE(message.find("scan"), std::string::npos) << message;
  }
  EXPECT_FALSE(fs::exists(place("refused")));
}

}  // namespace
}  // namespace gradus::onnx::export_test
