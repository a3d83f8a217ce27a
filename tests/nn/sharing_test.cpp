/// shared(): the same layer in several models; what was copied says so.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace sharing_test {
using namespace gradus;
using Names = std::vector<std::string>;

Names names_of(const Variables& variables) {
  Names names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}
const Tensor& noise() {
  static const Tensor x = random::normal({8, 3}, {.seed = 1});
  return x;
}

struct Gan {
  Sequential generator{Dense(5, tanh), Dense(4)}, discriminator{Dense(6, tanh), Dense(1)};
};

TEST(Shared, TheSameLayersAreInBothModels) {
  Gan parts;
  Sequential gan{shared(parts.generator), shared(parts.discriminator)};
  gan(noise());
  const Variables all = gan.variables(), own = parts.generator.variables() + parts.discriminator.variables();
  ASSERT_EQ(all.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(all[i].cell(), own[i].cell());
  EXPECT_EQ(gan.variables().parameters(), own.parameters());
  SGD optimizer({.learning_rate = 0.1});
  const Tensor before = parts.generator(noise());
  fit(gan, optimizer, MeanSquaredError(), data::from_tensor_slices(noise(), ones({8, 1})).batch(4),
      {.epochs = 1, .verbose = false});
  EXPECT_FALSE(bitwise_equal(parts.generator(noise()), before));
  EXPECT_TRUE(bitwise_equal(gan(noise()), parts.discriminator(parts.generator(noise()))));
}

TEST(Shared, EachModelHasNamesOfItsOwn) {
  Gan parts;
  Sequential gan{shared(parts.generator), shared(parts.discriminator)};
  gan(noise());
  const Names own{"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"};
  EXPECT_EQ(names_of(parts.generator.variables()), own);
  Names of_gan;
  for (const char* part : {"sequential/", "sequential_1/"})
    for (const std::string& name : own) of_gan.push_back(part + name);
  EXPECT_EQ(names_of(gan.variables()), of_gan);
  EXPECT_EQ(names_of(parts.discriminator.variables()), own);

  const EmptyTestDirectory folder;
  save_safetensors(folder.path() / "gan", gan);
  save_safetensors(folder.path() / "generator", parts.generator);
  Gan fresh;
  fresh.generator(noise());
  load_safetensors(folder.path() / "generator", fresh.generator);
  EXPECT_TRUE(bitwise_equal(fresh.generator(noise()), parts.generator(noise())));
  Sequential fresh_gan{shared(fresh.generator), shared(fresh.discriminator)};
  fresh_gan(noise());
  load_safetensors(folder.path() / "gan", fresh_gan);
  EXPECT_TRUE(bitwise_equal(fresh_gan(noise()), gan(noise())));
}

TEST(Shared, AModelOfAStructTakesThemToo) {
  struct Net {
    Sequential generator, discriminator;
    Tensor operator()(const Tensor& x) const { return discriminator(generator(x)); }
  };
  Gan parts;
  Model<Net> gan(Net{shared(parts.generator), shared(parts.discriminator)});
  gan(noise());
  EXPECT_EQ(gan.variables()[0].cell(), parts.generator.variables()[0].cell());
  EXPECT_EQ(names_of(gan.variables())[4], "discriminator/dense/kernel");
  EXPECT_EQ(names_of(parts.discriminator.variables())[0], "dense/kernel");
  const Model<Net> copy = gan;  // shares nothing with anybody
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NE(copy.variables()[i].cell(), gan.variables()[i].cell());
  EXPECT_EQ(names_of(copy.variables()), names_of(gan.variables()));
  const Sequential value = gan->generator;  // a field is a value
  EXPECT_NE(value.variables()[0].cell(), gan.variables()[0].cell());
}

TEST(Shared, TwiceInOneModelCountsOnceAndStaysSoInACopy) {
  Dense layer(3, tanh, {.kernel_regularizer = regularizers::L2(0.5), .activity_regularizer = regularizers::L2(0.5)});
  Sequential model{shared(layer), Dense(3), shared(layer)};
  model(noise());
  EXPECT_EQ(names_of(model.variables()), (Names{"dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"}));
  EXPECT_EQ(model.losses().size(), 3u);  // one penalty on the kernel, two of what it gave
  EXPECT_NE(model.summary().find("the same"), std::string::npos) << model.summary();
  EXPECT_NE(model.summary().find("parameters: 24"), std::string::npos) << model.summary();
  const Sequential copy = model;
  EXPECT_EQ(copy.variables().size(), 4u);
  EXPECT_NE(copy.variables()[0].cell(), model.variables()[0].cell());
  EXPECT_TRUE(bitwise_equal(copy(noise()), model(noise())));
  const Sequential smaller = low_rank(model, {.rank = 1});
  EXPECT_EQ(smaller.variables().size(), 6u);
  expect_says(error_of<InvalidArgument>([&] { prune_channels(model, 0.5); }), "in the model twice");
}

/// Layers that live for a moment only are not taken for those before them at the same address.
TEST(Shared, CopiesKeepApartWhatDiesMeanwhile) {
  Sequential model{Dense(3), Dense(4), Dense(3), Dense(5), Dense(3)};
  model(noise());
  for (int i = 0; i < 300; ++i) {
    const Sequential smaller = low_rank(model, {.rank = 1});
    ASSERT_EQ(smaller(noise()).shape(), (Shape{8, 3}));
  }
}

TEST(Shared, OneLayerInTwoModelsOfSeveralLayers) {
  Embedding table(10, 4);
  struct Net {
    Embedding embed;
    Dense out{2};
    Tensor operator()(const Tensor& x) const { return out(embed(x)); }
  };
  Model<Net> first(Net{.embed = shared(table)}), second(Net{.embed = shared(table)});
  const Tensor words = constant({{1, 2}, {3, 4}});
  first(words), second(words);
  EXPECT_EQ(first.variables()[0].cell(), second.variables()[0].cell());
  EXPECT_NE(first.variables()[1].cell(), second.variables()[1].cell());
  EXPECT_EQ(names_of(first.variables())[0], "embed/embeddings");
  EXPECT_EQ(first.summary().find("is a copy of"), std::string::npos);
}

TEST(Shared, AHandleIsTheSameLayerUntilAModelTakesIt) {
  Dense layer(2);
  const Dense handle = shared(layer), copy_of_handle = handle, copy = layer;
  layer(noise());
  EXPECT_EQ(&copy_of_handle.layer_behind(), &layer.layer_behind());
  EXPECT_NE(&copy.layer_behind(), &layer.layer_behind());
  std::vector<Module> list{shared(layer), Dense(2)};
  const Sequential model(list), another(list);
  EXPECT_EQ(model.variables()[0].cell(), layer.variables()[0].cell());
  EXPECT_EQ(another.variables()[0].cell(), layer.variables()[0].cell());
}

TEST(Shared, WrappersShareOrSayThatTheyDoNot) {
  Dense layer(3);
  const TimeDistributed every(shared(layer));
  every(random::normal({2, 4, 3}));
  EXPECT_EQ(every.variables()[0].cell(), layer.variables()[0].cell());
  const TimeDistributed copy = every;
  EXPECT_NE(copy.variables()[0].cell(), layer.variables()[0].cell());
  const LSTM memory(3);
  expect_says(error_of<InvalidArgument>([&] { Bidirectional both(shared(memory)); }), "shares none");
}

TEST(Summary, SaysWhatIsACopy) {
  Gan parts;
  parts.generator.set_name("generator");
  Sequential gan{parts.generator, parts.discriminator};
  const std::string summary = gan.summary();
  expect_says(summary, "generator (sequential) is a copy of generator (sequential)");
  expect_says(summary, "shared(...)");
  Sequential fresh{Sequential{Dense(2)}, Dense(3)};
  EXPECT_EQ(fresh.summary().find("is a copy"), std::string::npos) << fresh.summary();
  const Sequential best = fresh;  // meant to be one
  EXPECT_EQ(best.summary().find("is a copy"), std::string::npos) << best.summary();
  struct Net {
    Dense layer;
    Tensor operator()(const Tensor& x) const { return layer(x); }
  };
  Dense layer(2);
  const Model<Net> first(Net{layer}), second(Net{layer});
  expect_says(first.summary(), "layer (dense) is a copy of dense");
  expect_says(second.summary(), "layer (dense) is a copy of dense");
}

}  // namespace sharing_test
