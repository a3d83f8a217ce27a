/// A small binding: functions, a model, a training and a data set without C++ types, by gradus.h and gradus/erased
/// alone.
#include <gtest/gtest.h>
#include <map>
#include "gradus/erased/erased.h"
#include "gradus/gradus.h"
#include "tests/errors.h"

namespace gradus::erased_test {
namespace {

using erased::In;
using erased::Tensors;

/// An object as another language has it: named fields of any kind.
struct Object {
  std::map<std::string, Module> layers;
  std::map<std::string, Variable> variables;
  std::map<std::string, std::string> plain;
};

/// relu(first(x)) * scale, then last. What it computes depends on a plain field, too.
struct ObjectLayer final : erased::NetLayer {
  explicit ObjectLayer(Object o) : object(std::move(o)) { adopt_fields(); }
  std::shared_ptr<Layer> clone() const override { return std::make_shared<ObjectLayer>(object); }
  std::string struct_name() const override { return "Object"; }
  void visit(const erased::FieldVisitor& visitor) const override {
    for (const auto& [name, layer] : object.layers) visitor.layer(name, layer);
    for (const auto& [name, variable] : object.variables) visitor.variable(name, variable);
    for (const auto& [name, value] : object.plain) visitor.plain(name, value);
  }
  Tensor call(const Tensor& x) const override {
    const Tensor hidden = object.layers.at("first")(x) * object.variables.at("scale");
    return object.layers.at("last")(object.plain.at("activation") == "relu" ? relu(hidden) : tanh(hidden));
  }
  void run_on(In inputs) const override { call(inputs[0]); }
  Object object;
};

erased::Model model_of(const std::string& activation = "relu") {
  set_seed(3);
  Object object;
  object.layers.emplace("first", Dense(8));
  object.layers.emplace("last", Dense(1));
  object.variables.emplace("scale", Variable(constant(1.0f)));
  object.plain.emplace("activation", activation);
  return erased::Model(std::make_shared<ObjectLayer>(std::move(object)));
}

Tensor called(const Module& model, const Tensor& x) {
  const erased::NetCall call(model);
  const Tensor y = call.layer().call(x);
  call.finish({x.spec()});
  return y;
}

erased::Task task_of(const erased::Model& model) {
  erased::Task task{.fields = 2};
  task.examine = [&model](In fields) {
    const erased::StepScope step(model.layer_behind());
    erased::Examined batch{.y = fields[1]};
    batch.prediction = called(model, fields[0]);
    batch.loss = MeanSquaredError()(batch.y, batch.prediction);
    erased::add_penalties(batch, model.layer_behind());
    return batch;
  };
  task.build = [&model](const std::vector<Spec>& specs, CallMode mode) {
    return erased::build_all(model.layer_behind(), std::span(specs).first(1), mode);
  };
  return task;
}

/// n elements (x, y) with y = the sum of x, made one by one.
erased::Pipeline sums(std::int64_t n) {
  return erased::Pipeline::generate({{f32, {3}}, {f32, {1}}},
                                    [n, i = std::int64_t{0}]() mutable -> std::optional<Tensors> {
                                      if (i == n) return {};
                                      const auto k = static_cast<float>(i++ % 7);
                                      const Tensor x = constant({k / 7, 1 - k / 7, k * k / 49});
                                      return Tensors{x, reshape(reduce_sum(x), {1})};
                                    });
}

TEST(Erased, AFunctionIsTracedOncePerKey) {
  erased::TracedFunction f({.name = "scaled"}, nullptr, 0);
  int traced = 0;
  const auto call = [&](const Tensor& x, double by) {
    const erased::StaticArguments statics{.values = "by " + std::to_string(by)};
    const erased::Called y = f.call(std::array{x}, statics, [&](In in) -> erased::Called {
      ++traced;
      return {.tensors = {in[0] * by, in[0] + by}, .structure = std::make_shared<std::string>("pair")};
    });
    EXPECT_EQ(*std::static_pointer_cast<const std::string>(y.structure), "pair");
    return y.tensors[0].to_vector<float>();
  };
  EXPECT_EQ(call(constant({1.0f, 2.0f}), 2), (std::vector<float>{2, 4}));
  EXPECT_EQ(call(constant({3.0f, 4.0f}), 2), (std::vector<float>{6, 8}));
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(call(constant({3.0f, 4.0f}), 3), (std::vector<float>{9, 12}));
  EXPECT_EQ(traced, 2);
  struct Foreign {};
  EXPECT_THROW(f.call(std::array{constant(1.0f)}, {.values = "throws"}, [](In) -> erased::Called { throw Foreign(); }),
               Foreign);
}

TEST(Erased, MemoryIsBorrowedUntilNoTensorNeedsIt) {
  const auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const std::weak_ptr<std::vector<float>> alive = owner;
  {
    Tensor x = erased::tensor_of({f32, {3}}, erased::Buffer::borrow(owner->data(), 12, owner));
    EXPECT_EQ(static_cast<const float*>(erased::elements_of(x)->host()), owner->data());
    EXPECT_EQ((x + 1).to_vector<float>(), (std::vector<float>{2, 3, 4}));
    EXPECT_GT(alive.use_count(), 1);
  }
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_THROW(erased::tensor_of({f32, {4}}, erased::Buffer::borrow(owner->data(), 12, owner)), InvalidArgument);
  EXPECT_FALSE(erased::is_defined({}));
}

TEST(Erased, AModelHasTheFieldsThatTheVisitorReceives) {
  const erased::Model model = model_of();
  const Tensor x = ones({2, 3}), y = called(model, x);
  EXPECT_EQ(y.to_vector<float>(), model(x).to_vector<float>());
  std::vector<std::string> names;
  for (const Variable& variable : model.variables()) names.push_back(variable.name());
  EXPECT_EQ(names, (std::vector<std::string>{"first/kernel", "first/bias", "last/kernel", "last/bias", "scale"}));
  const erased::Model copy = model;
  copy.variables()[0].assign(zeros({3, 8}));
  EXPECT_EQ(model(x).to_vector<float>(), y.to_vector<float>());
  EXPECT_NE(copy(x).to_vector<float>(), y.to_vector<float>());
  EXPECT_THROW(erased::NetCall call(Dense(3)), InvalidArgument);
}

TEST(Erased, AChangedPlainFieldIsARetrace) {
  const auto layer = std::make_shared<ObjectLayer>(static_cast<ObjectLayer&>(model_of().layer_behind()).object);
  const erased::Model model(layer);
  const auto f = function([&](const Tensor& x) { return called(model, x); });
  const Tensor x = linspace(-1, 1, 6), rows = reshape(x, {2, 3});
  const auto before = f(rows).to_vector<float>();
  layer->object.plain["activation"] = "tanh";
  const auto after = f(rows).to_vector<float>();
  EXPECT_NE(before, after);
  EXPECT_EQ(after, called(model, rows).to_vector<float>());
}

TEST(Erased, APipelineFeedsATraining) {
  int seen = 0;
  const auto halved = [&seen](In fields) {
    ++seen;
    return Tensors{fields[0] / 2, fields[1] / 2};
  };
  const erased::Pipeline data = sums(64).map(halved, halved, {}).batch(16, {});
  std::int64_t elements = 0;
  for (auto reading = data.begin(); !reading->at_end(); reading->advance()) {
    EXPECT_EQ(reading->element()[0].shape(), (Shape{16, 3}));
    ++elements;
  }
  EXPECT_EQ(elements, 4);
  EXPECT_GT(seen, 0);

  erased::Model model = model_of();
  Adam adam({.learning_rate = 0.03});
  const erased::Task task = task_of(model);
  const History history =
      erased::fit(model, adam, task, data, {.epochs = 20, .metrics = {MeanAbsoluteError()}, .verbose = false});
  EXPECT_LT(history.loss.back(), 0.1 * history.loss.front());
  EXPECT_NEAR(erased::evaluate(task, data, {}).loss, history.loss.back(), 0.01);
  const Tensor all = erased::predict(
      model, [&](In x) { return Tensors{called(model, x[0])}; },
      data.map([](In f) { return Tensors{f[0]}; }, [](In f) { return Tensors{f[0]}; }, {}), {}, 1);
  EXPECT_EQ(all.shape(), (Shape{64, 1}));
}

/// The same training by templates has the same bits.
TEST(Erased, TrainsAsTheTypedInterfaceDoes) {
  struct Net {
    Dense first{8}, last{1};
    Variable scale{constant(1.0f)};
    Tensor operator()(Tensor x) const { return last(relu(first(x) * scale)); }
  };
  const auto values_of = [](const Module& model) {
    std::vector<std::vector<float>> values;
    for (const Variable& variable : model.variables()) values.push_back(variable.value().to_vector<float>());
    return values;
  };
  const Tensor x = random::stateless_normal({24, 3}, constant({1, 2})),
               y = reduce_sum(x, {.axis = {1}, .keepdims = true});
  const auto data = data::from_tensor_slices(x, y).batch(8);
  erased::Model model = model_of();
  SGD one({.learning_rate = 0.05, .momentum = 0.9}), other({.learning_rate = 0.05, .momentum = 0.9});
  erased::fit(model, one, task_of(model), data.pipeline(), {.epochs = 2, .verbose = false});
  set_seed(3);
  Model<Net> typed;
  fit(typed, other, MeanSquaredError(), data, {.epochs = 2, .verbose = false});
  EXPECT_EQ(values_of(model), values_of(typed));
}

TEST(Erased, GradientsMadeByHandAreApplied) {
  Variable v(constant({1.0f, 2.0f}));
  SGD sgd({.learning_rate = 0.5});
  sgd.apply_gradients(erased::gradients_of(Variables{v}, {constant({1.0f, 2.0f})}, constant(1.0f)));
  EXPECT_EQ(v.value().to_vector<float>(), (std::vector<float>{0.5f, 1.0f}));
  EXPECT_THROW(erased::gradients_of(Variables{v}, {}, constant(1.0f)), InvalidArgument);
  EXPECT_THROW(erased::gradients_of(Variables{v}, {constant(1.0f)}, constant(1.0f)), InvalidArgument);
}

TEST(Erased, AStepRunsOnAllReplicas) {
  const MirroredStrategy strategy({.devices = {cpu(0), cpu(1)}});
  Variable w(constant(2.0f));
  const auto identity = std::make_shared<int>();
  int traced = 0;
  const auto body = [&](In in) -> erased::Called {
    ++traced;
    const Loss loss = erased::over_shards(Loss::mean(square(in[0] * w)));
    return {.tensors = {loss.value()}};
  };
  const Tensor x = constant({1.0f, 2.0f, 3.0f, 4.0f});
  for (int i = 0; i < 3; ++i) {
    const erased::StepResults found = strategy.run_step({.step = identity}, std::array{x}, {}, body);
    EXPECT_EQ(found.tensors[0].common.item(), 30);
  }
  EXPECT_EQ(traced, 1);
}

}  // namespace
}  // namespace gradus::erased_test
