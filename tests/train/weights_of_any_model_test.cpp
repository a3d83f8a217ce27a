/// Keras's files take the weights of any model that the walk over fields finds; layers that are shared have names in
/// them.
#include <gtest/gtest.h>
#include "gradus/formats/hdf5.h"
#include "gradus/base/input_file.h"
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace weights_of_any_model {
using namespace gradus;
using Names = std::vector<std::string>;

const Tensor& input() {
  static const Tensor x = random::normal({3, 4}, {.seed = 1});
  return x;
}

/// Saves, spoils and loads; the paths that the file has.
template <class M> Names saved_paths(M& model, const Tensor& x) {
  const EmptyTestDirectory folder;
  const auto file = folder.path() / "model.weights.h5";
  const Tensor y = model(x);
  save_weights(file, model);
  for (Variable& variable : model.variables()) variable.assign(zeros_like(variable.value()));
  EXPECT_FALSE(bitwise_equal(model(x), y));
  load_weights(file, model);
  EXPECT_TRUE(bitwise_equal(model(x), y));
  Names paths;
  for (const NamedArray& array : parse_hdf5(read_whole_file(file), "model")) paths.push_back(array.name);
  std::ranges::sort(paths);
  return paths;
}
Names kernels_and_biases(const Names& layers) {
  Names paths;
  for (const std::string& layer : layers)
    for (const char* place : {"/vars/0", "/vars/1"}) paths.push_back(layer + place);
  return paths;
}

struct Block {
  Dense first, second;
  explicit Block(int units) : first(units, relu), second(units) {}
  Tensor operator()(Tensor x) const { return second(first(x)); }
};
/// What sorts after `layers` is found by its class there; what lies within a struct by its field.
struct Blocks {
  Block block{4}, wide{4};
  Model<Block> nested{Block(4)};
  Dense out{2}, a{4};
  Tensor operator()(Tensor x) const { return out(a(nested(wide(block(x))))); }
};
TEST(WeightsOfAnyModel, BlocksWithConstructors) {
  Model<Blocks> model;
  EXPECT_EQ(saved_paths(model, input()),
            kernels_and_biases({"a", "block/dense", "block/dense_1", "layers/block/dense", "layers/block/dense_1",
                                "layers/dense", "layers/wide/dense", "layers/wide/dense_1"}));
}

/// Names that are others' too, and keys without a letter or of many.
struct Clashes {
  std::vector<Dense> layers{Dense(4), Dense(4)};
  std::map<std::string, Dense> m{{"", Dense(4)}, {"a//b", Dense(4)}, {"vars", Dense(4)}};
  struct {
    Dense vars{4}, layers{4};
  } x;
  Dense y{4}, z{4};
  Tensor operator()(Tensor t) const {
    for (const Dense& each : layers) t = each(t);
    for (const auto& [key, each] : m) t = each(t);
    return z(y(x.layers(x.vars(t))));
  }
};
TEST(WeightsOfAnyModel, NamesThatClash) {
  Model<Clashes> model;
  EXPECT_EQ(saved_paths(model, input()).size(), 18u);
}

template <int units> struct TwoOf {
  Dense first{units}, second{units};
  Tensor operator()(Tensor x) const { return second(first(x)); }
};
TEST(WeightsOfAnyModel, ModelsWithinASequential) {
  Sequential model{Model<TwoOf<4>>(), Dense(4), Model<TwoOf<4>>(), Sequential{Dense(2)}};
  EXPECT_EQ(saved_paths(model, input()),
            kernels_and_biases({"layers/dense", "layers/sequential/layers/dense", "layers/two_of/first",
                                "layers/two_of/second", "layers/two_of_1/first", "layers/two_of_1/second"}));
}

struct Counting {
  Dense kernel{3};
  Variable scale{constant({0.5, -0.5, 2.0}, f32)};
  std::vector<std::int64_t> state_sizes() const { return {3}; }
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const {
    const Tensor h = tanh(kernel(x) + Tensor(scale) * state[0]);
    return {h, {h}};
  }
};
TEST(WeightsOfAnyModel, CellsOfOnesOwnAndWrappers) {
  Sequential model{RNN(CustomCell(Counting()), {.return_sequences = true}), SpectralNormalization(Dense(2))};
  EXPECT_EQ(saved_paths(model, random::normal({2, 3, 4}, {.seed = 2})),
            (Names{"layers/rnn/cell/kernel/vars/0", "layers/rnn/cell/kernel/vars/1", "layers/rnn/cell/vars/0",
                   "layers/spectral_normalization/layer/vars/0", "layers/spectral_normalization/layer/vars/1",
                   "layers/spectral_normalization/vars/0"}));
}

TEST(WeightsOfAnyModel, SharedLayersAreNamedInAModelsFile) {
  const Dense one(4), other(4);
  Sequential model{shared(one), Dense(4), shared(other)};
  const Tensor y = model(input());
  const EmptyTestDirectory folder;
  save_model(folder.path() / "model.keras", model);
  EXPECT_TRUE(bitwise_equal(load_model(folder.path() / "model.keras")(input()), y));

  Sequential twice{shared(one), shared(one)};
  twice(input());
  expect_says(error_of<InvalidArgument>([&] { save_model(folder.path() / "twice.keras", twice); }),
              "dense: it is there twice");
}

}  // namespace weights_of_any_model
