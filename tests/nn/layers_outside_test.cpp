/// What runs within a model's call and is none of its layers is an error that says how to mend it.
#include <gtest/gtest.h>
#include <thread>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace layers_outside_test {
using namespace gradus;

const Tensor& input() {
  static const Tensor x = random::normal({6, 4}, {.seed = 1});
  return x;
}

/// The message, the same eagerly, in a function, in build and in fit.
template <class Net> std::string refused(auto make) {
  Model<Net> eager(make());
  const std::string message = error_of<InvalidArgument>([&] { eager(input()); });
  Model<Net> compiled(make()), built(make()), fitted(make());
  const auto f = function([&](Tensor x) { return compiled(x); });
  EXPECT_EQ(error_of<InvalidArgument>([&] { f(input()); }), message);
  EXPECT_EQ(error_of<InvalidArgument>([&] { built.build({f32, {any_size, 4}}); }), message);
  Adam optimizer;
  const auto dataset = data::from_tensor_slices(input(), input()).batch(2);
  EXPECT_EQ(error_of<InvalidArgument>(
                [&] { fit(fitted, optimizer, MeanSquaredError(), dataset, {.epochs = 1, .verbose = false}); }),
            message);
  expect_says(message, "Net");
  expect_says(message, "neither trained nor saved");
  return message;
}

struct NetOfFunction {
  std::function<Tensor(const Tensor&)> hidden;
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(hidden(x)); }
};
TEST(LayersOutside, BehindAFunction) {
  const std::string message = refused<NetOfFunction>(
      [] { return NetOfFunction{.hidden = [hidden = Dense(4, relu)](const Tensor& x) { return hidden(x); }}; });
  expect_says(message, "layer dense");
  expect_says(message, "auto layers() const");
}

Dense& global() {
  static Dense layer(4, linear, {.name = "global_one"});
  return layer;
}
struct NetOfGlobal {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(global()(x)); }
};
TEST(LayersOutside, Global) {
  const std::string message = refused<NetOfGlobal>([] { return NetOfGlobal(); });
  expect_says(message, "`global_one` (dense)");
  expect_says(message, "One that is made or copied within the call is another one in every call");
}

struct NetOfLocal {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(Dense(4)(x)); }
};
TEST(LayersOutside, MadeInTheCall) {
  refused<NetOfLocal>([] { return NetOfLocal(); });
}

struct NetOfLocalModel {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(Sequential{Flatten(), Dense(4)}(x)); }
};
TEST(LayersOutside, AModelMadeInTheCall) {
  expect_says(refused<NetOfLocalModel>([] { return NetOfLocalModel(); }), "sequential, which has 2 variables");
}

struct NetOfCopy {
  Dense out{4};
  std::vector<Dense> more{Dense(4)};
  Tensor operator()(const Tensor& x) const {
    Tensor y = out(x);
    for (Dense layer : more) y = layer(y);
    return y;
  }
};
TEST(LayersOutside, ALocalCopy) {
  refused<NetOfCopy>([] { return NetOfCopy(); });
}

class NetHeap {
 public:
  Tensor operator()(const Tensor& x) const { return out_(blocks_[0](x)); }

 private:
  std::vector<Dense> blocks_{Dense(4)};
  Dense out_{4};
};
TEST(LayersOutside, OnTheHeapOfAClassThatNamesNothing) {
  expect_says(refused<NetHeap>([] { return NetHeap(); }), "std::tie");
}

struct NetOfCell {
  LSTMCell* hidden_from_all() const { return cell().get(); }
  static std::shared_ptr<LSTMCell>& cell() {
    static auto one = std::make_shared<LSTMCell>(4);
    return one;
  }
  Dense out{4};
  Tensor operator()(const Tensor& x) const {
    return out((*cell())(x, {zeros({x.shape()[0], 4}), zeros({x.shape()[0], 4})}).output);
  }
};
TEST(LayersOutside, ACell) {
  refused<NetOfCell>([] { return NetOfCell(); });
}

struct NetOfBranches {
  Dense out{4};
  Tensor operator()(const Tensor& x) const {
    return cond(reduce_sum(x) > 0, [&] { return global()(x); }, [&] { return out(x); });
  }
};
TEST(LayersOutside, InABranch) {
  refused<NetOfBranches>([] { return NetOfBranches(); });
}

struct NetOfRecomputed {
  Dense out{4};
  Tensor operator()(const Tensor& x) const {
    return recompute_grad([&](const Tensor& t) { return global()(out(t)); })(x);
  }
};
TEST(LayersOutside, InWhatIsRecomputed) {
  refused<NetOfRecomputed>([] { return NetOfRecomputed(); });
}

Variable& global_variable() {
  static Variable one(ones({4}), "global_variable");
  return one;
}
struct NetOfVariable {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(x * global_variable()); }
};
TEST(LayersOutside, AVariable) {
  const std::string message = refused<NetOfVariable>([] { return NetOfVariable(); });
  expect_says(message, "`global_variable`");
  expect_says(message, "{.trainable = false}");
  global_variable().set_trainable(false);
  EXPECT_EQ(Model<NetOfVariable>()(input()).shape(), (Shape{6, 4}));
  global_variable().set_trainable(true);
}

struct NetOfInput {
  Dense out{2};
  Tensor operator()(const Tensor& x) const { return out(x); }
};
TEST(LayersOutside, AVariableMayBeTheInput) {
  const Variable image(ones({1, 4}), "image");
  EXPECT_EQ(Model<NetOfInput>()(image).shape(), (Shape{1, 2}));
  EXPECT_EQ(Sequential{Dense(2)}(image).shape(), (Shape{1, 2}));
}

TEST(LayersOutside, InALambda) {
  Dense captured(4);
  Sequential model{Lambda([&](const Tensor& x) { return captured(x); }), Dense(2)};
  expect_says(error_of<InvalidArgument>([&] { model(input()); }), "shared(layer)");
  expect_says(error_of<InvalidArgument>([&] { model.build({f32, {any_size, 4}}); }), "layer dense");
  Sequential with_it{shared(captured),
                     Lambda([&](const Tensor& x) { return matmul(x, transpose(captured.kernel())); })};
  EXPECT_EQ(with_it(input()).shape(), (Shape{6, 4}));  // tied weights
  Sequential with_a_copy{captured, Lambda([&](const Tensor& x) { return matmul(x, transpose(captured.kernel())); })};
  expect_says(error_of<InvalidArgument>([&] { with_a_copy(input()); }), "kernel");
}

struct Wrapper final : Layer {
  std::shared_ptr<Layer> clone() const override { return std::make_shared<Wrapper>(*this); }
  std::string_view kind() const override { return "wrapper"; }
  void build(const Spec&) override {}
  Tensor call(const Tensor& x) const override { return inner(x); }
  Dense inner{3};
};
struct Wrapped : Module {
  Wrapped() : Module(std::make_shared<Wrapper>()) {}
};
TEST(LayersOutside, OfALayerOfOnesOwn) {
  expect_says(error_of<InvalidArgument>([] { Wrapped()(input()); }), "children()");
}

struct NetOfStateless {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return Dropout(0.5)(Flatten()(out(Sequential{Flatten()}(x)))); }
};
TEST(LayersOutside, WhatHasNothingToTrainMayBeMadeAnywhere) {
  Model<NetOfStateless> model;
  const auto f = function([&](Tensor x) { return model(x); });
  EXPECT_TRUE(bitwise_equal(f(input()), model(input())));
}

struct NetOfPenalty {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return ActivityRegularization({.l2 = 0.1})(out(x)); }
};
TEST(LayersOutside, APenaltyWouldBeLost) {
  refused<NetOfPenalty>([] { return NetOfPenalty(); });
}

TEST(LayersOutside, ALossMayRunLayersOfItsOwn) {
  Sequential model{Dense(4)}, judge{Dense(3)};
  judge(input());
  const auto perceptual = [&](Tensor y, Tensor p) { return Loss::mean(square(judge(y) - judge(p))); };
  Adam optimizer;
  const History history = fit(model, optimizer, perceptual, data::from_tensor_slices(input(), input()).batch(2),
                              {.epochs = 2, .verbose = false});
  EXPECT_LT(history.loss.back(), history.loss.front());
}

/// What was found is found again after a field has changed, and what has left is missed.
struct NetOfChanges {
  std::optional<Dense> extra;
  std::vector<Dense> more;
  Dense out{4};
  Tensor operator()(Tensor x) const {
    for (const Dense& layer : more) x = layer(x);
    return extra ? (*extra)(out(x)) : out(x);
  }
};
TEST(LayersOutside, FieldsMayChange) {
  Model<NetOfChanges> model;
  for (int i = 0; i < 3; ++i) {
    model(input());
    EXPECT_EQ(model.variables().size(), 2u + 2u * static_cast<std::size_t>(i));
    if (i == 0) model->extra = Dense(4);
    else model->more.push_back(Dense(4));
  }
}

TEST(LayersOutside, ThreadsMayCallAModelAtOnce) {
  Model<NetOfChanges> model;
  const Tensor y = model(input());
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) right += bitwise_equal(model(input()), y);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

/// After an error the next call is checked as the first was.
TEST(LayersOutside, AnErrorLeavesNothingBehind) {
  Model<NetOfGlobal> model;
  EXPECT_THROW(model(input()), InvalidArgument);
  EXPECT_THROW(model(input()), InvalidArgument);
  EXPECT_EQ(global()(input()).shape(), (Shape{6, 4}));
}

}  // namespace layers_outside_test
