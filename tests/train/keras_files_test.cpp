/// Keras's own files are read, give Keras's outputs, and come back as they were written; no damage passes or harms.
/// tests/train/keras/make_files.py made the files. With GRADUS_WRITTEN what is written stays there, for
/// keras/check_files.py.
#include "gradus/train/keras_files.h"
#include <gtest/gtest.h>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include "gradus/formats/npz.h"
#include "gradus/base/input_file.h"
#include "gradus/formats/zip.h"
#include "gradus/function/function.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/attention.h"
#include "gradus/nn/augmentation.h"
#include "gradus/nn/cells.h"
#include "gradus/nn/dot_attention.h"
#include "gradus/nn/embedding.h"
#include "gradus/nn/model.h"
#include "gradus/nn/normalization.h"
#include "gradus/nn/pools.h"
#include "gradus/nn/preprocessing.h"
#include "gradus/ops/activations.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/train/keras_config.h"
#include "tests/errors.h"
#include "tests/formats/deflated_archive.h"
#include "tests/train/checkpoint_samples.h"

namespace gradus::keras_files_test {
namespace {

namespace fs = std::filesystem;
const fs::path stored = GRADUS_KERAS_FILES;

Tensor array(const std::string& name, const std::string& which) {
  for (auto& [key, value] : load_npz(stored / (name + ".npz")))
    if (key == which) return value;
  throw InternalError("there is no " + which + " in " + name);
}

class KerasFiles : public ::testing::Test {
 protected:
  KerasFiles() : temporary_("keras_files") {
    const char* kept = std::getenv("GRADUS_WRITTEN");
    directory = kept ? fs::path(kept) : temporary_.path();
    fs::create_directories(directory);
  }
  fs::path directory;

 private:
  TestDirectory temporary_;
};

void expect_output(const Module& model, const std::string& name, double tolerance = 1e-5) {
  const Tensor y = cast(model(array(name, "x"), inference), f32), wanted = array(name, "y");
  ASSERT_EQ(y.shape(), wanted.shape()) << name;
  EXPECT_LE(max_abs_difference(y, wanted), tolerance) << name;
}

TEST_F(KerasFiles, ModelsOfKerasGiveItsOutputs) {
  for (const auto& [name, tolerance] : {std::pair{"images", 1e-5},
                                        {"sequences", 1e-5},
                                        {"shapes", 1e-5},
                                        {"masked", 1e-5},
                                        {"mixed", 2e-3},
                                        {"cells", 1e-5},
                                        {"augmented", 1e-5},
                                        {"chain", 1e-5}}) {
    const Sequential model = load_model(stored / text(name, ".keras"));
    expect_output(model, name, tolerance);
    const fs::path again = directory / text(name, ".keras");
    save_model(again, model);
    const Sequential read = load_model(again);
    const Tensor x = array(name, "x");
    EXPECT_TRUE(bitwise_equal(model(x, inference), read(x, inference))) << name;
    const std::vector<std::byte> bytes = read_whole_file(again);
    save_model(again, read);
    EXPECT_EQ(bytes, read_whole_file(again)) << name << ": the same bytes each time";
  }
}

TEST_F(KerasFiles, OptionsArriveThatOutputsDoNotShow) {
  const Sequential images = load_model(stored / "images.keras"), mixed = load_model(stored / "mixed.keras");
  EXPECT_EQ(images.variables()[0].name(), "first/kernel");
  EXPECT_FALSE(images.variables()["first/kernel"].trainable());
  EXPECT_TRUE(images.variables()["dense/kernel"].trainable());
  EXPECT_EQ(mixed.layer(0).layer_behind().policy(), mixed_float16);
  EXPECT_EQ(mixed.layer(1).layer_behind().policy(), float32);
  EXPECT_EQ(mixed.loss_scale(), 32768);
}

TEST_F(KerasFiles, MasksAndPenaltiesToo) {
  const Sequential model = load_model(stored / "masked.keras");
  const Variables variables = model.variables();
  double l1 = 0;
  for (const float value : variables[0].value().to_vector<float>()) l1 += std::abs(value);
  EXPECT_NEAR(model.layer_behind().penalties()[0].item(), 0.03 * l1, 1e-5 * l1);
  EXPECT_EQ(model.layer_behind().penalties().size(), 3u);
  const auto factors = factors_of(regularizers::L1L2(0.25, 1e-4));
  ASSERT_TRUE(factors);
  EXPECT_EQ(factors->l1, 0.25);
  EXPECT_EQ(factors->l2, 1e-4);
  EXPECT_FALSE(factors_of(regularizers::OrthogonalRegularizer()));
  EXPECT_FALSE(factors_of([](Tensor t) { return reduce_max(abs(t)); }));
}

/// Ranges and modes are told apart by what a second file says.
TEST_F(KerasFiles, WhatActsInTrainingArrives) {
  Sequential model{RandomFlip(FlipMode::vertical),
                   RandomTranslation(0.1, {-0.2, 0.3}, {.fill_mode = FillMode::nearest}),
                   RandomCrop(4, 3),
                   RandomZoom({-0.2, 0.1}, 0.3),
                   RandomContrast({-0.2, 0.4}, {.value_range = {0, 1}}),
                   RandomBrightness(0.2)};
  model.build({f32, {any_size, 6, 6, 2}});
  const std::string config = config_of_model(model);
  for (const char* each :
       {R"("mode":"vertical")", R"("height_factor":[-0.1,0.1],"width_factor":[-0.2,0.3],"fill_mode":"nearest")",
        R"("height":4,"width":3)", R"("factor":[0.2,0.4],"value_range":[0.0,1.0])"})
    expect_says(config, each);
  ConfiguredModel read = model_of_config(config, "it", {});
  read.model.build(read.input);
  EXPECT_EQ(config_of_model(read.model), config);
  const Tensor x = random::uniform({3, 6, 6, 2}, {.seed = 4});
  set_seed(7);
  const Tensor wanted = model(x, training);
  set_seed(7);
  EXPECT_TRUE(bitwise_equal(read.model(x, training), wanted));
  Sequential darker{RandomContrast({0.1, 0.3})};  // never less contrast: Keras has no such range
  darker.build({f32, {any_size, 6, 6, 2}});
  expect_says(error_of<InvalidArgument>([&] { save_model(directory / "darker.keras", darker); }),
              "Keras has no layer like this random_contrast");
}

TEST_F(KerasFiles, LayersOfVolumes) {
  Sequential model{ConvLSTM3D(2, {1, 3, 2}, {.strides = {1, 1, 2}, .padding = Padding::same}), ZeroPadding3D({0, 1, 2}),
                   Cropping3D({1, 0, 1})};
  model.build({f32, {any_size, 2, 3, 4, 5, 2}});
  save_model(directory / "volumes.keras", model);
  const Sequential read = load_model(directory / "volumes.keras");
  EXPECT_EQ(config_of_model(read), config_of_model(model));
  const Tensor x = random::uniform({2, 2, 3, 4, 5, 2}, {.seed = 4});
  EXPECT_TRUE(bitwise_equal(read(x, inference), model(x, inference)));
}

TEST_F(KerasFiles, PenaltiesOfCellsAndActivities) {
  const Sequential model = load_model(stored / "cells.keras");
  EXPECT_EQ(model.layer_behind().penalties().size(), 3u) << "EinsumDense, GRUCell and ConvLSTM1D have one each";
  EXPECT_TRUE(model.layer_behind().call_losses().empty());
  model(array("cells", "x"), inference);
  EXPECT_EQ(model.layer_behind().call_losses().size(), 1u) << "that of ActivityRegularization";
}

TEST_F(KerasFiles, OnlyChainsOfAFunctional) {
  const std::string message = error_of<DataError>([&] { load_model(stored / "branches.keras"); });
  expect_says(message, "joined (Concatenate): ");
  expect_says(message, "this Functional is no chain of layers; load_functional reads it");
  const auto chain = [](const std::string& call, const std::string& outputs) {
    return R"({"class_name": "Functional", "config": {"layers": [
      {"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [null, 4]}, "inbound_nodes": []},
      {"class_name": "Dense", "name": "d", "config": {"name": "d", "units": 2}, "inbound_nodes": )" +
           call + R"(}], "output_layers": )" + outputs + "}}";
  };
  const auto from = [](const std::string& name, const std::string& options) {
    return R"({"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": [")" + name +
           R"(", 0, 0]}}], "kwargs": {)" + options + "}}";
  };
  EXPECT_NO_THROW(model_of_config(chain("[" + from("in", R"("mask": null)") + "]", R"([["d", 0, 0]])"), "it", {}));
  const std::vector<std::pair<std::string, std::string>> refused{
      {chain("[" + from("other", "") + "]", R"(["d", 0, 0])"), R"(d (Dense): it takes ["other",0,0], not)"},
      {chain("[" + from("in", "") + "," + from("in", "") + "]", R"(["d", 0, 0])"), "it is called 2 times"},
      {chain("[" + from("in", R"("training": true)") + "]", R"(["d", 0, 0])"), "it is called with `training` true"},
      {chain(R"([{"args": []}])", R"(["d", 0, 0])"), "d (Dense): it takes several inputs"},
      {chain("[" + from("in", "") + "]", R"([["in", 0, 0], ["d", 0, 0]])"), "the Functional gives"}};
  for (const auto& [config, problem] : refused)
    expect_says(error_of<DataError>([&] { model_of_config(config, "it", {}); }), problem);
}

std::vector<Tensor> arrays(const std::string& name, const std::string& letter) {
  std::map<std::string, Tensor> all;
  for (auto& [key, value] : load_npz(stored / (name + ".npz"))) all.emplace(key, value);
  std::vector<Tensor> found;
  while (all.contains(letter + std::to_string(found.size())))
    found.push_back(all[letter + std::to_string(found.size())]);
  return found;
}
void expect_outputs(const Functional& model, const std::string& name) {
  const std::vector<Tensor> wanted = arrays(name, "y"), given = model(arrays(name, "x"), inference);
  ASSERT_EQ(given.size(), wanted.size()) << name;
  ASSERT_EQ(model.output_names().size(), wanted.size()) << name;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(given[i].shape(), wanted[i].shape()) << name << ' ' << i << ' ' << model.output_names()[i];
    EXPECT_LE(max_abs_difference(cast(given[i], f32), cast(wanted[i], f32)), 1e-5)
        << name << ' ' << i << ' ' << model.output_names()[i];
  }
}

TEST_F(KerasFiles, GraphsOfKerasGiveItsOutputs) {
  for (const char* name : {"branches", "residual", "translation", "formulas"})
    expect_outputs(load_functional(stored / (std::string(name) + ".keras")), name);
  const Functional model = load_functional(stored / "translation.keras");
  EXPECT_EQ(model.input_names(), (std::vector<std::string>{"words", "other", "number"}));
  EXPECT_EQ(model.output_names(), (std::vector<std::string>{"angle", "joint", "words"})) << "keys in their order";
  EXPECT_EQ(model.input_specs()[0], (Spec{i32, {any_size, 6}}));
  const Functional residual = load_functional(stored / "residual.keras");
  EXPECT_EQ(residual.variables().size() - residual.trainable_variables().size(), 4u + 4u * 1u)
      << "statistics of three normalizations, and two more of the frozen one";
}

TEST_F(KerasFiles, AGraphIsAModel) {
  Functional model = load_functional(stored / "residual.keras");
  const Tensor x = arrays("residual", "x")[0], y = arrays("residual", "y")[0];
  EXPECT_LE(max_abs_difference(model(x, inference), y), 1e-5) << "one input, one output";
  const auto compiled = function([&](const Tensor& images) { return model(images, inference); });
  EXPECT_EQ(max_abs_difference(compiled(x), model(x, inference)), 0);
  Functional copy = model;
  for (Variable& variable : copy.trainable_variables()) variable.assign(zeros_like(variable.value()));
  expect_outputs(model, "residual");
  EXPECT_GT(max_abs_difference(copy(x, inference), y), 1e-3) << "a copy has variables of its own";
  save_weights(directory / "graph.weights.h5", model);
  load_weights(directory / "graph.weights.h5", copy);
  EXPECT_EQ(max_abs_difference(copy(x, inference), model(x, inference)), 0);
  GradientTape tape;
  const Tensor loss = reduce_sum(square(model(x, training)));
  const Gradients gradients = tape.gradient(loss, model.trainable_variables());
  for (std::size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(gradients[i].defined()) << i;
  expect_says(error_of<InvalidArgument>([&] { model(std::vector<Tensor>{x, x}); }), "2 inputs were given, expected 1");
  expect_says(error_of<InvalidArgument>([&] { model(std::vector<Tensor>{zeros({2, 8, 7, 3})}); }),
              "is f32[2,8,7,3], expected");
  const Functional several = load_functional(stored / "translation.keras");
  expect_says(error_of<InvalidArgument>([&] { several(arrays("translation", "x")[0]); }),
              "it does not make one tensor of one tensor");
  expect_output(load_functional(stored / "images.keras"), "images");
  expect_output(load_functional(stored / "chain.keras"), "chain");
}

/// A graph of `layers` behind an input "in" of 4 numbers.
std::string graph_with(const std::string& layers, const std::string& outputs = R"(["d", 0, 0])") {
  return R"({"class_name": "Functional", "config": {"name": "f", "layers": [
    {"class_name": "InputLayer", "name": "in", "config": {"batch_shape": [null, 4]}, "inbound_nodes": []},)" +
         layers + R"(], "input_layers": [["in", 0, 0]], "output_layers": )" + outputs + "}}";
}
/// A call with these tensors, numbers and lists.
std::string called_with(const std::string& arguments, const std::string& options = "") {
  return R"("inbound_nodes": [{"args": [)" + arguments + R"(], "kwargs": {)" + options + "}}]";
}
std::string tensor_of(const std::string& layer, int result = 0) {
  return R"({"class_name": "__keras_tensor__", "config": {"keras_history": [")" + layer + R"(", 0, )" +
         std::to_string(result) + "]}}";
}
std::string dense_named(const std::string& name, const std::string& call) {
  return R"({"class_name": "Dense", "name": ")" + name + R"(", "config": {"name": ")" + name + R"(", "units": 2}, )" +
         call + "}";
}
std::string op_named(const std::string& kind, const std::string& config, const std::string& call) {
  return R"({"module": "keras.src.ops.numpy", "class_name": ")" + kind + R"(", "name": "d", "config": {"name": "d")" +
         config + "}, " + call + "}";
}

TEST_F(KerasFiles, GraphsListAllThatIsNotKnown) {
  const std::string in = tensor_of("in");
  const auto message = [](const std::string& config) {
    return error_of<DataError>([&] { graph_model_of_config(config, "it", {}); });
  };
  EXPECT_NO_THROW(graph_model_of_config(graph_with(dense_named("d", called_with(in, R"("mask": null)"))), "it", {}));
  const std::vector<std::pair<std::string, std::string>> refused{
      {graph_with(dense_named("d", called_with(tensor_of("other")))),
       "d (Dense): it takes a tensor that no layer gives"},
      {graph_with(dense_named("d", called_with(tensor_of("e"))) + "," + dense_named("e", called_with(tensor_of("d")))),
       "(Dense): it takes a tensor that no layer gives"},
      {graph_with(dense_named("d", called_with(in)) + "," + dense_named("d", called_with(in))),
       "two layers have the name d"},
      {graph_with(dense_named("d", called_with(in + "," + in))), "d (Dense): it takes 2 inputs, expected one"},
      {graph_with(dense_named("d", called_with(in, R"("wild": 3)"))), "d (Dense): it is called with `wild`"},
      {graph_with(dense_named("d", called_with(in, R"("training": "yes")"))), R"(it is called with `training` "yes")"},
      {graph_with(dense_named("d", R"("inbound_nodes": [])")), "d (Dense): it is never called"},
      {graph_with(dense_named("d", called_with(in)), R"([["d", 1, 0]])"),
       R"(output d is ["d",1,0], which no layer gives)"},
      {graph_with(dense_named("d", called_with(in)), "[]"), "a Functional without outputs"},
      {graph_with(R"({"class_name": "Lambda", "name": "d", "config": {"name": "d", "function": "code"}, )" +
                  called_with(in) + "}"),
       "d (Lambda): a Lambda is code of Python, which is not run"},
      {graph_with(op_named("Hologram", "", called_with(in))), "d (Hologram): there is no such op"},
      {graph_with(op_named("Add", "", called_with(in + R"(, "word")"))),
       "d (Add): it is called with other arguments than two tensors"},
      {graph_with(op_named("Mean", R"(, "axis": 99)", called_with(in))), "option `axis` is 99, which is no axis"},
      {graph_with(op_named("Mean", R"(, "wild": 3)", called_with(in))), "option `wild` is 3; there is none"},
      {graph_with(
           op_named("GetItem", "", called_with(in + R"(, [{"class_name": "__slice__", "config": {"step": 0}}])"))),
       "a slice whose step is no integer"},
      {graph_with(op_named(
           "Add", "",
           called_with(in +
                       R"(, {"class_name": "__tensor__", "config": {"value": [[1], [2, 3]], "dtype": "float32"}})"))),
       "d (Add): its constant is no array of numbers of one dtype"},
      {graph_with(
           R"({"class_name": "MultiHeadAttention", "name": "d", "config": {"name": "d", "num_heads": 2, "key_dim": 2}, )" +
           called_with(in) + "}"),
       "d (MultiHeadAttention): expected a query and a value"},
      {R"({"class_name": "Functional", "config": {"layers": []}})", "a Functional without layers"},
      {R"({"class_name": "Net", "config": {}})", R"(the model is "Net", expected a Functional or a Sequential)"}};
  for (const auto& [config, problem] : refused) expect_says(message(config), problem);
  std::string calls;
  for (int i = 0; i < 6000; ++i) calls += R"({"args": [)" + in + R"(], "kwargs": {}},)";
  calls.pop_back();
  expect_says(message(graph_with(dense_named("d", R"("inbound_nodes": [)" + calls + "]"))), "more than 5000 calls");
}

struct Scores {
  AdditiveAttention additive;
  Attention dot{{.use_scale = true, .score_mode = ScoreMode::concat}};
  RNN cells{{LSTMCell(4), LSTMCell(2)}};
  Tensor operator()(Tensor x) const { return cells(dot(x, additive(x, x))); }
};

TEST_F(KerasFiles, WeightsOfAttentionsAndCells) {
  Model<Scores> model;
  model.build({f32, {any_size, any_size, 4}});
  load_weights(stored / "scores.weights.h5", model);
  expect_output(model, "scores");
  save_weights(directory / "scores.weights.h5", model);
  Model<Scores> other;
  other.build({f32, {any_size, any_size, 4}});
  load_weights(directory / "scores.weights.h5", other);
  expect_output(other, "scores");
}

struct Net {
  Dense embed{8, relu};
  MultiHeadAttention attention{2, 4};
  GroupedQueryAttention grouped{4, 4, 2};
  LayerNormalization norm;
  Sequential head{Dense(6, tanh), Dense(2)};
  Tensor operator()(Tensor x) const {
    const Tensor embedded = embed(x), h = embedded + attention(embedded);
    return head(norm(h + grouped(h)));
  }
};

TEST_F(KerasFiles, WeightsOfAModelOfOnesOwn) {
  Model<Net> model;
  model.build({f32, {any_size, any_size, 3}});
  load_weights(stored / "net.weights.h5", model);
  expect_output(model, "net");
  save_weights(directory / "net.weights.h5", model);
  Model<Net> other;
  other.build({f32, {any_size, any_size, 3}});
  load_weights(directory / "net.weights.h5", other);
  for (std::size_t i = 0; i < model.variables().size(); ++i)
    EXPECT_TRUE(bitwise_equal(model.variables()[i].value(), other.variables()[i].value()));
}

TEST_F(KerasFiles, VariablesOf16Bits) {
  Sequential model{Dense(3, linear, {.dtype = bf16}), Dense(2, linear, {.dtype = f16})};
  model.build({f32, {any_size, 4}});
  load_weights(stored / "narrow.weights.h5", model);
  expect_output(model, "narrow", 2e-2);
  const Tensor before = model.variables()[0].value();
  save_weights(directory / "narrow.weights.h5", model);
  model.variables()[0].assign(zeros({4, 3}, bf16));
  load_weights(directory / "narrow.weights.h5", model);
  EXPECT_TRUE(bitwise_equal(model.variables()[0].value(), before));
}

TEST_F(KerasFiles, WeightsOfAWholeModelToo) {
  const Sequential whole = load_model(stored / "mixed.keras");
  Sequential model({Dense(5, relu), Dense(3)});
  model.build({f32, {any_size, 6}});
  load_weights(stored / "mixed.keras", model);
  EXPECT_TRUE(bitwise_equal(model.variables()[0].value(), whole.variables()[0].value()));
}

TEST_F(KerasFiles, ActivationsAreKerass) {
  const Tensor x = array("activations", "x");
  int compared = 0;
  for (const auto& [name, wanted] : load_npz(stored / "activations.npz")) {
    if (name == "x") continue;
    const auto found = activation_named(name);
    ASSERT_TRUE(found) << name;
    EXPECT_LE(max_abs_difference((*found)(x), wanted), 1e-5) << name;
    EXPECT_EQ(name_of(*found), name == "celu" ? "elu" : name) << "which is celu of 1";
    ++compared;
  }
  EXPECT_EQ(compared, 27);
  EXPECT_EQ(name_of(Activation([](Tensor t) { return relu(t); })), "relu") << "it computes the same";
  EXPECT_FALSE(name_of(Activation([](Tensor t) { return minimum(relu(t), 1e20); })));
  EXPECT_FALSE(name_of(Activation([](Tensor t) { return leaky_relu(t, 0.1); })));
}

TEST_F(KerasFiles, ListsAllThatKerasLacks) {
  Sequential model{Dense(4, [](Tensor x) { return x * 3; }, {.name = "odd"}),
                   Lambda([](Tensor x) { return x; }, "mine"), Dense(2, relu)};
  const fs::path file = directory / "refused.keras";
  expect_says(error_of<InvalidArgument>([&] { save_model(file, model); }), "is not built");
  model.build({f32, {any_size, 4}});
  const std::string message = error_of<InvalidArgument>([&] { save_model(file, model); });
  expect_says(message, "odd: its activation is none of Keras's");
  expect_says(message, "mine: Keras has no layer like this lambda");
  EXPECT_FALSE(fs::exists(file));
  expect_says(error_of<InvalidArgument>([&] { save_model(directory / "model.h5", model); }), "ends in \".keras\"");
  expect_says(error_of<InvalidArgument>([&] { save_weights(directory / "model.h5", model); }), "\".weights.h5\"");
  Model<Net> net;
  net.build({f32, {any_size, any_size, 3}});
  expect_says(error_of<InvalidArgument>([&] { save_model(file, net); }), "not a Sequential");
}

TEST_F(KerasFiles, WeightsThatDoNotFitChangeNothing) {
  Sequential model({Dense(5, relu), Dense(4), Dense(1)});
  model.build({f32, {any_size, 6}});
  Tensors before;
  for (const Variable& variable : model.variables()) before.push_back(variable.value());
  const std::string message = error_of<InvalidArgument>([&] { load_weights(stored / "mixed.keras", model); });
  expect_says(message, "`layers/dense_1/vars/0` is f32[5,3]; expected f32[5,4] for dense_1/kernel");
  expect_says(message, "there is no `layers/dense_2/vars/0`, for dense_2/kernel");
  std::size_t i = 0;
  for (const Variable& variable : model.variables()) EXPECT_TRUE(bitwise_equal(variable.value(), before[i++]));
  Sequential small({Dense(5)});
  small.build({f32, {any_size, 6}});
  expect_says(error_of<InvalidArgument>([&] { load_weights(stored / "mixed.keras", small); }),
              "nothing of the model belongs to `layers/dense_1/vars/0`");
  EXPECT_THROW(load_weights(directory / "not_there.weights.h5", small), Unavailable);
}

std::string config_with(const std::string& layers) {
  return R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "InputLayer", "config": {"batch_shape": [null, 4], "dtype": "float32"}}, )" +
         layers + "]}}";
}

TEST_F(KerasFiles, ListsAllThatIsNotKnown) {
  const std::string config = config_with(
      R"({"class_name": "Dense", "config": {"name": "d", "units": "many", "lora_rank": 4}},
         {"class_name": "Dense", "config": {"name": "e", "units": 2, "kernel_regularizer": {"class_name": "L2"}, "activation": "wavy"}},
         {"class_name": "Hologram", "config": {"name": "h"}},
         {"class_name": "RNN", "config": {"name": "r", "cell": {"class_name": "OddCell", "config": {"name": "o"}}}},
         {"class_name": "RNN", "config": {"name": "s", "cell": {"class_name": "GRUCell", "config": {"name": "g", "units": 2, "dropout": 0.5}}}},
         {"class_name": "Functional", "config": {"name": "f"}},
         {"class_name": "RandomZoom", "config": {"name": "z", "height_factor": [1], "fill_mode": "wrap"}},
         {"class_name": "Dropout", "config": {"name": "p", "rate": 7}},
         {"class_name": "Conv2D", "config": {"name": "c", "filters": 2, "kernel_size": [2, 2], "data_format": "channels_first"}})");
  const auto read = [&](const LoadModelOptions& options) {
    return error_of<DataError>([&] { model_of_config(config, "it", options); });
  };
  const std::string message = read({});
  for (const char* each :
       {"it: this model cannot be made", "d (Dense): option `units` is \"many\"; expected an integer",
        "d (Dense): option `lora_rank` is 4; there is none", "e (Dense): option `kernel_regularizer`", "inference_only",
        "e (Dense): option `activation` is \"wavy\"", "h (Hologram): there is no such layer",
        "o (OddCell): there is no such cell", "g (GRUCell): there is no dropout", "a Functional without layers",
        "z (RandomZoom): option `height_factor` is [1]; expected two numbers",
        "z (RandomZoom): option `fill_mode` is wrap", "p (Dropout): Dropout: the rate must be",
        "c (Conv2D): option `data_format` is \"channels_first\""})
    expect_says(message, each);
  EXPECT_EQ(read({.inference_only = true}).find("kernel_regularizer"), std::string::npos);
  expect_says(error_of<DataError>([&] { load_model(stored / "images.npz"); }), "`config.json` is missing");
  expect_says(error_of<DataError>([&] { load_model(stored / "net.weights.h5"); }), "no model of Keras");
}

/// Weights of another shape than the layers: the file is at fault. Nothing is allocated for layers that it claims.
TEST_F(KerasFiles, LayersThatTheWeightsDoNotPayFor) {
  const std::string config =
      config_with(R"({"class_name": "Dense", "config": {"name": "dense", "units": 4000000000000}})");
  ConfiguredModel read = model_of_config(config, "it", {});
  read.model.build(read.input);
  EXPECT_EQ(read.model.variables()[0].shape(), (Shape{4, 4000000000000}));
}

/// A small file does not ask for gigabytes.
TEST_F(KerasFiles, WhatUnpacksToMuchIsRefused) {
  const auto parsed = [](const std::string& archive) {
    return error_of<DataError>([&] { parse_model(std::as_bytes(std::span(archive)), "it"); });
  };
  const std::string blanks(std::size_t{17} << 20, ' ');
  expect_says(parsed(deflated_archive("config.json", blanks)), "it: `config.json` has ");
  expect_says(parsed(deflated_archive("config.json", blanks)), "would be 17825792 unpacked; expected at most 16777216");
  expect_says(parsed(deflated_archive("config.json", "[" + std::string(1000, '['))), "nested more than 200 deep");
  Sequential model{Dense(1)};
  model.build({f32, {any_size, 3}});
  const fs::path file = directory / "zeros.weights.h5";
  std::ofstream(file, std::ios::binary) << deflated_archive("model.weights.h5",
                                                            std::string(std::size_t{80} << 20, '\0'));
  expect_says(error_of<DataError>([&] { load_weights(file, model); }), "would be 83886080 unpacked; expected at most ");
  // Weights that are nearly all zeros pass as far as the parser.
  std::ofstream(file, std::ios::binary) << deflated_archive("model.weights.h5",
                                                            std::string(std::size_t{20} << 20, '\0'));
  expect_says(error_of<DataError>([&] { load_weights(file, model); }), "it is no HDF5 file");
}

TEST_F(KerasFiles, LayersAreSoManyAtMost) {
  std::string config = R"({"class_name": "Sequential", "config": {"name": "s", "layers": [)";
  for (int i = 0; i < 40'000; ++i)
    config += R"({"class_name": "Dense", "config": {"name": "d)" + std::to_string(i) + R"(", "units": 4}},)";
  config.back() = ']';
  const std::string archive = deflated_archive("config.json", config + "}}");
  EXPECT_LT(archive.size(), 1'000'000u);
  const std::string said = error_of<DataError>([&] { parse_model(std::as_bytes(std::span(archive)), "it"); });
  expect_says(said, "it has more than 1000 layers and cells");
  EXPECT_LT(std::ranges::count(said, '\n'), 5) << said;  // not one for each
}

/// Layers within layers: read as far as the bound, an answer beyond.
TEST_F(KerasFiles, LayersAreNestedSoFarAtMost) {
  const auto nested = [](int depth) {
    std::string config = R"({"class_name": "Dense", "config": {"name": "d", "units": 1}})";
    for (int i = 0; i < depth; ++i)
      config = R"({"class_name": "Sequential", "config": {"name": "s)" + std::to_string(i) + R"(", "layers": [)" +
               config + "]}}";
    return config;
  };
  const auto said_of = [&](int depth) {
    try {
      const std::string archive = deflated_archive("config.json", nested(depth));
      parse_model(std::as_bytes(std::span(archive)), "it");
      return std::string("nothing");
    } catch (const DataError& error) { return std::string(error.what()); }
  };
  EXPECT_EQ(said_of(5).find("nested"), std::string::npos) << said_of(5);
  expect_says(said_of(40), "layers are nested too deeply");
  expect_says(said_of(5'000), "values are nested more than 200 deep");
}

TEST_F(KerasFiles, NoDamageHarms) {
  Sequential model{Dense(2, relu), Dense(1)};
  model.build({f32, {any_size, 3}});
  save_model(directory / "damaged.keras", model);
  const std::vector<std::byte> good = read_whole_file(directory / "damaged.keras");
  int refused = 0;
  for (std::size_t place = 0; place < good.size(); place += 3) {
    std::vector<std::byte> bad = good;
    bad[place] ^= std::byte{0x41};
    try {
      parse_model(bad, "it");
    } catch (const DataError&) { ++refused; }
  }
  EXPECT_GT(refused, static_cast<int>(good.size()) / 4) << "checksums";
  for (std::size_t length = 0; length < good.size(); length += 7)
    EXPECT_THROW(parse_model(std::span(good).first(length), "it"), DataError) << length;
}

}  // namespace
}  // namespace gradus::keras_files_test
