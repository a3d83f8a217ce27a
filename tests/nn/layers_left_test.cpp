/// A layer that has left a model and still runs within its call is refused as one that never was in it, whatever held
/// it; what is still there goes on without another walk.
#include <gtest/gtest.h>
#include <list>
#include <unordered_map>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace layers_left_test {
using namespace gradus;

const Tensor& input() {
  static const Tensor x = random::normal({6, 4}, {.seed = 1});
  return x;
}

/// What runs beside the fields: handles of layers that the model has, or had.
using Runs = std::function<Tensor(const Tensor&)>;

/// `leave` takes a layer out of the struct, which goes on running it: an InvalidArgument eagerly, in a function that
/// was traced before, in one that was not, and in fit.
template <class Net> void expect_missed(auto make, auto leave) {
  const auto refused = [](auto call) {
    const std::string said = error_of<InvalidArgument>(call);
    expect_says(said, "Net");
    expect_says(said, "neither trained nor saved");
  };
  Model<Net> model = make();
  const auto traced = function([&](Tensor x) { return model(x); });
  const auto later = function([&](Tensor x) { return model(x); });
  const Tensor y = model(input());
  EXPECT_TRUE(bitwise_equal(traced(input()), y));
  EXPECT_TRUE(bitwise_equal(model(input()), y));
  leave(*model.operator->());
  refused([&] { model(input()); });
  refused([&] { model(input()); });
  refused([&] { traced(input()); });
  refused([&] { later(input()); });
  refused([&] {
    GradientTape tape;
    model(input(), training);
  });
  Adam optimizer;
  const auto dataset = data::from_tensor_slices(input(), input()).batch(2);
  refused([&] { fit(model, optimizer, MeanSquaredError(), dataset, {.epochs = 1, .verbose = false}); });
  refused([&] { predict(model, input()); });
}

struct NetOfVector {
  std::vector<Dense> v{Dense(4)};
  Runs runs;
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(runs(x)); }
};
TEST(LayersLeft, AVectorCleared) {
  expect_missed<NetOfVector>(
      [] {
        Model<NetOfVector> model;
        model->runs = [same = shared(model->v[0])](const Tensor& x) { return same(x); };
        return model;
      },
      [](NetOfVector& net) { net.v.clear(); });
}

struct NetOfPointer {
  std::shared_ptr<Dense> layer = std::make_shared<Dense>(4);
  Runs runs = [same = layer](const Tensor& x) { return (*same)(x); };
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(runs(x)); }
};
TEST(LayersLeft, APointerReset) {
  expect_missed<NetOfPointer>([] { return Model<NetOfPointer>(); }, [](NetOfPointer& net) { net.layer.reset(); });
}
TEST(LayersLeft, AnotherInItsPlace) {
  expect_missed<NetOfPointer>([] { return Model<NetOfPointer>(); },
                              [](NetOfPointer& net) { net.layer = std::make_shared<Dense>(4); });
}

struct NetOfRawPointer {
  const Dense* layer = nullptr;
  Runs runs;
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(runs(x)); }
};
TEST(LayersLeft, ARawPointerSetToNothing) {
  Dense elsewhere(4);
  expect_missed<NetOfRawPointer>(
      [&] {
        return Model(NetOfRawPointer{.layer = &elsewhere, .runs = [&](const Tensor& x) { return elsewhere(x); }});
      },
      [](NetOfRawPointer& net) { net.layer = nullptr; });
}

struct NetOfMaps {
  std::map<std::string, std::list<std::optional<Dense>>> ordered;
  std::unordered_map<int, std::pair<int, std::shared_ptr<Dense>>> numbered;
  Runs runs;
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(runs(x)); }
};
Model<NetOfMaps> of_maps() {
  Model<NetOfMaps> model;
  model->ordered["a"].emplace_back(Dense(4));
  model->numbered[3] = {1, std::make_shared<Dense>(4)};
  model->runs = [a = shared(*model->ordered["a"].front()), b = model->numbered[3].second](const Tensor& x) {
    return a((*b)(x));
  };
  return model;
}
TEST(LayersLeft, AnOptionalInAListInAMap) {
  expect_missed<NetOfMaps>(of_maps, [](NetOfMaps& net) { net.ordered["a"].front().reset(); });
}
TEST(LayersLeft, AnElementOfAMap) {
  expect_missed<NetOfMaps>(of_maps, [](NetOfMaps& net) { net.numbered.erase(3); });
}

/// What cannot be opened: layers are found in the bytes of the class.
class Closed {
 public:
  explicit Closed(int n) : layer_(Dense(n)), inner_(std::make_shared<Dense>(n)) {}
  Dense held() const { return shared(*layer_); }
  const std::shared_ptr<Dense>& inner() const { return inner_; }
  void drop() { layer_.reset(); }
  void drop_inner() { inner_.reset(); }
  auto layers() const { return std::tie(layer_, inner_); }

 private:
  std::optional<Dense> layer_;
  std::shared_ptr<Dense> inner_;
};
class Sealed {  // the same, naming nothing
 public:
  explicit Sealed(int n) : layer_(Dense(n)) {}
  Dense held() const { return shared(*layer_); }
  void drop() { layer_.reset(); }

 private:
  std::optional<Dense> layer_;
};
template <class Block> struct NetOf {
  Block block{4};
  Runs runs;
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(runs(x)); }
};
template <class Block> Model<NetOf<Block>> of_block() {
  Model<NetOf<Block>> model;
  model->runs = [same = model->block.held()](const Tensor& x) { return same(x); };
  return model;
}
TEST(LayersLeft, OfAClassThatNamesThem) {
  expect_missed<NetOf<Closed>>(of_block<Closed>, [](auto& net) { net.block.drop(); });
  expect_missed<NetOf<Closed>>(
      [] {
        auto model = of_block<Closed>();
        model->runs = [same = model->block.inner()](const Tensor& x) { return (*same)(x); };
        return model;
      },
      [](auto& net) { net.block.drop_inner(); });
}
TEST(LayersLeft, OfAClassThatNamesNothing) {
  expect_missed<NetOf<Sealed>>(of_block<Sealed>, [](auto& net) { net.block.drop(); });
}

/// A model with fields that can change, hidden in such a class: no handle tells of it.
struct Inner {
  std::shared_ptr<Dense> layer = std::make_shared<Dense>(4);
  Tensor operator()(const Tensor& x) const { return layer ? (*layer)(x) : x; }
};
class Hiding {
 public:
  explicit Hiding(int) {}
  std::shared_ptr<Dense> held() const { return inner_->layer; }
  void drop() { inner_->layer.reset(); }
  Tensor operator()(const Tensor& x) const { return inner_(x); }

 private:
  Model<Inner> inner_;
};
TEST(LayersLeft, OfAModelInAClassThatNamesNothing) {
  expect_missed<NetOf<Hiding>>(
      [] {
        Model<NetOf<Hiding>> model;
        model->runs = [same = model->block.held()](const Tensor& x) { return (*same)(x); };
        return model;
      },
      [](auto& net) { net.block.drop(); });
}

struct NetOfNested {
  Sequential stages{Model<Inner>(), Dense(4)};
  Runs runs;
  Tensor operator()(const Tensor& x) const { return stages(runs(x)); }
};
TEST(LayersLeft, OfAModelInASequential) {
  std::shared_ptr<Dense>* place = nullptr;
  expect_missed<NetOfNested>(
      [&] {
        Model<NetOfNested> model;
        auto& inner = static_cast<Model<Inner>&>(model->stages.layer(0));
        place = &inner->layer;
        model->runs = [same = *place](const Tensor& x) { return (*same)(x); };
        return model;
      },
      [&](NetOfNested&) { place->reset(); });
}

struct NetOfVariable {
  std::vector<Variable> weights;
  std::shared_ptr<Variable> one = std::make_shared<Variable>(ones({4}), "one");
  std::function<Tensor()> reads = [same = one] { return same->value(); };
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(x * reads()); }
};
TEST(LayersLeft, AVariable) {
  expect_missed<NetOfVariable>([] { return Model<NetOfVariable>(); }, [](NetOfVariable& net) { net.one.reset(); });
}

/// What changes and stays whole goes on; so does what comes back.
TEST(LayersLeft, WhatComesBackIsFound) {
  Model<NetOfPointer> model;
  const Tensor y = model(input());
  const std::shared_ptr<Dense> kept = std::exchange(model->layer, nullptr);
  EXPECT_THROW(model(input()), InvalidArgument);
  model->layer = kept;
  EXPECT_TRUE(bitwise_equal(model(input()), y));
}

/// Calls that make layers without variables, and handles elsewhere that come and go, hide nothing and are no error.
struct NetOfTemporaries {
  std::optional<Dense> extra{Dense(4)};
  Sealed sealed{4};
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return Flatten()(out(extra ? (*extra)(x) : x)); }
};
TEST(LayersLeft, HandlesElsewhereDoNotMatter) {
  Model<NetOfTemporaries> model;
  const Tensor y = model(input());
  for (int i = 0; i < 3; ++i) {
    const Sequential other{Dense(2), Flatten()};
    EXPECT_TRUE(bitwise_equal(model(input()), y));
  }
  model->extra.reset();
  model(input());
  EXPECT_EQ(model.variables().size(), 2u);
}

/// A compiled function that was traced elsewhere runs no layer here: what it reads tells.
Dense& global() {
  static Dense layer(4, linear, {.name = "global_one"});
  return layer;
}
const auto& through_a_function() {
  static const auto compiled = function([](Tensor x) { return global()(x); });
  return compiled;
}
struct NetOfFunction {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(through_a_function()(x)); }
};
const auto& by_the_sign() {
  static const auto compiled = function([](Tensor x) { return reduce_sum(x) > 0 ? global()(x) : x; });
  return compiled;
}
struct NetOfBranches {
  Dense out{4};
  Tensor operator()(const Tensor& x) const { return out(by_the_sign()(x)); }
};
template <class Net> void expect_refused(const Tensor& x) {
  Model<Net> model;
  for (int i = 0; i < 2; ++i) {
    const std::string said = error_of<InvalidArgument>([&] { model(x); });
    expect_says(said, "global_one");
    expect_says(said, "neither trained nor saved");
  }
}
TEST(LayersLeft, WithinACompiledFunction) {
  through_a_function()(input());  // traced, and built, before any model calls it
  expect_refused<NetOfFunction>(input());
  const Tensor positive = ones({6, 4});
  by_the_sign()(positive);
  by_the_sign()(-positive);
  expect_refused<NetOfBranches>(positive);
  EXPECT_EQ(Model<NetOfBranches>()(-positive).shape(), (Shape{6, 4}));  // this path reads nothing of it
}

/// What the model has may be read by a function, and what is not to be trained may be anybody's.
struct NetOfItsOwn {
  Dense hidden{4};
  Variable scale{ones({4}), "scale"};
  Tensor operator()(const Tensor& x) const { return runs(x); }
  std::function<Tensor(const Tensor&)> runs;
};
TEST(LayersLeft, AFunctionOfTheModelsOwn) {
  Model<NetOfItsOwn> model;
  const Variable offset(ones({4}), "offset", {.trainable = false});
  const auto compiled = function([&](Tensor x) { return model->hidden(x) * model->scale + offset; });
  model->runs = [&](const Tensor& x) { return compiled(x); };
  const Tensor y = model(input());
  EXPECT_TRUE(bitwise_equal(model(input()), y));
  EXPECT_EQ(compiled.explain().variants, 1);
}

}  // namespace layers_left_test
