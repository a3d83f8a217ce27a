/// After `a = b`, a is the function that b is: values, masks, options of layers, what is frozen; eagerly, and in what
/// was compiled with a before. Its variables stay its own.
#include <gtest/gtest.h>
#include "gradus/function/variable_cell.h"
#include "gradus/gradus.h"
#include "gradus/nn/layer.h"
#include "tests/errors.h"

namespace assignment_test {
using namespace gradus;

/// Two modules whose variables are alike and whose functions are not.
struct Pair {
  const char* name;
  Module a, b;
  Shape input;
};

std::vector<Pair> pairs() {
  const Shape row{4, 6}, sequence{3, 5, 6}, image{2, 8, 8, 3};
  const auto one = [](Module layer) -> Module { return Sequential{std::move(layer)}; };
  return {
      {"activation", Dense(3, relu), Dense(3, tanh), row},
      {"regularizer", Dense(3, relu), Dense(3, relu, {.kernel_regularizer = regularizers::L2(0.5)}), row},
      {"dropout", Dropout(0.5), Dropout(0.1), row},
      {"dropout_to_noise", Dropout(0.5), GaussianNoise(1), row},
      {"lambda", Lambda([](Tensor x) { return x * 2; }), Lambda([](Tensor x) { return x * 3; }), row},
      {"more_layers", Sequential{Dense(3, relu), Dense(2)}, Sequential{Dense(3, tanh), Dropout(0.5), Dense(2)}, row},
      {"fewer_layers", Sequential{Dense(3, relu), Dropout(0.9), Dense(2)}, Sequential{Dense(3, tanh), Dense(2)}, row},
      {"as_many_layers", Sequential{Dense(3), Dropout(0.1), Dense(2)}, Sequential{Dense(3), Dropout(0.8), Dense(2)},
       row},
      {"nested", Sequential{one(Dense(3, relu)), Dense(2)}, Sequential{Dense(3), one(Dense(2, sigmoid))}, row},
      {"epsilon", BatchNormalization({.epsilon = 1e-3}), BatchNormalization({.epsilon = 0.5}), row},
      {"momentum", BatchNormalization({.momentum = 0.9}), BatchNormalization({.momentum = 0.1}), row},
      {"layer_normalization", LayerNormalization({.epsilon = 1e-3}), LayerNormalization({.epsilon = 1}), row},
      {"kinds_of_normalization", LayerNormalization({.center = false}), RMSNormalization(), row},
      {"strides", Conv2D(2, 3, {.strides = 1}), Conv2D(2, 3, {.strides = 2}), image},
      {"padding", Conv2D(2, 3), Conv2D(2, 3, {.padding = Padding::same}), image},
      {"dilation", Conv2D(2, 3), Conv2D(2, 3, {.dilation = 2}), image},
      {"pool", MaxPooling2D(2), AveragePooling2D(2), image},
      {"go_backwards", GRU(4), GRU(4, {.go_backwards = true}), sequence},
      {"return_sequences", LSTM(4), LSTM(4, {.return_sequences = true}), sequence},
      {"recurrent_activation", SimpleRNN(4), SimpleRNN(4, {.activation = Activation(relu)}), sequence},
      {"merge_mode", Bidirectional(GRU(4)), Bidirectional(GRU(4), {.merge_mode = Merge::sum}), sequence},
      {"rnn", RNN(GRUCell(4)), RNN(GRUCell(4), {.return_sequences = true}), sequence},
      {"time_distributed", TimeDistributed(Dense(2, relu)), TimeDistributed(Dense(2, tanh)), sequence},
      {"spectral", SpectralNormalization(Dense(3, relu)),
       SpectralNormalization(Dense(3, tanh), {.power_iterations = 3}), row},
      {"normalization", Normalization(), Normalization({1.0}, {2.0}), row},
      {"policy", Sequential({Dense(3)}, {.policy = mixed_bfloat16}), Sequential{Dense(3)}, row},
      {"no_policy", Sequential{Dense(3)}, Sequential({Dense(3)}, {.policy = mixed_bfloat16}), row},
      {"scaling_policy", Sequential{Dense(3)}, Sequential({Dense(3)}, {.policy = mixed_float16}), row},
      {"attention", MultiHeadAttention(2, 3), MultiHeadAttention(2, 3, {.causal = true}), sequence},
  };
}

Tensor input_of(const Pair& pair, std::uint64_t seed = 1) { return random::normal(pair.input, {.seed = seed}); }

/// What `f` gives with the numbers of one seed.
Tensor drawn(const std::function<Tensor()>& f) {
  set_seed(17);
  const Tensor y = f();
  y.observed();
  return y;
}

/// `compiled`: a is, which draws other numbers than what runs op by op.
void expect_same_function(const std::function<Tensor(const Tensor&)>& a, const Module& b, const Tensor& x,
                          const std::string& what, bool compiled = false) {
  const Module other = b;
  const auto compiled_other = function([&](Tensor in) { return other(in); });
  for (const CallMode mode : {CallMode::inference, CallMode::training}) {
    const ModeScope scope(mode);
    const Tensor want = drawn([&] { return compiled ? compiled_other(x) : other(x); });
    const Tensor got = drawn([&] { return a(x); });
    ASSERT_EQ(got.spec(), want.spec()) << what;
    EXPECT_TRUE(bitwise_equal(got, want)) << what << (mode == CallMode::training ? ", training" : ", inference");
  }
}

class AssigningOf : public testing::TestWithParam<std::size_t> {};

TEST_P(AssigningOf, IsBecomingTheOther) {
  for (const bool is_move : {false, true}) {
    set_seed(5);
    const Pair pair = pairs()[GetParam()];
    const std::string what = text(pair.name, is_move ? ", moved" : ", copied");
    const Tensor x = input_of(pair);
    Module a = pair.a, b = pair.b;
    for (const Module& each : {std::ref(a), std::ref(b)}) {
      each(x);
      each(x, training);
    }
    for (Variable& variable : b.variables())
      if (is_floating(variable.dtype()) && variable.name().find("variance") == std::string::npos)
        variable.assign(random::normal(variable.shape(), {.dtype = variable.dtype(), .seed = 3}));
    const auto traced = function([&](Tensor in) { return a(in); });
    for (const CallMode mode : {CallMode::inference, CallMode::training}) {
      const ModeScope scope(mode);
      traced(x);
    }
    const Variables own = a.variables();
    const Module kept = b;
    if (is_move) a = std::move(b);
    else a = b;
    EXPECT_EQ(a.variables().cells(), own.cells()) << what;
    expect_same_function([&](const Tensor& in) { return a(in); }, kept, x, what + ", first");
    const Module now = a;
    expect_same_function([&](const Tensor& in) { return traced(in); }, now, x, what + ", traced", true);
    EXPECT_EQ(a.losses().size(), kept.losses().size()) << what;
    if (!is_move && own.size() > 0) {  // it is a copy
      for (Variable& variable : own) variable.assign(zeros(variable.shape(), variable.dtype()));
      expect_same_function([&](const Tensor& in) { return Module(b)(in); }, kept, x, what + ", the other");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AssigningOf, testing::Range<std::size_t>(0, pairs().size()),
                         [](const auto& info) { return std::string(pairs()[info.param].name); });

TEST(Assigning, OfUnbuiltModules) {
  for (std::size_t i = 0; i < pairs().size(); ++i) {
    const Pair pair = pairs()[i];
    const Tensor x = input_of(pair);
    Module built = pair.a;
    built(x);
    const Variables own = built.variables();
    set_seed(3);
    built = pair.b;  // not built: it is built as the other was
    EXPECT_EQ(built.variables().cells(), own.cells()) << pair.name;
    set_seed(3);
    Module copy = pair.b;
    copy(x);
    expect_same_function([&](const Tensor& in) { return built(in); }, copy, x, text(pair.name, ", not built"));
    Module unbuilt = pair.a;
    unbuilt = copy;
    expect_same_function([&](const Tensor& in) { return unbuilt(in); }, copy, x, text(pair.name, ", to one not built"));
  }
}

TEST(Assigning, OtherVariablesAreRefusedAndNothingChanges) {
  const Tensor x = random::normal({4, 6}, {.seed = 1});
  Sequential a{Dense(3, relu), Dense(2)};
  const Tensor before = a(x);
  const auto check = [&](Module b, const std::string& part) {
    for (const bool built : {true, false}) {
      Module other = b;
      if (built) other(x);
      const std::string message = error_of<InvalidArgument>([&] { a = static_cast<const Sequential&>(other); });
      expect_says(message, part);
      expect_says(message, "std::move(a)");
      EXPECT_TRUE(bitwise_equal(a(x), before));
    }
  };
  check(Sequential{Dense(4), Dense(2)}, "dense/kernel f32[6,3], there dense/kernel f32[6,4]");
  check(Sequential{Dense(3)}, "it has 4, the other 2");
  check(Sequential{Dense(3), Dense(2), Dense(1)}, "it has 4, the other 6");
  check(Sequential{Dropout(0.5)}, "it has 4, the other 0");
  check(Sequential{Dense(3, linear, {.dtype = f64}), Dense(2)}, "f64[6,3]");
}

TEST(Assigning, NotInATracedFunction) {
  Sequential a{Dense(3, relu)}, b{Dense(3)};
  const Tensor x = ones({2, 4});
  a(x), b(x);
  const auto f = function([&](Tensor in) {
    a = b;
    return a(in);
  });
  expect_says(error_of<InvalidArgument>([&] { f(x); }), "within a traced function");
}

TEST(Assigning, ItselfAndItsParts) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  Sequential a{Dense(3, relu), Dense(3)};
  const Tensor y = a(x);
  Module& same = a;
  a = static_cast<const Sequential&>(same);
  EXPECT_TRUE(bitwise_equal(a(x), y));
  a = std::move(static_cast<Sequential&>(same));
  EXPECT_TRUE(bitwise_equal(a(x), y));
  a.layer(0) = a.layer(1);
  EXPECT_TRUE(bitwise_equal(a.layer(0)(x), a.layer(1)(x)));
  EXPECT_TRUE(bitwise_equal(a(x), a.layer(1)(a.layer(1)(x))));
  Sequential whole{Sequential{Dense(3, tanh)}, Dropout(0.5)};
  const Tensor part = whole.layer(0)(x);
  whole(x);
  static_cast<Module&>(whole) = whole.layer(0);
  EXPECT_TRUE(bitwise_equal(whole(x, training), part));
  Sequential unbuilt{Sequential{Dense(3)}, Dense(5)};
  static_cast<Module&>(unbuilt) = std::move(unbuilt.layer(0));
  EXPECT_EQ(unbuilt(x).shape(), (Shape{4, 3}));
}

TEST(Assigning, SwappedModulesAreSwappedInWhatWasTraced) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  Sequential a{Dense(3, relu)}, b{Dense(3, tanh), Dropout(0.5)};
  const Tensor of_a = a(x), of_b = b(x);
  const auto f = function([&](Tensor in) { return a(in); });
  const auto g = function([&](Tensor in) { return a.layer(0)(in); });
  f(x), g(x);
  std::swap(a, b);
  EXPECT_TRUE(bitwise_equal(f(x), of_b));
  EXPECT_TRUE(bitwise_equal(g(x), of_b));
  std::swap(a, b);
  EXPECT_TRUE(bitwise_equal(f(x), of_a));
  const Sequential moved = std::move(a);
  expect_says(error_of([&] { f(x); }), "moved from");  // as it says op by op
}

struct Block {
  Dense inner{3, relu};
  Dropout drop{0.5};
  Tensor operator()(const Tensor& x) const { return drop(inner(x)); }
};
struct Net {
  bool doubled = false;
  Dense first{3, relu};
  Block block{};
  std::optional<Dropout> drop{};
  std::vector<Dense> more{};
  Variable shift{zeros({3}), "shift"};
  Model<Block> model{};
  Tensor operator()(const Tensor& in) const {
    Tensor x = model(block(first(in))) + shift;
    if (drop) x = (*drop)(x);
    for (const Dense& layer : more) x = layer(x);
    return doubled ? x * 2 : x;
  }
};

/// Each of them changes a model, whose compiled calls have to follow.
TEST(Assigning, ToFieldsOfModels) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  struct Change {
    const char* name;
    std::function<void(Model<Net>&)> make;
    const char* reason;
  };
  const Dense extra = [&] {
    Dense layer(3, sigmoid);
    layer(x);
    return layer;
  }();
  const std::vector<Change> changes{
      {"field", [&](Model<Net>& m) { m->first = extra; }, "first"},
      {"field of an unbuilt one", [](Model<Net>& m) { m->first = Dense(3, tanh); }, "first"},
      {"nested struct", [&](Model<Net>& m) { m->block.inner = extra; }, "block/inner"},
      {"nested struct, no variables", [](Model<Net>& m) { m->block.drop = Dropout(0.1); }, "block/drop"},
      {"a whole nested struct", [](Model<Net>& m) { m->block = Block{Dense(3, tanh), Dropout(0.2)}; }, "block/"},
      {"a model within", [](Model<Net>& m) { m->model->drop = Dropout(0.2); }, "drop"},
      {"an optional gets a layer", [](Model<Net>& m) { m->drop = Dropout(0.3); },
       "drop` of a model was none, now a layer"},
      {"it gets another", [](Model<Net>& m) { m->drop = Dropout(0.6); }, "drop"},
      {"emplace", [](Model<Net>& m) { m->drop.emplace(0.1); }, "drop"},
      {"reset", [](Model<Net>& m) { m->drop.reset(); }, ""},  // as before it got one
      {"nullopt", [](Model<Net>& m) { m->drop = std::nullopt; }, ""},
      {"push_back", [&](Model<Net>& m) { m->more.push_back(extra); }, "more_0` of a model is new"},
      {"an element", [&](Model<Net>& m) { m->more[0] = Dense(3, relu); }, "more_0"},
      {"another vector", [&](Model<Net>& m) { m->more = {extra, extra}; }, "more_"},
      {"swapped elements",
       [&](Model<Net>& m) {
         m->more[1].kernel().assign(zeros({3, 3}));
         std::swap(m->more[0], m->more[1]);
       },
       "more_"},
      {"clear", [](Model<Net>& m) { m->more.clear(); }, ""},
      {"a plain field", [](Model<Net>& m) { m->doubled = true; }, "doubled"},
  };
  Model<Net> model;
  model(x);
  const auto f = function([&](Tensor in) { return model(in); });
  const auto check = [&](const std::string& what) {
    for (const CallMode mode : {CallMode::inference, CallMode::training}) {
      const ModeScope scope(mode);
      const auto again = function([&](Tensor in) { return model(in); });
      const Tensor want = drawn([&] { return again(x); });
      EXPECT_TRUE(bitwise_equal(drawn([&] { return f(x); }), want)) << what;
    }
  };
  check("at first");
  for (const Change& change : changes) {
    const std::size_t before = f.explain().retraces.size();
    change.make(model);
    check(change.name);
    const auto retraces = f.explain().retraces;
    if (*change.reason == 0) {
      EXPECT_EQ(retraces.size(), before) << change.name;
      continue;
    }
    ASSERT_GT(retraces.size(), before) << change.name;
    EXPECT_TRUE(
        std::any_of(retraces.begin() + static_cast<std::ptrdiff_t>(before), retraces.end(),
                    [&](const auto& retrace) { return retrace.reason.find(change.reason) != std::string::npos; }))
        << change.name << ": " << retraces[before].reason;
    EXPECT_LT(f.explain().variants, 7) << "what is over is given up";
  }
}

/// Layers without variables in all that a walk goes into: set, changed and reset after tracing.
struct Holders {
  std::optional<Dropout> optional{};
  std::shared_ptr<Dropout> pointer{};
  std::map<std::string, Dropout> map{};
  std::vector<std::optional<Dropout>> vector{std::nullopt, std::nullopt};
  std::variant<std::monostate, Dropout, GaussianNoise> variant{};
  std::pair<int, std::optional<Dropout>> pair{};
  Tensor operator()(const Tensor& in) const {
    Tensor x = in;
    if (optional) x = (*optional)(x);
    if (pointer) x = (*pointer)(x);
    for (const auto& [key, layer] : map) x = layer(x);
    for (const auto& each : vector)
      if (each) x = (*each)(x);
    if (const auto* drop = std::get_if<Dropout>(&variant)) x = (*drop)(x);
    if (const auto* noise = std::get_if<GaussianNoise>(&variant)) x = (*noise)(x);
    return pair.second ? (*pair.second)(x) : x;
  }
};

TEST(Assigning, LayersWithoutVariablesComeAndGo) {
  using Change = std::function<void(Holders&, double rate)>;  // below 0: reset
  const std::vector<std::pair<const char*, Change>> changes{
      {"optional", [](Holders& h, double r) { r < 0 ? h.optional.reset() : void(h.optional = Dropout(r)); }},
      {"pointer", [](Holders& h, double r) { h.pointer = r < 0 ? nullptr : std::make_shared<Dropout>(r); }},
      {"map", [](Holders& h, double r) { r < 0 ? h.map.clear() : void(h.map.insert_or_assign("a", Dropout(r))); }},
      {"vector", [](Holders& h, double r) { r < 0 ? h.vector[1].reset() : void(h.vector[1].emplace(r)); }},
      {"variant",
       [](Holders& h, double r) {
         if (r < 0) h.variant = std::monostate();
         else if (r < 0.5) h.variant = GaussianNoise(r);
         else h.variant = Dropout(r);
       }},
      {"pair", [](Holders& h, double r) { r < 0 ? h.pair.second.reset() : void(h.pair.second.emplace(r)); }}};
  const Tensor x = ones({8, 32});
  for (const auto& [name, change] : changes) {
    Model<Holders> model;
    const auto f = function([&](Tensor in) { return model(in); });
    int step = 0;
    for (const double rate : {-1.0, 0.9, 0.2, 0.2, -1.0, 0.6, -1.0}) {
      change(*model.operator->(), rate);
      const auto again = function([&](Tensor in) { return model(in); });
      const ModeScope training_mode(CallMode::training);
      const Tensor want = drawn([&] { return again(x); });
      EXPECT_TRUE(bitwise_equal(drawn([&] { return f(x); }), want)) << name << ", step " << step;
      EXPECT_EQ(bitwise_equal(want, x), rate < 0) << name << ", step " << step;
      ++step;
    }
    EXPECT_LE(f.explain().variants, 3) << name;
  }
}

TEST(Assigning, ASharedLayerIsOneAfterIt) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  Dense layer(3, relu);
  Sequential one{shared(layer), Dropout(0.1)}, two{Dense(3), shared(layer)};
  one(x), two(x);
  const auto f = function([&](Tensor in) { return one(in) + two(in); });
  f(x);
  Dense other(3, tanh);
  other(x);
  layer = other;
  EXPECT_TRUE(bitwise_equal(one(x), other(x)));
  EXPECT_TRUE(bitwise_equal(two(x), other(two.layer(0)(x))));
  EXPECT_TRUE(bitwise_equal(f(x), one(x) + two(x)));
  EXPECT_EQ(one.variables()[0].cell(), two.variables()[2].cell());
  one.layer(0) = Dense(3, sigmoid);
  EXPECT_TRUE(bitwise_equal(layer(x), one(x)));
  EXPECT_TRUE(bitwise_equal(f(x), one(x) + two(x)));
  Dense third(3);
  third(x);
  one.layer(0) = shared(third);  // another one from now on, of this model alone
  EXPECT_EQ(one.variables()[0].cell(), third.kernel().cell());
  EXPECT_NE(two.variables()[2].cell(), third.kernel().cell());
  EXPECT_TRUE(bitwise_equal(f(x), one(x) + two(x)));
}

/// What a model holds by a pointer to it belongs to somebody else, and is not rebound.
struct Borrowing {
  Dense own{3, relu};
  const Dense* borrowed = nullptr;
  Tensor operator()(const Tensor& x) const { return (*borrowed)(own(x)); }
};

TEST(Assigning, WhatIsBorrowedStaysItsOwners) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  const Dense first(3), second(3, tanh);
  Model<Borrowing> a(Borrowing{.borrowed = &first}), b(Borrowing{.own = Dense(3, tanh), .borrowed = &first});
  a(x), b(x);
  a = b;
  EXPECT_TRUE(bitwise_equal(a(x), b(x)));
  EXPECT_EQ(a.variables()[2].cell(), first.kernel().cell());
  Model<Borrowing> other(Borrowing{.borrowed = &second});
  const Tensor before = a(x), of_other = other(x);
  expect_says(error_of<InvalidArgument>([&] { a = other; }), "belong to somebody else");
  EXPECT_TRUE(bitwise_equal(a(x), before));
  EXPECT_TRUE(bitwise_equal(other(x), of_other));
}

TEST(Assigning, AModelKeepsItsFieldsWhereTheyAre) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  Model<Net> a, b(Net{.doubled = true, .first = Dense(3, tanh)});
  a(x), b(x);
  const Dense& first = a->first;
  const Variable& shift = a->shift;
  const auto cell = shift.cell();
  b->shift.assign(ones({3}));
  const auto f = function([&](Tensor in) { return a(in); });
  f(x);
  a = b;
  EXPECT_TRUE(bitwise_equal(a(x), b(x)));
  EXPECT_TRUE(bitwise_equal(f(x), b(x)));
  EXPECT_TRUE(bitwise_equal(first(x), b->first(x)));
  EXPECT_EQ(shift.cell(), cell);
  shift.cell()->handle.assign(zeros({3}));
  EXPECT_FALSE(bitwise_equal(f(x), b(x)));
  EXPECT_TRUE(bitwise_equal(f(x), a(x)));
  EXPECT_EQ(a.variables().size(), b.variables().size());
}

TEST(Assigning, APlainFieldOfAModelWithinASequentialIsSeen) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  Model<Net> net;
  net(x);
  const Module& plain = net;
  const auto f = function([&](Tensor in) { return plain(in); });
  f(x);
  net->doubled = true;
  EXPECT_TRUE(bitwise_equal(f(x), net(x)));
}

TEST(Assigning, TheOptimizerGoesOn) {
  const Tensor x = random::normal({8, 3}, {.seed = 1}), y = random::normal({8, 2}, {.seed = 2});
  const MeanSquaredError loss;
  Sequential a{Dense(4, relu), Dense(2)}, b{Dense(4, tanh), Dropout(0.2), Dense(2)};
  a(x), b(x);
  Adam optimizer;
  const auto update = [&](const Module& model) {
    GradientTape tape;
    optimizer.apply_gradients(tape.gradient(loss(y, model(x, training)), model.trainable_variables()));
  };
  const auto step = function([&] { update(a); });
  step(), step();
  a = b;
  // The same by hand, with state of its own.
  Sequential other = b;
  Adam copy = optimizer;
  copy.rebind(other.trainable_variables());
  set_seed(4);
  step(), step();
  set_seed(4);
  std::swap(optimizer, copy);
  const auto by_hand = function([&] { update(other); });
  by_hand(), by_hand();
  for (std::size_t i = 0; i < a.variables().size(); ++i)
    EXPECT_TRUE(bitwise_equal(a.variables()[i].value(), other.variables()[i].value())) << i;
}

TEST(Assigning, ValuesAloneBetweenCopiesAreNoRetrace) {
  const Tensor x = random::normal({4, 3}, {.seed = 1});
  const auto check = [&](auto online) {
    online(x);
    auto target = online;
    const auto f = function([&](Tensor in) { return target(in); });
    f(x);
    for (int i = 0; i < 3; ++i) {
      for (Variable& variable : online.variables()) variable.assign(variable.value() * 1.5 + 0.1);
      target = online;
      EXPECT_TRUE(bitwise_equal(f(x), online(x)));
    }
    EXPECT_TRUE(f.explain().retraces.empty()) << f.explain().retraces[0].reason;
  };
  check(Sequential{Dense(3, relu), BatchNormalization(), Sequential{Dropout(0.5), Dense(2)}});
  check(Model<Net>());
}

TEST(Assigning, NamesOfThePlaceStay) {
  const Tensor x = ones({2, 3});
  Model<Net> model({}, {.name = "net"});
  model(x);
  const std::string name = model->first.kernel().name();
  EXPECT_EQ(name, "net/first/kernel");
  Dense other(3, tanh, {.name = "other"});
  other(x);
  model->first = other;
  EXPECT_EQ(model->first.kernel().name(), "net/other/kernel");
  model->first = Dense(3);
  EXPECT_EQ(model->first.kernel().name(), "net/other/kernel");
  Sequential a({Dense(2)}, {.name = "a"}), b({Dense(2)}, {.name = "b"});
  a(x), b(x);
  a = b;
  EXPECT_EQ(a.name(), "a");
  EXPECT_EQ(a.variables()[0].name(), "a/dense/kernel");
  EXPECT_EQ(b.variables()[0].name(), "b/dense/kernel");
}

TEST(Assigning, AFieldComputesInTheTypesOfItsModel) {
  const Tensor x = ones({2, 3});
  Model<Block> model({}, {.policy = mixed_bfloat16});
  model->inner = Dense(3, tanh);  // before it is built
  EXPECT_EQ(model(x).dtype(), bf16);
  EXPECT_EQ(model->inner(x).dtype(), bf16);
  model->inner = Dense(3, relu);
  EXPECT_EQ(model->inner(x).dtype(), bf16);
  Sequential sequence({Dense(3)}, {.policy = mixed_float16});
  sequence.layer(0) = Dense(4);
  EXPECT_EQ(sequence(x).dtype(), f16);
  EXPECT_EQ(sequence.loss_scale(), 32768);
}

TEST(Assigning, TakesMasksAndLossScalesAlong) {
  const Tensor x = ones({2, 3});
  Sequential a({Dense(2, relu)}, {.policy = mixed_float16}), b({Dense(2)}, {.policy = mixed_float16});
  a(x), b(x);
  prune_to(b.variables()[0], 0.5, {});
  const auto scale = a.layer_behind().loss_scale();
  b.layer_behind().loss_scale()->variables()[0].assign(full({}, 16, f32));
  a = b;
  EXPECT_EQ(a.loss_scale(), 16);
  EXPECT_EQ(a.layer_behind().loss_scale(), scale) << "known to the optimizer's checkpoints";
  EXPECT_EQ(a.variables()[0].cell()->loss_scale, scale);
  EXPECT_TRUE(bitwise_equal(a.variables()[0].mask(), b.variables()[0].mask()));
  b.variables()[0].set_mask({});
  a = b;
  EXPECT_FALSE(a.variables()[0].mask().defined());
  Sequential plain{Dense(2)};
  plain(x);
  a = plain;
  EXPECT_EQ(a.loss_scale(), 1);
  EXPECT_EQ(a.variables()[0].cell()->loss_scale, nullptr);
}

TEST(Assigning, AHandleOfAnotherKindSaysSo) {
  const Tensor x = ones({2, 3}), sequence = ones({1, 2, 3});
  const auto check = [&](auto handle, const char* type, auto use) {
    static_cast<Module&>(handle) = Lambda([](Tensor in) { return in; });
    handle.Module::operator()(x);  // builds
    SCOPED_TRACE(type);
    expect_says(error_of<InvalidArgument>([&] { use(handle); }), type);
  };
  check(Dense(3), "Dense", [](auto& m) { m.kernel(); });
  check(Dense(3), "Dense", [](auto& m) { m.bias(); });
  check(Sequential(), "Sequential", [](auto& m) { m.add(Dense(2)); });
  check(Sequential(), "Sequential", [](auto& m) { m.layer(0); });
  check(Embedding(4, 2), "Embedding", [](auto& m) { m.table(); });
  check(Embedding(4, 2), "Embedding", [&](auto& m) { m.compute_mask(x); });
  check(GRU(2), "recurrent", [&](auto& m) { m.with_state(sequence); });
  check(RNN(GRUCell(2)), "RNN", [&](auto& m) { m.with_state(sequence); });
  check(GRUCell(2), "RecurrentCell", [&](auto& m) { m(x, {x, x}); });
  check(Bidirectional(GRU(2)), "Bidirectional", [&](auto& m) { m(sequence, RecurrentInput{}); });
  check(MultiHeadAttention(1, 2), "MultiHeadAttention",
        [&](auto& m) { m(sequence, sequence, sequence, AttentionMask{}); });
  check(Attention(), "Attention", [&](auto& m) { m(sequence, sequence); });
  check(Normalization(), "Normalization", [&](auto& m) { m.adapt(x); });
  check(Model<Block>(), "another kind", [&](auto& m) { static_cast<void>(m->drop); });
  check(Dense(3), "Dense", [&](auto& m) { low_rank(m, {.rank = 1}); });
}

TEST(Assigning, WhatATraceMakesAndDropsIsNoState) {
  const Tensor x = ones({2, 3});
  const auto f = function([](Tensor in) { return Dropout(0.5)(in); });
  f(x), f(x);
  EXPECT_EQ(f.explain().variants, 1);
  EXPECT_TRUE(f.explain().retraces.empty());
  Sequential original{Dropout(0.9)};
  original(x);
  const auto g = function([&](Tensor in) {
    const Sequential copy = original;
    return copy(in, training);
  });
  g(x), g(x);
  EXPECT_TRUE(g.explain().retraces.empty());
  original = Sequential{Lambda([](Tensor in) { return in * 3; })};
  EXPECT_TRUE(bitwise_equal(g(x), x * 3)) << "of what was copied it is known";
}

}  // namespace assignment_test
