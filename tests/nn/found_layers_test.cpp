/// Layers and Variables of a model are found wherever they lie in its struct, and named, trained, copied and saved.
#include <gtest/gtest.h>
#include <deque>
#include <filesystem>
#include <list>
#include <unordered_map>
#include "gradus/base/rooms.h"
#include "gradus/gradus.h"
#include "tests/errors.h"
#include "tests/test_directory.h"

namespace found_layers_test {
using namespace gradus;
using Names = std::vector<std::string>;

Names names_of(const Variables& variables) {
  Names names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}
/// kernel and bias of each.
Names parameters_of(const Names& layers) {
  Names names;
  for (const std::string& layer : layers)
    for (const char* variable : {"/kernel", "/bias"}) names.push_back(layer + variable);
  return names;
}

const Tensor& input() {
  static const Tensor x = random::normal({6, 4}, {.seed = 1});
  return x;
}
std::vector<Tensor> values_of(const Variables& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.value());
  return values;
}
bool differ(const Tensor& a, const Tensor& b) { return !bitwise_equal(a, b); }

/// Every variable has its name and is trained; a file has all of them.
template <class Net> void expect_trained(Model<Net>& model, const Names& wanted, const Tensor& y) {
  EXPECT_EQ(names_of(model.variables()), wanted);
  EXPECT_EQ(model.trainable_variables().size(), wanted.size());
  const std::vector<Tensor> before = values_of(model.variables());
  const EmptyTestDirectory folder;
  save_safetensors(folder.path() / "before.safetensors", model);
  save_weights(folder.path() / "before.weights.h5", model);
  SGD optimizer({.learning_rate = 0.1});
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::mean(square(model(x, training)));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  for (int i = 0; i < 2; ++i) step(input());
  const std::vector<Tensor> after = values_of(model.variables());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(differ(before[i], after[i])) << wanted[i];
  load_safetensors(folder.path() / "before.safetensors", model);
  EXPECT_TRUE(bitwise_equal(model(input()), y));
  for (const Variable& variable : model.variables()) Variable(variable).assign(zeros_like(variable.value()));
  load_weights(folder.path() / "before.weights.h5", model);
  EXPECT_TRUE(bitwise_equal(model(input()), y));
}

/// A copy has variables of its own, all of them.
template <class Net> void expect_copied(const Model<Net>& model, const Tensor& y) {
  const Model<Net> copy = model;
  EXPECT_TRUE(bitwise_equal(copy(input()), y));
  ASSERT_EQ(names_of(copy.variables()), names_of(model.variables()));
  for (std::size_t i = 0; i < model.variables().size(); ++i)
    EXPECT_NE(copy.variables()[i].cell(), model.variables()[i].cell()) << model.variables()[i].name();
  for (Variable& variable : copy.variables()) variable.assign(fill(variable.shape(), 0.25, variable.dtype()));
  EXPECT_TRUE(bitwise_equal(model(input()), y));
  EXPECT_TRUE(differ(copy(input()), y));
}

template <class Net> void expect_found(const Names& layers) {
  set_seed(7);
  Model<Net> model;
  const Tensor y = model(input());
  const auto compiled = function([&](Tensor x) { return model(x); });
  EXPECT_TRUE(bitwise_equal(compiled(input()), y));
  expect_copied(model, y);
  expect_trained(model, parameters_of(layers), y);
  Model<Net> built;
  built.build({f32, {any_size, 4}});
  EXPECT_EQ(names_of(built.variables()), parameters_of(layers));
}

struct WithConstructor {
  Dense a;
  explicit WithConstructor(int n) : a(n, tanh) {}
  Tensor operator()(const Tensor& x) const { return a(x); }
};
struct InBlock {
  WithConstructor block{8};
  Dense out{1};
  Tensor operator()(const Tensor& x) const { return out(block(x)); }
};
TEST(FoundLayers, InABlockWithAConstructor) { expect_found<InBlock>({"block/dense", "out"}); }

class Private {
 public:
  Tensor operator()(const Tensor& x) const { return last_(inner_[1](inner_[0](first_(x)))) * times_; }

 private:
  Dense first_{4};
  std::array<Dense, 2> inner_{Dense(3), Dense(5)};
  int times_ = 3;
  Sequential last_{Dense(4), Dense(2)};
};
struct InPrivate {
  std::optional<Private> block{Private()};
  Dense out{1};
  Tensor operator()(const Tensor& x) const { return out((*block)(x)); }
};
TEST(FoundLayers, InPrivateFields) {
  expect_found<InPrivate>(
      {"block/dense", "block/dense_1", "block/dense_2", "block/sequential/dense", "block/sequential/dense_1", "out"});
}

struct Base {
  Dense base{4};
};
struct Derived : Base {
  Dense own{3};
  Tensor operator()(const Tensor& x) const { return own(base(x)); }
};
TEST(FoundLayers, InBases) { expect_found<Derived>({"dense", "dense_1"}); }

class NetWithConstructor {
 public:
  NetWithConstructor() : hidden_(5) {}
  Tensor operator()(const Tensor& x) const { return out_(hidden_(x)); }

 private:
  Dense hidden_, out_{2};
};
TEST(FoundLayers, InANetThatIsAClass) { expect_found<NetWithConstructor>({"dense", "dense_1"}); }

struct Residual : Dense {  // a layer with one more
  Dense more{4};
  Residual() : Dense(4) {}
  Tensor operator()(const Tensor& x) const { return more(Dense::operator()(x)); }
};
struct InLayer {
  Residual block;
  Tensor operator()(const Tensor& x) const { return block(x); }
};
TEST(FoundLayers, InAClassDerivedFromALayer) { expect_found<InLayer>({"block", "block/dense"}); }

class Tower {  // its layers are on the heap
 public:
  Tensor operator()(Tensor x) const {
    for (const Dense& layer : blocks_) x = layer(x);
    return (*last_)(x);
  }
  auto layers() const { return std::tie(blocks_, last_); }

 private:
  std::vector<Dense> blocks_{Dense(4), Dense(3)};
  std::shared_ptr<Dense> last_ = std::make_shared<Dense>(2);
};
struct Named {
 public:
  explicit Named(int n) : first_(n), more_{Dense(n), Dense(n)} {}
  Tensor operator()(const Tensor& x) const { return more_[1](more_[0](first_(x))); }
  auto layers() const { return named_layers("first", first_, "more", more_); }

 private:
  Dense first_;
  std::vector<Dense> more_;
};
struct OfPointers {
  Tensor operator()(const Tensor& x) const { return (*all_[1])((*all_[0])(x)); }
  std::vector<const Dense*> layers() const { return {all_[0].get(), all_[1].get()}; }
  OfPointers() = default;
  OfPointers(const OfPointers& other) {
    for (int i = 0; i < 2; ++i) all_[i] = std::make_unique<Dense>(*other.all_[i]);
  }
  OfPointers(OfPointers&&) = default;

 private:
  std::unique_ptr<Dense> all_[2] = {std::make_unique<Dense>(3), std::make_unique<Dense>(4)};
};
struct Step {
  virtual ~Step() = default;
  virtual Tensor run(const Tensor& x) const = 0;
  virtual std::vector<const Module*> layers() const = 0;
  virtual std::shared_ptr<Step> clone() const = 0;
};
struct DenseStep final : Step {
  Dense a{3}, b{4};
  Tensor run(const Tensor& x) const override { return b(a(x)); }
  std::vector<const Module*> layers() const override { return {&a, &b}; }
  std::shared_ptr<Step> clone() const override { return std::make_shared<DenseStep>(*this); }
};
struct InDeclared {
  Tower tower;
  Named named{3};
  OfPointers pointers;
  std::vector<std::shared_ptr<Step>> steps{std::make_shared<DenseStep>()};
  Tensor operator()(const Tensor& x) const { return steps[0]->run(pointers(named(tower(x)))); }
};
TEST(FoundLayers, InClassesThatNameThem) {
  expect_found<InDeclared>({"tower/0_0", "tower/0_1", "tower/1", "named/first", "named/more_0", "named/more_1",
                            "pointers_0", "pointers_1", "steps_0_0", "steps_0_1"});
}

struct InContainers {
  std::map<std::string, Dense> heads{{"right", Dense(3)}, {"left", Dense(3)}};
  std::unordered_map<int, Dense> numbered{{10, Dense(3)}, {9, Dense(3)}, {-1, Dense(3)}};
  std::pair<Dense, Dense> two{Dense(3), Dense(3)};
  std::tuple<Dense, double, Sequential> three{Dense(3), 0.5, Sequential{Dense(3)}};
  std::vector<std::pair<std::string, Dense>> stages{{"a", Dense(3)}, {"b", Dense(3)}};
  std::deque<Dense> queue{Dense(3)};
  std::list<std::optional<Dense>> list{Dense(3), std::nullopt};
  std::variant<int, Dense> either{Dense(3)};
  std::map<std::string, std::vector<Dense>> nested{{"x", {Dense(3)}}};
  Tensor operator()(Tensor x) const {
    x = heads.at("left")(x) + heads.at("right")(x);
    for (const int key : {-1, 9, 10}) x = numbered.at(key)(x);
    x = two.second(two.first(x));
    x = std::get<2>(three)(std::get<0>(three)(x)) * std::get<1>(three);
    for (const auto& [name, layer] : stages) x = layer(x);
    x = queue[0](x);
    for (const auto& layer : list)
      if (layer) x = (*layer)(x);
    return nested.at("x")[0](std::get<1>(either)(x));
  }
};
TEST(FoundLayers, InContainers) {
  expect_found<InContainers>({"heads_left", "heads_right", "numbered_-1", "numbered_9", "numbered_10", "two/first",
                              "two/second", "three_0", "three_2/dense", "stages_0/second", "stages_1/second", "queue_0",
                              "list_0", "either", "nested_x_0"});
}

struct BehindPointers {
  std::shared_ptr<Dense> a = std::make_shared<Dense>(4), again = a;
  std::shared_ptr<Module> any = std::make_shared<Sequential>(std::initializer_list<Module>{Dense(3)});
  std::shared_ptr<const InBlock> block = std::make_shared<InBlock>();
  std::shared_ptr<Dense> nothing;
  Dense own{2};
  const Dense* tied = &own;  // into the struct itself
  std::reference_wrapper<const Dense> also{own};
  BehindPointers* parent = this;
  Tensor operator()(const Tensor& x) const {
    return (*block)((*any)((*again)((*a)(x)))) + reduce_sum((*tied)(x) + also(x));
  }
};
TEST(FoundLayers, BehindPointers) {
  expect_found<BehindPointers>({"a", "any/dense", "block/block/dense", "block/out", "own"});
}

TEST(FoundLayers, PointersIntoTheStructFollowIt) {
  Model<BehindPointers> moved(BehindPointers{});
  EXPECT_EQ(moved->tied, &moved->own);
  EXPECT_EQ(&moved->also.get(), &moved->own);
  EXPECT_EQ(moved->parent, moved.operator->());
  EXPECT_EQ(moved->a, moved->again);
  Model<BehindPointers> copy = moved;
  EXPECT_EQ(copy->tied, &copy->own);
  EXPECT_EQ(&copy->also.get(), &copy->own);
  EXPECT_EQ(copy->parent, copy.operator->());
  EXPECT_EQ(copy->a, copy->again);
  EXPECT_NE(copy->a, moved->a);
}

struct MoveOnly {
  std::unique_ptr<Dense> a = std::make_unique<Dense>(3), none;
  std::vector<std::unique_ptr<WithConstructor>> blocks;
  MoveOnly() { blocks.push_back(std::make_unique<WithConstructor>(3)); }
  Tensor operator()(const Tensor& x) const { return (*blocks[0])((*a)(x)); }
};
struct MoveOnlyFields {  // says that it could be copied
  std::vector<std::unique_ptr<Dense>> layers{};
  Tensor operator()(const Tensor& x) const { return (*layers[0])(x); }
};
TEST(FoundLayers, WhatCannotBeCopiedIsRefusedWhenItIs) {
  MoveOnlyFields fields;
  fields.layers.push_back(std::make_unique<Dense>(2));
  Model<MoveOnlyFields> model(std::move(fields));
  const Tensor y = model(input());
  expect_trained(model, parameters_of({"layers_0"}), y);
  expect_says(error_of<InvalidArgument>([&] { const Model<MoveOnlyFields> copy = model; }), "MoveOnlyFields");
  const Model<MoveOnlyFields> moved = std::move(model);
  EXPECT_TRUE(bitwise_equal(moved(input()), y));
}

struct Abstract {
  virtual ~Abstract() = default;
  virtual Tensor run(const Tensor& x) const = 0;
  Dense inherited{3};
};
struct Concrete final : Abstract {
  Tensor run(const Tensor& x) const override { return inherited(x); }
};
struct OfAbstract {
  std::shared_ptr<Abstract> part = std::make_shared<Concrete>();
  Tensor operator()(const Tensor& x) const { return part->run(x); }
};
TEST(FoundLayers, ACopyNeverCutsAnObject) {
  Model<OfAbstract> model;
  const Tensor y = model(input());
  expect_trained(model, parameters_of({"part/dense"}), y);
  expect_says(error_of<InvalidArgument>([&] { const Model<OfAbstract> copy = model; }), "clone() const");
}

struct WithExtractor {
  Sequential* extractor = nullptr;
  Dense head{2};
  Tensor operator()(const Tensor& x) const { return head((*extractor)(x)); }
};
TEST(FoundLayers, ARawPointerLeadsToWhatOthersHave) {
  Sequential extractor{Dense(3)};
  extractor(input());
  extractor.set_trainable(false);
  Model<WithExtractor> model(WithExtractor{.extractor = &extractor});
  model(input());
  EXPECT_EQ(names_of(model.variables()), parameters_of({"extractor/dense", "head"}));
  EXPECT_EQ(model.trainable_variables().size(), 2u);
  EXPECT_EQ(model.variables()[0].cell(), extractor.variables()[0].cell());
  const Model<WithExtractor> copy = model;  // owns the head alone
  EXPECT_EQ(copy.variables()[0].cell(), extractor.variables()[0].cell());
  EXPECT_NE(copy.variables()[2].cell(), model.variables()[2].cell());
}

struct Child;
struct Parent {
  std::shared_ptr<Model<Child>> child;
  Dense own{4};
  Tensor operator()(const Tensor& x) const;
};
struct Child {
  const Model<Parent>* parent = nullptr;
  Dense own{4};
  Tensor operator()(const Tensor& x) const { return own(x); }
};
Tensor Parent::operator()(const Tensor& x) const { return (*child)(own(x)); }
struct Ring {
  Ring* next = nullptr;
  Dense own{4};
};
struct InRing {
  Ring a, b;
  Tensor operator()(const Tensor& x) const { return b.own(a.own(x)); }
};
TEST(FoundLayers, CirclesEnd) {
  Model<Parent> parent(Parent{.child = std::make_shared<Model<Child>>()});
  (*parent->child)->parent = &parent;
  parent(input());
  EXPECT_EQ(names_of(parent.variables()), parameters_of({"child/own", "own"}));
  EXPECT_NE(parent.summary().find("child"), std::string::npos);
  Model<InRing> ring;
  ring->a.next = &ring->b;
  ring->b.next = &ring->a;
  ring(input());
  EXPECT_EQ(ring.variables().size(), 4u);
}

struct Scale {
  Variable factor;
  explicit Scale(double value) : factor(constant(value), "factor") {}
};
struct OfVariables {
  Scale scale{0.5};
  std::map<std::string, Variable> shifts;
  std::shared_ptr<Variable> shared = std::make_shared<Variable>(constant(1.0));
  OfVariables() { shifts.emplace("a", Variable(constant(0.0))); }
  auto layers() const { return std::tie(scale, shifts, shared); }
  Tensor operator()(const Tensor& x) const { return (x * scale.factor + shifts.at("a")) * *shared; }
};
TEST(FoundLayers, Variables) {
  Model<OfVariables> model;
  model(input());
  EXPECT_EQ(names_of(model.trainable_variables()), (Names{"0/factor", "1_a", "2"}));
  const Model<OfVariables> copy = model;
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NE(copy.variables()[i].cell(), model.variables()[i].cell());
}

struct Cell {
  WithConstructor candidate{3};
  std::vector<std::int64_t> state_sizes() const { return {3}; }
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const {
    const Tensor h = candidate(concat({x, state[0]}, -1));
    return {h, {h}};
  }
};
TEST(FoundLayers, InACell) {
  const RNN layer{CustomCell(Cell(), "mine")};
  layer(random::normal({2, 3, 4}));
  EXPECT_EQ(names_of(layer.variables()), parameters_of({"rnn/mine/candidate/dense"}));
  const RNN copy = layer;
  EXPECT_NE(copy.variables()[0].cell(), layer.variables()[0].cell());
}

/// Nothing of a plain struct is taken for layers, and what was plain is watched as before.
struct PlainParts {
  std::vector<int> sizes{1, 2};
  std::map<std::string, int> table{{"a", 1}};
  std::string text = "text";
  std::function<int()> function = [] { return 1; };
  Tensor constant_part = ones({4});
  std::chrono::seconds time{3};
  const char* literal = "literal";
  std::variant<int, double> either = 2;
  Dense out{2};
  Tensor operator()(const Tensor& x) const { return out(x * constant_part) * sizes[0]; }
};
TEST(FoundLayers, PlainFieldsAreWatched) {
  Model<PlainParts> model;
  const auto f = function([&](Tensor x) { return model(x); });
  f(input());
  EXPECT_EQ(model.variables().size(), 2u);
  model->sizes[0] = 3;
  EXPECT_TRUE(bitwise_equal(f(input()), model(input())));
  EXPECT_EQ(f.explain().retraces.back().reason, "field `sizes_0` of a model was 1, now 3");
  model->either = 3;
  f(input());
  EXPECT_EQ(f.explain().variants, 3);
}

}  // namespace found_layers_test
