/// Models of one's own: found fields, names, copies, several inputs, and fields that belong to a signature.
#include <gtest/gtest.h>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace model_test {
using namespace gradus;

enum class Kind { plain, doubled };

struct Block {
  Dense first{6, tanh}, second{5};
  Tensor operator()(const Tensor& x) const { return x + second(first(x)); }
};

struct Net {
  bool deep = true;
  int times = 1;
  double factor = 0.5;
  Kind kind = Kind::plain;
  Dense embed{5};
  std::array<Block, 2> blocks{};
  std::vector<Dense> more{};
  std::optional<Dense> extra{};
  Variable shift{zeros({5}), "shift"};
  Tensor operator()(Tensor x) const {
    x = embed(x) + shift;
    for (int i = 0; i < times; ++i)
      for (const Block& block : blocks) x = block(x);
    for (const Dense& layer : more) x = layer(x);
    if (extra && deep) x = (*extra)(x);
    return kind == Kind::doubled ? x * 2 : x * factor;
  }
};

struct TwoInputs {  // no field has a default
  Dense left, right;
  std::tuple<Tensor, Tensor> operator()(Tensor a, const Tensor& b) const { return {left(a), right(b) + left(a)}; }
};

struct Tied {
  Dense layer{3};
  Tensor operator()(const Tensor& x) const { return layer(layer(x)); }
};

struct Noisy {
  Dense layer{4};
  Dropout dropout{0.5};
  BatchNormalization normalize{};
  Tensor operator()(const Tensor& x) const { return dropout(normalize(layer(x))); }
};

struct Outer {
  Model<Tied> inner{};
  Sequential rest{Dense(2, relu), Dense(1, linear, {.name = "last"})};
  Tensor operator()(const Tensor& x) const { return rest(inner(x)); }
};

std::vector<std::string> names_of(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}
using Names = std::vector<std::string>;

TEST(Model, FindsLayersAndVariablesByTheirFields) {
  const Model<Net> model(Net{.more = {Dense(5), Dense(5)}, .extra = Dense(4)});
  EXPECT_EQ(model(ones({2, 3})).shape(), (Shape{2, 4}));
  Names wanted;
  for (const char* layer :
       {"embed", "blocks_0/first", "blocks_0/second", "blocks_1/first", "blocks_1/second", "more_0", "more_1", "extra"})
    for (const char* variable : {"/kernel", "/bias"}) wanted.push_back(std::string(layer) + variable);
  wanted.push_back("shift");
  EXPECT_EQ(names_of(model.variables()), wanted);
  EXPECT_EQ(model.variables()["shift"].shape(), (Shape{5}));
  EXPECT_NE(model.summary().find("blocks_1/second (dense)"), std::string::npos) << model.summary();
}

TEST(Model, ASharedLayerCountsOnce) {
  Model<Tied> model;
  model.build({f32, {any_size, 3}});
  EXPECT_EQ(names_of(model.trainable_variables()), (Names{"layer/kernel", "layer/bias"}));
}

TEST(Model, NamesOfModelsWithinModels) {
  Model<Outer> model({}, {.name = "net"});
  model.build({f32, {any_size, 3}});
  EXPECT_EQ(names_of(model.variables()),
            (Names{"net/inner/layer/kernel", "net/inner/layer/bias", "net/rest/dense/kernel", "net/rest/dense/bias",
                   "net/rest/last/kernel", "net/rest/last/bias"}));
}

TEST(Model, TakesSeveralInputsAndTheModeLast) {
  const Model<TwoInputs> model(TwoInputs{Dense(4), Dense(4)});
  const Tensor a = random::normal({3, 2}, {.seed = 1}), b = random::normal({3, 5}, {.seed = 2});
  const auto [first, second] = model(a, b);
  EXPECT_EQ(first.shape(), (Shape{3, 4}));
  EXPECT_TRUE(bitwise_equal(std::get<1>(model(a, b, training)), second));
  EXPECT_TRUE(bitwise_equal(first, model->left(a)));
  static_assert(std::same_as<call_result_t<TwoInputs, Tensor, Tensor, inference_t>, std::tuple<Tensor, Tensor>>);
  expect_says(error_of([&] { static_cast<const Module&>(model)(a); }), "all its inputs");
}

TEST(Model, IsBuiltForSpecs) {
  Model<TwoInputs> model(TwoInputs{Dense(4), Dense(4)});
  expect_says(error_of([&] { (void)model.trainable_variables().size(); }), "has no variables yet");
  model.build({{f32, {any_size, 2}}, {f32, {any_size, 5}}});
  EXPECT_EQ(model.trainable_variables().parameters(), 2 * 4 + 4 + 5 * 4 + 4);
  Model<TwoInputs> other(TwoInputs{Dense(4), Dense(4)});
  expect_says(error_of([&] { other.build({f32, {any_size, 2}}); }), "does not take 1 inputs");
}

/// Keras tracks layers, not calls: a model whose layers were all called has its variables.
TEST(Model, HasItsVariablesOnceItsLayersWereCalled) {
  const Tensor a = ones({3, 2}), b = ones({3, 5});
  const auto made = [&] {
    Model<TwoInputs> model(TwoInputs{Dense(4), Dense(4)});
    model->left(a);
    return model;
  };
  Model<TwoInputs> model = made();
  const Variables later = model.trainable_variables();
  expect_says(error_of([&] { (void)later.size(); }), "has no variables yet");
  expect_says(error_of([&] { (void)later.size(); }), "of its layers, `right` (dense) was not called");
  model->right(b);
  EXPECT_EQ(names_of(later), (Names{"left/kernel", "left/bias", "right/kernel", "right/bias"}));
  SGD optimizer({.learning_rate = 0.1});
  const auto step = function([&](Tensor x, Tensor y) {
    GradientTape tape;
    const Loss loss = Loss::mean(model->left(x) + model->right(y));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  const double before = step(a, b).item();
  EXPECT_LT(step(a, b).item(), before);
  Model<TwoInputs> best = made();
  best->right(b);
  const Variables kept = best.variables();
  best = model;
  EXPECT_TRUE(bitwise_equal(kept[0], model.variables()[0])) << "it keeps its variables when it is assigned";
  const auto [left, both] = model(a, b);
  EXPECT_TRUE(bitwise_equal(left, model->left(a)));
  EXPECT_EQ(both.shape(), (Shape{3, 4}));
  Sequential parts{Dense(2), Dense(3)};
  parts.layer(1)(parts.layer(0)(a));
  EXPECT_EQ(parts.trainable_variables().size(), 4u);
}

TEST(Model, TheModeReachesTheLayers) {
  Model<Noisy> model;
  const Tensor x = random::normal({64, 8}, {.seed = 3});
  const Tensor quiet = model(x);
  EXPECT_TRUE(bitwise_equal(quiet, model(x, inference)));
  EXPECT_FALSE(bitwise_equal(quiet, model(x, training)));
  EXPECT_EQ(model.variables().size(), 6u);
  EXPECT_EQ(model.trainable_variables().size(), 4u);
}

TEST(Model, CopiesAreDeepAndMovesKeepTheCells) {
  Model<Net> model;
  const Tensor x = ones({2, 3}), before = model(x);
  const Model<Net> copy = model;
  model->shift.assign(ones({5}));
  model->embed.bias().assign(ones({5}));
  EXPECT_TRUE(bitwise_equal(copy(x), before));
  EXPECT_FALSE(bitwise_equal(model(x), before));
  Variable& shift = model->shift;
  Model<Net> moved = std::move(model);
  EXPECT_EQ(moved->shift.cell(), shift.cell());
  expect_says(error_of([&] { (void)model->deep; }), "moved from");
}

TEST(Model, AssigningWritesValuesOrThrows) {
  Model<Net> a, b;
  const Tensor x = random::normal({2, 3}, {.seed = 4});
  a(x);
  b(x);
  const auto cell = b->shift.cell();
  EXPECT_FALSE(bitwise_equal(a(x), b(x)));
  b = a;
  EXPECT_TRUE(bitwise_equal(a(x), b(x)));
  EXPECT_EQ(b->shift.cell(), cell);
  const Model<Net> other(Net{.more = {Dense(7)}});
  other(x);
  expect_says(error_of([&] { b = other; }), "different shapes");
  EXPECT_TRUE(bitwise_equal(a(x), b(x)));
}

TEST(Model, AChangedFieldIsARetraceThatNamesIt) {
  Model<Net> model;
  const auto f = function([&](Tensor x) { return model(x); });
  const Tensor x = random::normal({2, 3}, {.seed = 5});
  const auto expect_right = [&](int variants) {
    EXPECT_TRUE(bitwise_equal(f(x), model(x)));
    EXPECT_EQ(f.explain().variants, variants);
  };
  expect_right(1);
  model->factor = 0.25;
  expect_right(2);
  EXPECT_EQ(f.explain().retraces.back().reason, "field `factor` of a model was 0.5, now 0.25");
  model->kind = Kind::doubled;
  expect_right(3);
  model->times = 3;
  expect_right(4);
  EXPECT_EQ(f.explain().retraces.back().reason, "field `times` of a model was 1, now 3");
  model->times = 1;
  expect_right(4);
  model->shift.assign(ones({5}));
  expect_right(4);
}

TEST(Model, TwoModelsOfOneKindAreToldApart) {
  Model<Net> a({}, {.name = "a"}), b({}, {.name = "b"});
  const auto f = function([&](Tensor x) { return a(x) + b(x); });
  const Tensor x = random::normal({2, 3}, {.seed = 5});
  EXPECT_TRUE(bitwise_equal(f(x), a(x) + b(x)));
  b->times = 2;
  EXPECT_TRUE(bitwise_equal(f(x), a(x) + b(x)));
  EXPECT_EQ(f.explain().retraces.back().reason, "field `times` of model b was 1, now 2");
}

TEST(Model, TrainsAsACapturedReferenceAndNotAsACopy) {
  Model<Net> model;
  const Tensor x = random::normal({8, 3}, {.seed = 6});
  model(x);
  SGD optimizer({.learning_rate = 0.1});
  const auto update = [&](const Model<Net>& trained) {
    GradientTape tape;
    const Loss loss = Loss::mean(square(trained(x, training)));
    optimizer.apply_gradients(tape.gradient(loss, trained.trainable_variables()));
    return loss;
  };
  const auto step = function([&] { return update(model); });
  const double first = step().item();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_LT(step().item(), first / 2);
  SGD another;
  const auto wrong = function([model, &another, &x] {
    GradientTape tape;
    another.apply_gradients(tape.gradient(Loss::mean(square(model(x, training))), model.trainable_variables()));
  });
  expect_says(error_of([&] { wrong(); }), "capture it by reference");
}

TEST(Model, IsFitted) {
  const Tensor a = random::normal({64, 2}, {.seed = 7}), b = random::normal({64, 3}, {.seed = 8});
  const Tensor y = reduce_sum(a, {.axis = {1}, .keepdims = true});
  Model<TwoInputs> model(TwoInputs{Dense(1), Dense(1)});
  Adam optimizer({.learning_rate = 3e-2});
  const auto joint = [](Tensor t, const std::tuple<Tensor, Tensor>& p) {
    return Loss::mean(square(t - std::get<0>(p)) + square(t - std::get<1>(p)));
  };
  const History history =
      fit(model, optimizer, joint, data::from_tensor_slices(a, b, y).batch(16), {.epochs = 30, .verbose = false});
  EXPECT_LT(history.loss.back(), history.loss.front() / 10);
  Model<Tied> single;
  SGD sgd;
  fit(single, sgd, MeanSquaredError(), data::from_tensor_slices(b, b).batch(10), {.epochs = 2, .verbose = false});
  EXPECT_EQ(predict(single, b).shape(), (Shape{64, 3}));
}

}  // namespace model_test
