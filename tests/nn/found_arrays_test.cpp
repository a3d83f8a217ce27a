/// Arrays of Variables and layers, of C++ and of C, are fields like others: found by name, trained, copied.
#include <gtest/gtest.h>
#include <deque>
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace found_arrays_test {
using namespace gradus;
using Names = std::vector<std::string>;

const Tensor& input() {
  static const Tensor x = random::normal({6, 4}, {.seed = 1});
  return x;
}
Variable weight(double value = 1) { return Variable(full({4}, value), "weight"); }

Names names_of(const Variables& variables) {
  Names names;
  for (const Variable& variable : variables) names.push_back(variable.name());
  return names;
}

/// Every one has its name, is trained, and has a copy of its own in copies and in what is assigned.
template <class Net> void expect_found(const Names& wanted) {
  set_seed(5);
  Model<Net> model;
  const Tensor y = model(input());
  ASSERT_EQ(names_of(model.trainable_variables()), wanted);
  const Model<Net> copy = model;
  EXPECT_TRUE(bitwise_equal(copy(input()), y));
  ASSERT_EQ(names_of(copy.variables()), wanted);
  std::vector<Tensor> before;
  for (const Variable& variable : model.variables()) before.push_back(variable.value());
  SGD optimizer({.learning_rate = 0.1});
  const auto step = function([&](Tensor x) {
    GradientTape tape;
    const Loss loss = Loss::mean(square(model(x, training)));
    optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
    return loss;
  });
  step(input());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_FALSE(bitwise_equal(before[i], model.variables()[i])) << wanted[i];
    EXPECT_TRUE(bitwise_equal(before[i], copy.variables()[i])) << wanted[i];
  }
  EXPECT_TRUE(bitwise_equal(copy(input()), y));
  model = copy;
  EXPECT_TRUE(bitwise_equal(model(input()), y));
  EXPECT_TRUE(bitwise_equal(function([&](Tensor x) { return model(x); })(input()), y));
}

struct OfStdArrays {
  std::array<Variable, 2> two{weight(), weight(2)};
  std::array<std::array<Variable, 2>, 2> square{{{weight(), weight()}, {weight(), weight()}}};
  std::array<Dense, 2> layers{Dense(4, linear, {.use_bias = false}), Dense(4, linear, {.use_bias = false})};
  Tensor operator()(Tensor x) const {
    for (const Variable& each : two) x = x * each;
    for (const auto& row : square)
      for (const Variable& each : row) x = x * each;
    return layers[1](layers[0](x));
  }
};
TEST(FoundArrays, OfCpp) {
  expect_found<OfStdArrays>(
      {"two_0", "two_1", "square_0_0", "square_0_1", "square_1_0", "square_1_1", "layers_0/kernel", "layers_1/kernel"});
}

struct OfCArrays {
  int times = 2;
  Variable two[2] = {weight(), weight(2)};
  Variable square[2][2] = {{weight(), weight()}, {weight(), weight()}};
  Dense layers[2] = {Dense(4, linear, {.use_bias = false}), Dense(4, linear, {.use_bias = false})};
  int sizes[3] = {1, 2, 3};
  const char* text = "text";
  Variable last = weight();
  Tensor operator()(Tensor x) const {
    for (const Variable& each : two) x = x * each;
    for (const auto& row : square)
      for (const Variable& each : row) x = x * each;
    return layers[1](layers[0](x)) * last * times * sizes[2];
  }
};
TEST(FoundArrays, OfC) {
  expect_found<OfCArrays>({"two_0", "two_1", "square_0_0", "square_0_1", "square_1_0", "square_1_1", "layers_0/kernel",
                           "layers_1/kernel", "last"});
}
TEST(FoundArrays, NumbersInArraysAreWatched) {
  Model<OfCArrays> model;
  const auto f = function([&](Tensor x) { return model(x); });
  f(input());
  model->sizes[2] = 5;
  EXPECT_TRUE(bitwise_equal(f(input()), model(input())));
  EXPECT_EQ(f.explain().retraces.back().reason, "field `sizes_2` of a model was 3, now 5");
}

struct Block {
  Variable gains[2] = {weight(), weight()};
  std::array<Variable, 1> more{weight()};
  Tensor operator()(const Tensor& x) const { return x * gains[0] * gains[1] * more[0]; }
};
struct AllElse {
  std::optional<Block> optional{Block()};
  std::optional<std::array<Variable, 2>> array_in_optional = std::array<Variable, 2>{weight(), weight()};
  std::pair<Block, std::string> pair{Block(), "text"};
  std::tuple<Variable, std::array<Variable, 1>> tuple{weight(), std::array{weight()}};
  std::variant<int, Block> variant{Block()};
  std::vector<Block> vector = [] {
    std::vector<Block> one;
    one.emplace_back();
    return one;
  }();
  std::deque<std::array<Variable, 1>> deque = [] {
    std::deque<std::array<Variable, 1>> one;
    one.push_back({weight()});
    return one;
  }();
  std::map<std::string, std::array<Variable, 1>> map = [] {
    std::map<std::string, std::array<Variable, 1>> one;
    one.emplace("key", std::array{weight()});
    return one;
  }();
  std::shared_ptr<Block> pointer = std::make_shared<Block>();
  std::shared_ptr<std::array<Variable, 1>> to_array = std::make_shared<std::array<Variable, 1>>(std::array{weight()});
  Tensor operator()(Tensor x) const {
    x = pair.first((*optional)(x)) * (*array_in_optional)[0] * (*array_in_optional)[1];
    x = std::get<Block>(variant)(x * std::get<0>(tuple) * std::get<1>(tuple)[0]);
    return (*pointer)(vector[0](x) * deque[0][0] * map.at("key")[0]) * (*to_array)[0];
  }
};
TEST(FoundArrays, InAllElse) {
  const auto block = [](const std::string& at) { return Names{at + "/gains_0", at + "/gains_1", at + "/more_0"}; };
  Names wanted;
  const auto add = [&](const Names& more) { wanted.insert(wanted.end(), more.begin(), more.end()); };
  add(block("optional"));
  add({"array_in_optional_0", "array_in_optional_1"});
  add(block("pair/first"));
  add({"tuple_0", "tuple_1_0"});
  add(block("variant"));
  add(block("vector_0"));
  add({"deque_0_0", "map_key_0"});
  add(block("pointer"));
  add({"to_array_0"});
  expect_found<AllElse>(wanted);
}

struct OfPlainFields {
  Variable single = weight();
  std::pair<Variable, int> pair{weight(), 1};
  std::tuple<Variable, Dense> tuple{weight(), Dense(4, linear, {.use_bias = false})};
  std::optional<Variable> optional{weight()};
  std::map<std::string, Variable> map = [] {
    std::map<std::string, Variable> one;
    one.emplace("key", weight());
    return one;
  }();
  Tensor operator()(const Tensor& x) const {
    return std::get<1>(tuple)(x * single * pair.first * std::get<0>(tuple) * *optional * map.at("key"));
  }
};
TEST(FoundArrays, VariablesInPairsTuplesOptionalsAndMaps) {
  expect_found<OfPlainFields>({"single", "pair/first", "tuple_0", "tuple_1/kernel", "optional", "map_key"});
}

/// A large C array is found by the addresses of what lies in it.
struct OfManyNumbers {
  double table[300] = {};
  Dense out{4, linear, {.use_bias = false}};
  Tensor operator()(const Tensor& x) const { return out(x) + table[0]; }
};
TEST(FoundArrays, BesideALargeTable) { expect_found<OfManyNumbers>({"dense/kernel"}); }

struct ArrayCell {
  std::array<Variable, 2> gains{weight(), weight()};
  Dense candidate[1] = {Dense(4)};
  std::vector<std::int64_t> state_sizes() const { return {4}; }
  RecurrentOutput operator()(const Tensor& x, const std::vector<Tensor>& state) const {
    const Tensor h = candidate[0](x * gains[0] + state[0] * gains[1]);
    return {h, {h}};
  }
};
TEST(FoundArrays, InACell) {
  const RNN layer{CustomCell(ArrayCell(), "mine")};
  const Tensor x = random::normal({2, 3, 4}), y = layer(x);
  EXPECT_EQ(names_of(layer.variables()), (Names{"rnn/mine/gains_0", "rnn/mine/gains_1", "rnn/mine/candidate_0/kernel",
                                                "rnn/mine/candidate_0/bias"}));
  const RNN copy = layer;
  EXPECT_TRUE(bitwise_equal(copy(x), y));
  EXPECT_NE(copy.variables()[0].cell(), layer.variables()[0].cell());
}

}  // namespace found_arrays_test
