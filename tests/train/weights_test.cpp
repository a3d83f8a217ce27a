/// Weights from files of other programs: names, types, what does not match; named tensors of every type there and back.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace weights_test {
using namespace gradus;
using Names = std::vector<std::string>;
namespace fs = std::filesystem;

/// Of safetensors and npz.
struct Format {
  std::string name;
  void (*save)(const fs::path&, const NamedTensors&);
  NamedTensors (*load)(const fs::path&);
  LoadedWeights (*load_into)(const fs::path&, Module&, LoadWeightsOptions);
};
const Format formats[] = {{"safetensors", save_safetensors, load_safetensors, load_safetensors},
                          {"npz", save_npz, load_npz, load_npz}};

class Weights : public testing::TestWithParam<Format> {
 protected:
  Weights() { model.build({f32, {any_size, 3}}); }
  void write(const NamedTensors& arrays) { GetParam().save(file, arrays); }
  LoadedWeights load(LoadWeightsOptions options = {}) { return GetParam().load_into(file, model, std::move(options)); }
  std::string refused(LoadWeightsOptions options = {}) {
    const Tensor before = model.variables()[0].value();
    const std::string message = error_of<InvalidArgument>([&] { load(options); });
    EXPECT_TRUE(bitwise_equal(model.variables()[0].value(), before)) << "nothing changes";
    return message;
  }
  Tensor value(int i) { return model.variables()[static_cast<std::size_t>(i)].value(); }

  const EmptyTestDirectory folder;
  const fs::path file = folder.path() / "weights";
  Sequential model{Dense(2), Dense(1)};  // dense/kernel [3,2], dense/bias [2], dense_1/kernel [2,1], dense_1/bias [1]
};

NamedTensors whole(DType t = f32) {
  return {{"dense/kernel", full({3, 2}, 1.5, t)},
          {"dense/bias", full({2}, 2.5, t)},
          {"dense_1/kernel", full({2, 1}, 3.5, t)},
          {"dense_1/bias", full({1}, 4.5, t)}};
}

TEST_P(Weights, FloatsAreCast) {
  for (const DType t : {f64, f32, f16, bf16}) {
    if (GetParam().name == "npz" && t == bf16) continue;  // NumPy has none
    write(whole(t));
    EXPECT_TRUE(load().is_complete()) << t;
    EXPECT_EQ(value(0).dtype(), f32);
    EXPECT_TRUE(bitwise_equal(value(0), full({3, 2}, 1.5, f32))) << t;
    EXPECT_TRUE(bitwise_equal(value(3), full({1}, 4.5, f32))) << t;
  }
  NamedTensors integers = whole();
  integers[0].second = ones({3, 2}, i32);
  write(integers);
  expect_says(refused(), "dense/kernel: expected f32 (3, 2), the file has i32 (3, 2)");
}

TEST_P(Weights, AllThatDoesNotMatchIsTold) {
  write({{"dense/kernel", ones({2, 3})}, {"dense/bias", ones({2})}, {"head/kernel", ones({2})}});
  const std::string message = refused();
  expect_says(message, "dense/kernel: expected f32 (3, 2), the file has f32 (2, 3)");
  expect_says(message, "there is no array dense_1/kernel");
  expect_says(message, "there is no array dense_1/bias");
  expect_says(message, "no variable belongs to the array head/kernel");
  expect_says(message, "{.strict = false}");
  const LoadedWeights told = load({.strict = false});
  EXPECT_EQ(told.loaded, (Names{"dense/bias"}));
  EXPECT_EQ(told.missing, (Names{"dense_1/kernel", "dense_1/bias"}));
  EXPECT_EQ(told.unmatched, (Names{"head/kernel"}));
  ASSERT_EQ(told.unlike.size(), 1u);
  EXPECT_TRUE(bitwise_equal(value(1), ones({2})));
}

TEST_P(Weights, NoneThatMatchesIsAnErrorAnyway) {
  write({{"encoder.0.weight", ones({3, 2})}, {"encoder.0.bias", ones({2})}});
  for (const bool strict : {true, false}) {
    const std::string message = refused({.strict = strict});
    expect_says(message, "none of its arrays has the name of a variable of sequential");
    expect_says(message, "`encoder.0.bias`, `encoder.0.weight`");
    expect_says(message, "`dense/kernel`, `dense/bias`, `dense_1/kernel`, `dense_1/bias`");
    expect_says(message, ".rename");
  }
}

TEST_P(Weights, ArraysAreRenamed) {
  NamedTensors arrays;
  for (const auto& [name, value] : whole()) arrays.emplace_back("net." + name, value);
  arrays[3].first = "net.last";
  write(arrays);
  EXPECT_TRUE(load({.rename = {{"net.", ""}, {"net.last", "dense_1/bias"}}}).is_complete());
  EXPECT_TRUE(bitwise_equal(value(3), full({1}, 4.5)));
  const auto strip = [](const std::string& name) { return name == "net.last" ? "dense_1/bias" : name.substr(4); };
  EXPECT_TRUE(
      load({.rename = Renaming([&](const std::string& name) -> std::string { return strip(name); })}).is_complete());
  expect_says(refused({.rename = {{"net.", ""}, {"net.last", "dense/bias"}}}),
              "`net.dense/bias` and `net.last` would both be `dense/bias`");
  const LoadedWeights told = load({.strict = false, .rename = {{"net.", ""}}});
  EXPECT_EQ(told.unmatched, (Names{"net.last, renamed to last"}));
}

TEST_P(Weights, NamedTensorsOfEveryType) {
  for (const DType t : {f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean}) {
    if (GetParam().name == "npz" && t == bf16) continue;
    const Tensor x = cast(constant({{0, 1, 1}, {1, 0, 1}}), t);
    write({{"a/b", x}, {"scalar", cast(constant(1), t)}, {"empty", zeros({0, 3}, t)}});
    const NamedTensors back = GetParam().load(file);
    ASSERT_EQ(back.size(), 3u) << t;
    for (const auto& [name, value] : back) {
      EXPECT_EQ(value.dtype(), t) << name;
      if (name == "a/b") { EXPECT_TRUE(bitwise_equal(value, x)) << t; }
      if (name == "empty") { EXPECT_EQ(value.shape(), (Shape{0, 3})); }
    }
  }
  EXPECT_THROW(write({{"twice", ones({2})}, {"twice", ones({2})}}), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Formats, Weights, testing::ValuesIn(formats),
                         [](const auto& each) { return each.param.name; });

/// A fixed loss scale by the policy, as Keras's LossScaleOptimizer without `dynamic`.
TEST(FixedLossScale, StaysThroughATraining) {
  const Policy fixed{
      .compute = f16, .variable = f32, .scale_loss = true, .loss_scale = {.initial = 256, .dynamic = false}};
  Sequential model({Dense(4, tanh), Dense(1)}, {.policy = fixed});
  Adam optimizer;
  const Tensor x = random::normal({32, 3}, {.seed = 1});
  const auto dataset = data::from_tensor_slices(x, reduce_sum(x, {.axis = {1}, .keepdims = true})).batch(8);
  const History history = fit(model, optimizer, MeanSquaredError(), dataset, {.epochs = 20, .verbose = false});
  EXPECT_EQ(model.loss_scale(), 256);
  EXPECT_LT(history.loss.back(), history.loss.front());
  expect_says(error_of<InvalidArgument>([] {
                Dense layer(2);
                layer.set_policy({f16, f32, true, {.initial = 0}});
              }),
              "initial");
}

/// What the library compiles has the signature of the data, which nobody can write: its words are about those.
TEST(Words, OfManyVariantsSayWhatTheirUserCanChange) {
  const auto refused = [](FunctionOptions options) {
    options.max_variants = 2;
    const auto scaled = function([](Tensor x, double by) { return x * by; }, options);
    scaled(ones({3}), 1), scaled(ones({3}), 2);
    return error_of<ResourceExhausted>([&] { scaled(ones({3}), 3); });
  };
  const std::vector<Spec> open{{f32, {any_size}}};
  expect_says(refused({}), "mark sizes that vary as any_size in input_signature");
  for (const std::string& message :
       {refused({.input_signature = open}), refused({.input_signature = open, .fixes_sizes = true})}) {
    expect_says(message, "raise max_variants");
    EXPECT_EQ(message.find("any_size in input_signature"), std::string::npos) << message;
  }
  expect_says(refused({.input_signature = open, .fixes_sizes = true}), "padded_batch");
}

}  // namespace weights_test
