/// An object holds the code that its steps reach: bounds of its machine code for two networks, and the tiles of
/// products of many shapes. A tile that a step calls and that did not come along would end this process.
#include <gtest/gtest.h>
#include <random>
#include "gradus/backend/cpu/isa.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/convolutions.h"
#include "gradus/nn/layers.h"
#include "gradus/nn/losses.h"
#include "gradus/nn/model.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/rearranging.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/attention.h"
#include "gradus/ops/conv.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/linear_algebra.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/solve.h"
#include "gradus/optim/optimizers.h"
#include "tests/export/loaded_object.h"
#include "tests/instruction_sets.h"

namespace gradus::sizes_test {
namespace {

std::vector<std::string> sets_of_this_machine() {
  std::vector<std::string> names;
  for (const cpu_backend::Isa isa : isas_here()) names.emplace_back(name(isa));
  return names;
}

std::int64_t code_of(const ObjectFiles& files) { return object::code_bytes(read_text_file(files.object)); }

/// The bytes of code of a model's prediction and of its training step with Adam.
struct Sizes {
  std::int64_t prediction, training;
};
Sizes sizes_of(Sequential& model, const Shape& rows, const Spec& labels, const std::string& set) {
  model.build({f32, rows});
  Adam optimizer({.learning_rate = 0.001});
  const auto predict = function([&](Tensor x) { return model(x); });
  const auto train = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Tensor scores = model(x, training);
    Loss loss = Loss::mean(labels.dtype == i32 ? sparse_categorical_crossentropy(y, scores, from_logits)
                                               : mean_squared_error(y, scores));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  const auto folder = export_folder();
  Shape one = rows;
  one.set(0, 1);
  return {code_of(predict.export_object(folder / "predict", {{f32, one}}, {.instruction_set = set})),
          code_of(train.export_object(folder / "learn", {{f32, rows}, labels}, {.instruction_set = set}))};
}

TEST(ExportSizes, ASmallNetworkIsASmallObject) {
  for (const std::string& set : sets_of_this_machine()) {
    SCOPED_TRACE(set);
    Sequential model{Dense(32, relu), Dense(32, relu), Dense(1)};
    const Sizes sizes = sizes_of(model, {64, 5}, {f32, {64, 1}}, set);
    std::int64_t parameters = 0;
    for (const Variable& v : model.variables()) parameters += v.shape().size();
    EXPECT_EQ(parameters, 1281);
    RecordProperty(set, text(sizes.prediction, " ", sizes.training));
    EXPECT_LE(sizes.prediction, 60'000);
    EXPECT_LE(sizes.training, 150'000);
  }
}

/// The layers of configs/fashion_mnist_cnn.toml.
TEST(ExportSizes, TilesAreThoseOfTheShapesThatOccur) {
  for (const std::string& set : sets_of_this_machine()) {
    SCOPED_TRACE(set);
    Sequential model{Reshape({28, 28, 1}),
                     Conv2D(32, 3, {.padding = Padding::same, .activation = relu}),
                     MaxPooling2D(2),
                     Conv2D(64, 3, {.padding = Padding::same, .activation = relu}),
                     MaxPooling2D(2),
                     Flatten(),
                     Dropout(0.25),
                     Dense(128, relu),
                     Dense(10)};
    const Sizes sizes = sizes_of(model, {64, 28, 28}, {i32, {64}}, set);
    RecordProperty(set, text(sizes.prediction, " ", sizes.training));
    EXPECT_LE(sizes.prediction, 400'000);
    EXPECT_LE(sizes.training, 400'000);
  }
}

TEST(ExportSizes, AStepWithoutProductsHasNoTiles) {
  const auto f = function([](Tensor x) { return reduce_sum(exp(x) * 2, {.axis = {0}}); });
  for (const std::string& set : sets_of_this_machine())
    EXPECT_LE(code_of(f.export_object(export_folder() / "f", {{f32, {100}}}, {.instruction_set = set})), 16'000) << set;
}

/// One object that computes all results of `f` from these arguments has the library's bits.
template <class F> void expect_same_bits(const F& f, const Tensors& arguments, const std::string& set) {
  const Threads one(1);
  std::vector<Spec> specs;
  std::vector<void*> pointers{nullptr};
  for (const Tensor& x : arguments) {
    specs.push_back(x.spec());
    pointers.push_back(const_cast<void*>(x.observed().host()));
  }
  const LoadedObject object(f.export_object(export_folder() / "f", specs, {.instruction_set = set}));
  const Tensors expected = f(arguments);
  pointers[0] = object.state();
  std::vector<std::vector<std::byte>> results;
  for (const Tensor& y : expected) results.emplace_back(y.bytes() + 8);
  for (auto& result : results) pointers.push_back(result.data());
  object.call(pointers);
  ASSERT_EQ(object.failure(), 0);
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(std::memcmp(results[k].data(), expected[k].observed().host(), expected[k].bytes()), 0) << "result " << k;
}

Tensor drawn(const Shape& shape, DType t, std::uint64_t seed) {
  return cast(random::normal(shape, {.stddev = 3, .seed = seed}), t);
}

/// Every height and width of tiles, their edges, packed and in place, alone and followed by loops.
TEST(ExportSizes, ProductsOfAnyShapeHaveTheirTiles) {
  std::mt19937 random(7);
  const auto any = [&](int least, int most) {
    return std::int64_t{std::uniform_int_distribution<int>(least, most)(random)};
  };
  for (const std::string& set : sets_of_this_machine())
    for (const DType t : {f32, f64, bf16, i32, i64}) {
      SCOPED_TRACE(text(set, " ", t));
      Tensors operands;
      for (int k = 0; k < 24; ++k) {
        const std::int64_t m = k < 12 ? any(1, 40) : any(1, 300), n = k % 3 == 0 ? any(1, 20) : any(1, 400),
                           depth = k % 5 == 0 ? any(1, 700) : any(1, 80);
        operands.push_back(drawn(k % 4 == 1 ? Shape{depth, m} : Shape{m, depth}, t, static_cast<std::uint64_t>(k)));
        operands.push_back(
            drawn(k % 4 == 2 ? Shape{n, depth} : Shape{depth, n}, t, static_cast<std::uint64_t>(k + 99)));
      }
      expect_same_bits(function([](Tensors in) {
                         Tensors out;
                         for (std::size_t k = 0; 2 * k < in.size(); ++k) {
                           const Tensor a = k % 4 == 1 ? transpose(in[2 * k]) : in[2 * k],
                                        b = k % 4 == 2 ? transpose(in[2 * k + 1]) : in[2 * k + 1];
                           const Tensor c = matmul(a, b);
                           out.push_back(k % 2 == 0 ? c * c : c);
                         }
                         return out;
                       }),
                       operands, set);
    }
}

TEST(ExportSizes, ConvolutionsOfAnyGeometryHaveTheirTiles) {
  std::mt19937 random(8);
  const auto any = [&](int least, int most) {
    return std::int64_t{std::uniform_int_distribution<int>(least, most)(random)};
  };
  for (const std::string& set : sets_of_this_machine())
    for (int k = 0; k < 12; ++k) {
      SCOPED_TRACE(text(set, " ", k));
      const std::int64_t channels = any(1, 40), filters = any(1, 70), kernel = k % 2 == 0 ? 3 : any(1, 5),
                         stride = k % 3 == 0 ? 2 : 1, height = any(6, 20), width = any(6, 34);
      const DType t = k % 4 == 3 ? f64 : f32;
      const auto f = function([stride](Tensors in) {
        GradientTape tape({.persistent = true});
        tape.watch(in[0]), tape.watch(in[1]);
        const Tensor y = conv2d(in[0], in[1], {.strides = {stride}, .padding = Padding::same});
        const Tensor loss = reduce_sum(y * y);
        return Tensors{y, tape.gradient(loss, in[0]), tape.gradient(loss, in[1])};
      });
      expect_same_bits(
          f, {drawn({any(1, 5), height, width, channels}, t, 1), drawn({kernel, kernel, channels, filters}, t, 2)},
          set);
    }
}

TEST(ExportSizes, AttentionAndDecompositionsHaveTheirTiles) {
  const auto attend = function([](Tensors in) {
    GradientTape tape({.persistent = true});
    for (const Tensor& x : in) tape.watch(x);
    const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], {.causal = true}), loss = reduce_sum(y * y);
    return Tensors{y, tape.gradient(loss, in[0]), tape.gradient(loss, in[1]), tape.gradient(loss, in[2])};
  });
  const auto few =
      function([](Tensors in) { return Tensors{scaled_dot_product_attention(in[0], in[1], in[2], {.mask = in[3]})}; });
  const auto solved = function([](Tensors in) { return Tensors{solve(in[0], in[1]), inverse(in[0])}; });
  for (const std::string& set : sets_of_this_machine()) {
    SCOPED_TRACE(set);
    for (const DType t : {f32, f64, bf16})
      expect_same_bits(attend, {drawn({2, 2, 77, 24}, t, 1), drawn({2, 2, 90, 24}, t, 2), drawn({2, 2, 90, 24}, t, 3)},
                       set);
    for (const std::int64_t seen : {1, 5, 17, 33, 250, 300}) {
      std::vector<bool> mask(300);
      for (std::int64_t k = 0; k < 300; ++k) mask[static_cast<std::size_t>(k)] = k < seen;
      expect_same_bits(few,
                       {drawn({1, 2, 1, 24}, f32, 1), drawn({1, 2, 300, 24}, f32, 2), drawn({1, 2, 300, 24}, f32, 3),
                        from_values(mask, {1, 1, 1, 300})},
                       set);
    }
    for (const std::int64_t n : {3, 40, 150})
      expect_same_bits(solved, {drawn({n, n}, f64, 4), drawn({n, 5}, f64, 5)}, set);
  }
}

}  // namespace
}  // namespace gradus::sizes_test
