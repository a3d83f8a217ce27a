/// Vectors, maps and plain structs of tensors as arguments and results of a function: the bits of the plain call,
/// retraces by length and keys alone, gradients, masks, exported steps.
#include <gtest/gtest.h>
#include <map>
#include <vector>
#include "gradus/base/rooms.h"
#include "gradus/function/function.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/embedding.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/random.h"
#include "gradus/ops/reduce.h"
#include "gradus/ops/shape.h"
#include "gradus/ops/sort.h"
#include "tests/errors.h"

namespace gradus::structures_test {
namespace {

enum class Kind { doubled, negated };
struct Pair {
  Tensor first, second;
};
struct State {
  std::vector<Tensor> keys = {}, values = {};
  Pair both = {};
};
struct Configured {
  State state;
  int layers = 1;
  Kind kind = Kind::doubled;
  bool adds = true;
};
struct WithArray {
  Tensor rows[3];
};
struct Tree {
  Tensor value;
  std::vector<Tree> branches = {};
};
using Named = std::map<std::string, Tensor>;

Tensor number(int seed) { return random::normal({3, 5}, {.seed = static_cast<std::uint64_t>(seed)}); }
std::vector<Tensor> numbers(int count) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) all.push_back(number(i + 1));
  return all;
}
Tree tree(int depth) {
  Tree made{number(depth)};
  for (int i = 0; i < depth; ++i) made.branches.push_back(tree(depth - 1));
  return made;
}

// Each gives a value of the type that it takes.
Tensor changed(const Tensor& x) { return tanh(x) * 2; }
std::vector<Tensor> changed(const std::vector<Tensor>& all) {
  std::vector<Tensor> made;
  for (const Tensor& x : all) made.push_back(changed(x) + all.front());
  return made;
}
std::vector<std::vector<Tensor>> changed(const std::vector<std::vector<Tensor>>& all) {
  std::vector<std::vector<Tensor>> made;
  for (const auto& each : all) made.push_back(changed(each));
  return made;
}
Named changed(const Named& all) {
  Named made;
  for (const auto& [name, x] : all) made[name + "_changed"] = changed(x) + all.begin()->second;
  return made;
}
Pair changed(const Pair& x) { return {changed(x.second), x.first + x.second}; }
State changed(const State& x) { return {changed(x.keys), x.values, changed(x.both)}; }
std::tuple<State, Tensor> changed(const Configured& x) {
  State made = changed(x.state);
  for (Tensor& value : made.values) value = x.kind == Kind::doubled ? value * (2 * x.layers) : -value;
  return {made, x.adds ? made.both.first + made.both.second : made.both.first};
}
WithArray changed(const WithArray& x) { return {{x.rows[1], changed(x.rows[2]), x.rows[0] + x.rows[1]}}; }
Tree changed(const Tree& x) {
  Tree made{changed(x.value)};
  for (const Tree& branch : x.branches) made.branches.push_back(changed(branch)), made.value += branch.value;
  return made;
}

/// All tensors of a value, in order.
template <class T> std::vector<Tensor> tensors_of(const T& whole) {
  std::string statics;
  Tensors all;
  detail::flatten_argument(whole, all, statics);
  return all;
}

template <class T> struct Example {
  static std::vector<T> values();
};
template <> std::vector<std::vector<Tensor>> Example<std::vector<Tensor>>::values() { return {numbers(2), numbers(5)}; }
template <> std::vector<std::vector<std::vector<Tensor>>> Example<std::vector<std::vector<Tensor>>>::values() {
  return {{numbers(2), numbers(1)}, {numbers(1), numbers(2)}, {}};
}
template <> std::vector<Named> Example<Named>::values() {
  return {{{"a", number(1)}, {"b", number(2)}}, {{"a", number(1)}, {"c", number(2)}}, {{"a 1:b", number(3)}}};
}
template <> std::vector<Pair> Example<Pair>::values() { return {{number(1), number(2)}}; }
template <> std::vector<State> Example<State>::values() {
  return {{numbers(2), numbers(3), {number(4), number(5)}}, {numbers(3), numbers(2), {number(4), number(5)}}};
}
template <> std::vector<Configured> Example<Configured>::values() {
  const State state = Example<State>::values()[0];
  return {{state}, {state, 2}, {state, 2, Kind::negated}, {state, 2, Kind::negated, false}};
}
template <> std::vector<WithArray> Example<WithArray>::values() { return {{{number(1), number(2), number(3)}}}; }
template <> std::vector<Tree> Example<Tree>::values() { return {tree(2), tree(1), tree(3)}; }

template <class T> struct Structures : testing::Test {};
using Types = testing::Types<std::vector<Tensor>, std::vector<std::vector<Tensor>>, Named, Pair, State, Configured,
                             WithArray, Tree>;
TYPED_TEST_SUITE(Structures, Types);

TYPED_TEST(Structures, AreTakenAndGivenWithTheBitsOfThePlainCall) {
  for (const bool eagerly : {false, true}) {
    const auto f = function([](const TypeParam& x) { return changed(x); }, {.run_eagerly = eagerly});
    for (int call = 0; call < 3; ++call)
      for (const TypeParam& value : Example<TypeParam>::values()) {
        const std::vector<Tensor> made = tensors_of(f(value)), wanted = tensors_of(changed(value));
        ASSERT_EQ(made.size(), wanted.size());
        for (std::size_t i = 0; i < made.size(); ++i) EXPECT_TRUE(bitwise_equal(made[i], wanted[i])) << i;
      }
  }
}

TYPED_TEST(Structures, AreOneVariantForEachStructure) {
  const auto values = Example<TypeParam>::values();
  const auto f = function([](const TypeParam& x) { return changed(x); });
  for (int call = 0; call < 2; ++call)
    for (const TypeParam& value : values) f(value);
  EXPECT_EQ(f.explain().variants, static_cast<int>(values.size()));
}

TYPED_TEST(Structures, HaveGradients) {
  const auto sum = [](const auto& value) {
    Tensor all = constant(0.0f);
    for (const Tensor& x : tensors_of(value)) all = all + reduce_sum(square(x));
    return all;
  };
  const auto f = function([](const TypeParam& x) { return changed(x); });
  const auto whole_step = function([&](const TypeParam& x) {
    GradientTape tape;
    const std::vector<Tensor> sources = tensors_of(x);
    for (const Tensor& source : sources) tape.watch(source);
    return tape.gradient(sum(changed(x)), sources, {.unconnected = Unconnected::zero});
  });
  for (const TypeParam& value : Example<TypeParam>::values()) {
    const std::vector<Tensor> sources = tensors_of(value);
    const auto gradients = [&](const auto& call) {
      GradientTape tape;
      for (const Tensor& source : sources) tape.watch(source);
      return tape.gradient(sum(call(value)), sources, {.unconnected = Unconnected::zero});
    };
    const auto wanted = gradients([](const TypeParam& x) { return changed(x); });
    const auto of_function = gradients(f), within = whole_step(value);
    ASSERT_EQ(of_function.size(), sources.size());
    ASSERT_EQ(within.size(), sources.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(bitwise_equal(of_function[i], wanted[i])) << i;
      EXPECT_TRUE(bitwise_equal(within[i], wanted[i])) << i;
    }
  }
}

TEST(Structure, AnotherLengthOrKeyIsARetraceWithItsReason) {
  const auto f = function([](const std::vector<Tensor>& all) { return all.front(); });
  f(numbers(2)), f(numbers(3));
  ASSERT_EQ(f.explain().retraces.size(), 1u);
  EXPECT_EQ(f.explain().retraces[0].reason, "there were 2 tensor arguments, now 3");
  const auto of_keys = function([](const Named& all) { return all.begin()->second; });
  of_keys(Named{{"a", number(1)}}), of_keys(Named{{"b", number(1)}});
  EXPECT_EQ(of_keys.explain().retraces.at(0).reason, "static arguments were { 1:a } , now { 1:b } ");
  const auto few = function([](const std::vector<Tensor>& all) { return all; }, {.max_variants = 2});
  few(numbers(0)), few(numbers(1));
  expect_error<ResourceExhausted>([&] { few(numbers(2)); }, {"there were 0 tensor arguments, now 1"});
}

TEST(Structure, SizesOfTensorsInAVectorVaryAsOthersDo) {
  const auto f = function([](const std::vector<Tensor>& all, const Tensor& row) {
    std::vector<Tensor> longer;
    for (const Tensor& x : all) longer.push_back(concat({x, row}, 0));
    return longer;
  });
  std::vector<Tensor> kept(3, zeros({0, 2}));
  for (int n = 1; n < 8; ++n) {
    kept = f(kept, full({1, 2}, n));
    EXPECT_EQ(kept[2].to_vector<float>().back(), n);
    EXPECT_EQ(kept[1].shape(), (Shape{n, 2}));
  }
  EXPECT_LE(f.explain().variants, 3);
}

TEST(Structure, FloatsAndVariablesOfVectorsAreTensorsWithin) {
  const auto f = function([](const std::vector<Tensor>& factors, const std::map<std::string, Tensor>& all) {
    return factors[0] * factors[1] + all.at("w");
  });
  std::map<std::string, Variable> all;
  all.emplace("w", Variable(constant(1.0f), "w"));
  EXPECT_EQ(f(std::vector<double>{2, 3}, all).item(), 7);
  all.at("w").assign(constant(2.0f));
  EXPECT_EQ(f(std::vector<double>{2, 4}, all).item(), 10);
  EXPECT_EQ(f.explain().variants, 1);
  const auto static_one = function([](const std::vector<int>& powers, Tensor x) { return x * powers.back(); });
  EXPECT_EQ(static_one(std::vector{1, 3}, constant(2.0f)).item(), 6);
  EXPECT_EQ(static_one(std::vector{1, 4}, constant(2.0f)).item(), 8);
}

TEST(Structure, MasksAreCarried) {
  const Embedding embedding(7, 3, {.mask_zero = true});
  const std::vector<Tensor> all{embedding(constant({{1, 0}})), embedding(constant({{2, 3}}))};
  const auto f = function([](const std::vector<Tensor>& in) {
    EXPECT_TRUE(SequenceMask::of(in[0]).defined());
    return Pair{in[1], in[0]};
  });
  for (int call = 0; call < 2; ++call)
    EXPECT_EQ(SequenceMask::of(f(all).second).to_vector<bool>(), (std::vector<bool>{true, false}));
}

TEST(Structure, StructsOfTheLibraryAreResults) {
  const auto f = function([](Tensor x) { return top_k(x, 2); });
  EXPECT_EQ(f(constant({3.f, 1.f, 2.f})).values.to_vector<float>(), (std::vector<float>{3, 2}));
  const Variable w(constant(3.0f), "w");
  const auto step =
      function([&](Tensor x) { return value_and_gradient([&] { return Loss::mean(w * x); }, Variables{w}); });
  const LossAndGradients made = step(constant(2.0f));
  EXPECT_EQ(made.loss.item(), 6);
}

TEST(Structure, ExportedStepsTakeARestAndGiveStructs) {
  const auto one = function([](const Tensor& a, const Tensor& b, const Tensor& c) { return std::tuple{a + b, a * c}; });
  const auto rest =
      function([](const Tensor& a, const std::vector<Tensor>& more) { return Pair{a + more[0], a * more[1]}; });
  const std::vector<Spec> specs(3, Spec{f32, {4}});
  EXPECT_EQ(rest.stablehlo(specs), one.stablehlo(specs));
  const auto of_struct = function([](const Pair& x) { return x.first; });
  expect_error<InvalidArgument>([&] { of_struct.stablehlo(specs); }, {"make each a Tensor, or the last a std::vector"});
}

TEST(Structure, AnEmptyTensorInOneIsNamed) {
  const auto f = function([](const std::vector<Tensor>& all) { return all.front(); });
  expect_error<InvalidArgument>([&] { f(std::vector<Tensor>{number(1), Tensor()}); },
                                {"argument 1 is an empty tensor"});
}

}  // namespace
}  // namespace gradus::structures_test
